//! The properties that the test suites of tokio, tokio-util, Netty, Kafka and the JDK check, checked here in our own
//! words.
//!
//! `docs/peers.md` lists every test of those suites, with the corresponding test here or elsewhere, or the reason why
//! there is none.

#[path = "../common/mod.rs"]
mod common;

mod jdk_executor;
mod jdk_queue;
mod kafka;
mod netty;
mod tokio_queue;
mod tokio_time;
