//! Answers: deliveries, queues, lists, counts.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::time;
use crate::timer::{Payload, Replaced, Retry, Timer, WebhookView, bytes, write_bytes};

/// A delivery: a timer that was handed out under a lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Delivery {
    /// The token that settles it.
    pub token: String,
    /// The queue of the timer.
    pub queue: String,
    /// The key of the timer.
    pub key: String,
    /// The due moment of the occurrence.
    #[serde(with = "time::at")]
    pub due: SystemTime,
    /// Identifies the timer permanently.
    pub generation: u64,
    /// The number of the occurrence, from 1.
    pub occurrence: u64,
    /// The number of this hand-out, from 1.
    pub attempt: u64,
    /// When it was handed out.
    #[serde(with = "time::at")]
    pub handed: SystemTime,
    /// When the lease ends.
    #[serde(with = "time::at")]
    pub lease_until: SystemTime,
    payload: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "bytes", serialize_with = "write_bytes")]
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<Vec<u8>>,
}

impl Delivery {
    /// The payload of the timer.
    pub fn payload(&self) -> Payload<'_> {
        Payload::of(self.payload.as_deref(), self.payload_base64.as_deref())
    }
}

#[derive(Deserialize)]
pub(crate) struct Deliveries {
    pub(crate) deliveries: Vec<Delivery>,
}

/// The outcome of an `ack`, `nack` or `extend`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settled {
    /// The number of tokens that took effect.
    #[serde(alias = "acked", alias = "nacked", alias = "extended")]
    pub count: u64,
    /// The new end of the leases, for `extend`.
    #[serde(default, with = "time::at_or_null")]
    pub lease_until: Option<SystemTime>,
    /// The tokens that had no effect.
    pub stale: Vec<Stale>,
}

/// A token that had no effect, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stale {
    /// The token.
    pub token: String,
    /// The reason, such as `acked` for a repeated `ack`.
    pub reason: String,
}

/// The outcome of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Cancelled {
    /// It was not handed out, and never will be.
    Cancelled,
    /// It is handed out, and will not be handed out again.
    Delivering,
}

/// The outcome of a cancel by keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CancelledKeys {
    /// The number of timers that will never be handed out.
    pub cancelled: u64,
    /// The number of timers that are handed out; they will not be handed out again.
    pub delivering: u64,
    /// The keys of timers that were already done.
    pub done: Vec<String>,
    /// The keys without a timer.
    pub unknown: Vec<String>,
}

/// The outcome of a cancel by prefix.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Many {
    /// The number of timers that will never be handed out.
    pub cancelled: u64,
    /// The number of timers that are handed out; they will not be handed out again.
    pub delivering: u64,
    /// Whether timers may remain: then repeat the call.
    pub more: bool,
}

/// The outcome of a redrive.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Revived {
    /// The number of dead timers revived.
    pub revived: u64,
    /// Whether timers may remain: then repeat the call.
    pub more: bool,
}

/// The outcome for one timer of a bulk schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Scheduled {
    /// Its key, given or assigned.
    pub key: String,
    /// Identifies it permanently.
    pub generation: u64,
    /// When it is due.
    #[serde(with = "time::at")]
    pub due: SystemTime,
    /// `made`, `replaced` or `kept`.
    pub outcome: String,
    /// The timer that it replaced, if any.
    pub replaced: Option<Replaced>,
}

#[derive(Deserialize)]
pub(crate) struct Outcomes {
    pub(crate) timers: Vec<Scheduled>,
}

/// A page of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Page {
    /// The timers.
    pub timers: Vec<Timer>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// Every queue that the token may see.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Queues {
    /// The queues, by name.
    pub queues: Vec<QueueStats>,
    /// Whether some data of the store cannot be read; the server's log names it.
    pub damaged: bool,
    /// The token's right: `read`, `write` or `admin`.
    pub right: String,
}

/// The statistics of a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueStats {
    /// Its name.
    pub queue: String,
    /// The number of timers in each state.
    pub counts: Counts,
    /// When the next timer becomes due.
    #[serde(with = "time::at_or_null")]
    pub next: Option<SystemTime>,
    /// When the timer that has been due the longest became due.
    #[serde(with = "time::at_or_null")]
    pub oldest_due: Option<SystemTime>,
    /// Whether hand-outs are paused.
    pub paused: bool,
    /// The lateness of the hand-outs of the last minute.
    pub lateness: Lateness,
    /// Hand-outs per second, over the last minute.
    pub per_second: f64,
    /// Its settings.
    pub settings: QueueSettings,
}

/// Timers by state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Their next attempt is in the future.
    pub scheduled: u64,
    /// Their next attempt is due, and they are not handed out.
    pub due: u64,
    /// They are handed out.
    pub delivering: u64,
    /// They were given up.
    pub dead: u64,
}

/// The time from a timer's next attempt to its hand-out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Lateness {
    /// The median.
    #[serde(with = "time::span")]
    pub p50: Duration,
    /// The 99th percentile.
    #[serde(with = "time::span")]
    pub p99: Duration,
    /// The maximum.
    #[serde(with = "time::span")]
    pub max: Duration,
}

/// Settings of a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueSettings {
    /// The default retry of new timers.
    pub retry: Retry,
    /// The default webhook of new timers.
    pub webhook: Option<WebhookView>,
    /// The default of new timers with a chosen key.
    #[serde(with = "time::span")]
    pub remember: Duration,
    /// How long dead timers are kept.
    #[serde(with = "time::span")]
    pub dead_keep: Duration,
    /// The maximum number of hand-outs per second.
    pub rate: Option<u32>,
    /// The maximum number of timers that are handed out at once.
    pub concurrency: Option<u32>,
}

/// The number of timers due in a span of time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bucket {
    /// Its start.
    #[serde(with = "time::at")]
    pub from: SystemTime,
    /// Its end, exclusive.
    #[serde(with = "time::at")]
    pub to: SystemTime,
    /// The number of timers.
    pub count: u64,
}

#[derive(Deserialize)]
pub(crate) struct Buckets {
    pub(crate) buckets: Vec<Bucket>,
}
