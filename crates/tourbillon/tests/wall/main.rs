//! Timers that wait for the wall clock, which is set forward and back under them. Under virtual time, but for
//! `real.rs`.

#[path = "../common/mod.rs"]
mod common;

mod extremes;
mod handles;
mod real;
mod rhythm;
mod stepped;
