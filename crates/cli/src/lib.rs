//! The command `tourbillon` as a library: tests and pages use it without a process.
//!
//! | module | owns |
//! |---|---|
//! | [`cron`] | when a cron expression runs, as text for people |
//! | [`demo`] | the live page, and the server behind it |
//! | [`remote`] | commands against a running server |
//! | [`scenario`] | the format of scenario files: what is valid, and errors with their place |
//! | [`replay`] | running scenarios on the real wheels under virtual time |
//! | [`serve`] | durable timers over HTTP |
//! | [`store`] | checking, dumping and loading a directory of durable timers |
//! | [`trace`] | one timer's path through the wheels, drawn for people |
//!
//! Nothing here prints to the terminal on its own, except progress on a terminal's standard error and `top`: output
//! goes to a writer, and the thin `main.rs` owns the terminal.
#![forbid(unsafe_code)]

pub mod cron;
pub mod demo;
mod files;
pub mod remote;
pub mod replay;
pub mod scenario;
pub mod serve;
pub mod store;
pub mod trace;
