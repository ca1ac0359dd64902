//! Futures as their tasks meet them. Time is virtual, and most are polled by hand, so that a test decides who polls
//! when and sees each wake.

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
