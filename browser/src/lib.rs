//! Drives a real Chromium, for the tests of the live page and for its pictures.
//!
//! | module | owns |
//! |---|---|
//! | `chromium` | the process: found, started on a profile of its own, ended with all that it started |
//! | `page` | one tab: opened with a size, colours and a language; clicked, typed into, asked, photographed |
//! | `visit` | a visitor: server, browser and page together, and what `replay` says to the same |
//! | `served` | `tourbillon serve` in this process |
//! | `demo` | a server of the page in this process, which can be stopped and started again on its port |
//!
//! It speaks the DevTools protocol over its WebSocket. A crate for all of that protocol was the tempting
//! alternative: a dozen of its thousand commands are needed here, and those crates build for longer than the
//! rest of the repository.
#![forbid(unsafe_code)]

mod chromium;
mod demo;
mod page;
mod served;
mod visit;

pub use chromium::Chromium;
pub use demo::Demo;
pub use page::{Look, Page};
pub use served::Served;
pub use visit::{Visit, replay, same_lines, scenarios};
