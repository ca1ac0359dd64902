//! Drives a real Chromium, for the tests of the live page and for its screenshots.
//!
//! | module | owns |
//! |---|---|
//! | `chromium` | the process: found, started with its own profile, killed with its children |
//! | `page` | one tab: size, colours, language; clicking, typing, evaluating, screenshots |
//! | `visit` | a visitor: server, browser and page together; compares the page with `replay` |
//! | `served` | `tourbillon serve` in this process |
//! | `demo` | the live page's server in this process, which can be stopped and restarted on its port |
//!
//! It speaks the DevTools protocol over its WebSocket. The tempting alternative was a crate for the whole protocol: it
//! has a thousand commands, of which a dozen are needed here, and takes longer to build than the rest of the
//! repository.
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
