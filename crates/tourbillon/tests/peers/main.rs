//! What the suites of tokio, tokio-util, Netty, Kafka and the JDK ask of a timer, asked of this one in words of its
//! own.
//!
//! `docs/peers.md` has every test of those suites, with the test here or elsewhere that asks the same, or why none
//! does.

#[path = "../common/mod.rs"]
mod common;

mod jdk_executor;
mod jdk_queue;
mod kafka;
mod netty;
mod tokio_queue;
mod tokio_time;
