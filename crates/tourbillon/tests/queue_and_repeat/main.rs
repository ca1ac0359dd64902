//! Higher-level uses of time: repeating, retrying, queues, and engines that the caller drives. Under virtual time where
//! possible; tests that need real time say so.

#[path = "../common/mod.rs"]
mod common;

mod backoff;
mod queue;
mod queue_limits;
mod queue_order;
mod queue_threads;
mod queue_walk;
mod repeating;
mod repeating_edges;
mod retrying;
mod rhythms;
mod suspend;
mod takers;
