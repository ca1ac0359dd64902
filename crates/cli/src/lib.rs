//! What the command `tourbillon` does, as a library: tests and pages use it without a process.
//!
//! | module | owns |
//! |---|---|
//! | [`cron`] | when a cron expression runs, told for people |
//! | [`demo`] | the live page, and the server behind it |
//! | [`scenario`] | the format of scenario files: what is valid, and what is wrong where |
//! | [`replay`] | running scenarios on the real wheels under virtual time |
//! | [`serve`] | durable timers over HTTP |
//! | [`store`] | checking, dumping and loading a directory of durable timers |
//! | [`trace`] | one timer's way through the wheels, drawn for people |
//!
//! Nothing here prints: everything is given a writer, and the thin `main.rs` owns the terminal.
#![forbid(unsafe_code)]

pub mod cron;
pub mod demo;
pub mod remote;
pub mod replay;
pub mod scenario;
pub mod serve;
pub mod store;
pub mod trace;
