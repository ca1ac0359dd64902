//! Futures as seen by their tasks. Time is virtual, and most futures are polled by hand, so that a test decides which
//! task polls when, and counts each wake.

#[path = "../common/mod.rs"]
mod common;

mod by_hand;
mod extras;
mod intervals;
mod panics;
mod queue;
mod queue_order;
mod refusals;
mod runtimes;
mod scopes;
mod sleeping;
mod stopping;
mod timeouts;
mod walks;
