//! What comes back: deliveries, queues, lists, counts.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::time;
use crate::timer::{Payload, Replaced, Retry, Timer, WebhookView, bytes, write_bytes};

/// A timer that was handed out, until its lease ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Delivery {
    /// Names the delivery: to settle it with.
    pub token: String,
    /// The queue of the timer.
    pub queue: String,
    /// The key of the timer.
    pub key: String,
    /// The moment of the occurrence.
    #[serde(with = "time::at")]
    pub due: SystemTime,
    /// Names the timer for ever.
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
    /// What was scheduled.
    pub fn payload(&self) -> Payload<'_> {
        Payload::of(self.payload.as_deref(), self.payload_base64.as_deref())
    }
}

#[derive(Deserialize)]
pub(crate) struct Deliveries {
    pub(crate) deliveries: Vec<Delivery>,
}

/// What became of tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settled {
    /// How many counted.
    #[serde(alias = "acked", alias = "nacked", alias = "extended")]
    pub count: u64,
    /// The new end of the leases, of `extend`.
    #[serde(default, with = "time::at_or_null")]
    pub lease_until: Option<SystemTime>,
    /// Tokens that do not count.
    pub stale: Vec<Stale>,
}

/// A token that does not count, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stale {
    /// The token.
    pub token: String,
    /// As `acked`: a repeated `ack` finds its own.
    pub reason: String,
}

/// Whether anybody had a timer that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Cancelled {
    /// Nobody had it, and nobody will.
    Cancelled,
    /// Somebody has it: at most that one.
    Delivering,
}

/// What became of the keys of a cancel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CancelledKeys {
    /// How many will never be handed out.
    pub cancelled: u64,
    /// How many somebody has.
    pub delivering: u64,
    /// Those that were done before.
    pub done: Vec<String>,
    /// Those that are not there.
    pub unknown: Vec<String>,
}

/// What became of the timers of a prefix.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Many {
    /// How many will never be handed out.
    pub cancelled: u64,
    /// How many somebody has.
    pub delivering: u64,
    /// There may be more: ask again.
    pub more: bool,
}

/// How many dead timers live again.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Revived {
    /// How many.
    pub revived: u64,
    /// There may be more: ask again.
    pub more: bool,
}

/// One timer of a list that was scheduled.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Scheduled {
    /// Its key, given or assigned.
    pub key: String,
    /// Names it for ever.
    pub generation: u64,
    /// When it is due.
    #[serde(with = "time::at")]
    pub due: SystemTime,
    /// `made`, `replaced` or `kept`.
    pub outcome: String,
    /// What it replaced, if it did.
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
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

/// Every queue that the token sees.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Queues {
    /// By name.
    pub queues: Vec<QueueStats>,
    /// Some of the store cannot be read; the server's log says what.
    pub damaged: bool,
    /// What the token may do: `read`, `write` or `admin`.
    pub right: String,
}

/// What is known of a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueStats {
    /// Its name.
    pub queue: String,
    /// How many timers are in which state.
    pub counts: Counts,
    /// When the next timer becomes due.
    #[serde(with = "time::at_or_null")]
    pub next: Option<SystemTime>,
    /// Since when the longest due waits.
    #[serde(with = "time::at_or_null")]
    pub oldest_due: Option<SystemTime>,
    /// It hands out nothing.
    pub paused: bool,
    /// Of the hand-outs of the last minute.
    pub lateness: Lateness,
    /// Hand-outs a second, over the last minute.
    pub per_second: f64,
    /// What was set.
    pub settings: QueueSettings,
}

/// Timers by state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Their next attempt is to come.
    pub scheduled: u64,
    /// It has come, and nobody has them.
    pub due: u64,
    /// Somebody has them.
    pub delivering: u64,
    /// They were given up.
    pub dead: u64,
}

/// How late hand-outs were.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Lateness {
    /// Half of them were not later.
    #[serde(with = "time::span")]
    pub p50: Duration,
    /// 99 in a hundred were not later.
    #[serde(with = "time::span")]
    pub p99: Duration,
    /// The latest.
    #[serde(with = "time::span")]
    pub max: Duration,
}

/// Settings of a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueSettings {
    /// The default of new timers.
    pub retry: Retry,
    /// The default of new timers.
    pub webhook: Option<WebhookView>,
    /// The default of new timers with a chosen key.
    #[serde(with = "time::span")]
    pub remember: Duration,
    /// How long the dead are kept.
    #[serde(with = "time::span")]
    pub dead_keep: Duration,
    /// The most hand-outs a second.
    pub rate: Option<u32>,
    /// The most timers that are out at once.
    pub concurrency: Option<u32>,
}

/// How many timers are due in a span of time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bucket {
    /// Its beginning.
    #[serde(with = "time::at")]
    pub from: SystemTime,
    /// Its end, which is not in it.
    #[serde(with = "time::at")]
    pub to: SystemTime,
    /// How many.
    pub count: u64,
}

#[derive(Deserialize)]
pub(crate) struct Buckets {
    pub(crate) buckets: Vec<Bucket>,
}
