//! What holds for every verb of every face, one row for each verb: extreme durations, and the end of every wait. A new
//! verb needs a new row; `durations.rs` fails until it has one.

#[path = "../common/mod.rs"]
mod common;

mod activity;
mod advancing;
mod bench;
mod callbacks;
mod crowd_goes;
mod crowds;
mod durations;
mod ended;
mod ends_together;
mod futures;
mod guards;
mod inside;
mod interrupted;
mod limits;
mod moves;
mod observers;
mod overdue;
mod populations;
mod questions;
mod running;
mod shutdown;
mod stopping;
