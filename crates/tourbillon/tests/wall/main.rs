//! Timers that wait for the wall clock, which is set forward and back meanwhile. Under virtual time, except for
//! `real.rs`.

#[path = "../common/mod.rs"]
mod common;

mod extremes;
mod handles;
mod real;
mod rhythm;
mod stepped;
