//! A client of the durable timers of `tourbillon serve`, typed, async and blocking.
#![doc = include_str!("../README.md")]
//!
//! | file | owns |
//! |---|---|
//! | `client.rs` | [`Client`]: sends requests, retries those that are safe to repeat |
//! | `queue.rs` | [`Queue`]: the calls on a queue and its timers |
//! | `blocking.rs` | the same calls for threads |
//! | `timer.rs`, `answers.rs` | request and response types |
//! | `events.rs` | the stream of events |
//! | `connect.rs` | connections, with TLS or without |
//! | `time.rs` | moments and durations as text |
#![forbid(unsafe_code)]

mod answers;
pub mod blocking;
mod client;
mod connect;
mod error;
mod events;
mod queue;
mod request;
mod time;
mod timer;

pub use answers::{
    Bucket, Cancelled, CancelledKeys, Counts, Delivery, Lateness, Many, Page, QueueSettings,
    QueueStats, Queues, Revived, Scheduled, Settled, Stale,
};
pub use client::{Builder, Client};
pub use error::{Error, Problem};
pub use events::{Event, Events, Happened};
pub use queue::{Condition, Conflict, List, Queue, QueueChange, Receive};
pub use timer::{NewTimer, Payload, Replaced, Retry, Timer, Webhook, WebhookView};
