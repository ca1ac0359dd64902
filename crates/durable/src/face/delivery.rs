//! Deliveries: timers in the hands of a taker.

use std::sync::Arc;
use std::time::Duration;

use super::error::Error;
use super::queue::Queue;
use super::receipt::Receipt;
use crate::shard::{self, Answer, Request, Settled, Token, Verdict};
use crate::values::{Content, Moment, Retry, Webhook};

/// A timer that is due, in the hands of its taker for as long as its lease runs.
///
/// [`ack`](Delivery::ack) it when the work is done. A delivery that is dropped unanswered is refused: the timer is
/// tried again by its backoff, and an attempt is used up.
#[must_use = "a delivery that is dropped is refused"]
pub struct Delivery {
    queue: Queue,
    inner: shard::Delivery,
    on_drop: OnDrop,
}

/// What becomes of a delivery that is dropped.
enum OnDrop {
    /// It never reached its taker: given back, and no attempt is used up.
    Release,
    /// Its taker has dropped it: refused.
    Nack,
    /// It was answered.
    Nothing,
}

impl Delivery {
    pub(super) fn new(queue: Queue, inner: shard::Delivery) -> Self {
        Delivery { queue, inner, on_drop: OnDrop::Release }
    }

    /// It has reached its taker.
    pub(super) fn reached(mut self) -> Self {
        self.on_drop = OnDrop::Nack;
        self
    }

    /// What was scheduled.
    pub fn payload(&self) -> &[u8] {
        &self.inner.payload
    }

    /// Whether the payload is JSON or bytes.
    pub fn content(&self) -> Content {
        self.inner.payload.content()
    }

    /// Where it is posted.
    pub fn webhook(&self) -> Option<&Webhook> {
        self.inner.webhook.as_deref()
    }

    /// How often it is tried, and how long its backoff is.
    pub fn retry(&self) -> &Retry {
        &self.inner.retry
    }

    /// The key of the timer.
    pub fn key(&self) -> &str {
        self.inner.token.key.as_str()
    }

    /// The moment of the occurrence. Retries leave it as it is.
    pub fn due(&self) -> Moment {
        self.inner.due
    }

    /// The number of the occurrence, from 1.
    pub fn occurrence(&self) -> u64 {
        self.inner.token.occurrence
    }

    /// How often this occurrence was handed out, this time included.
    pub fn attempt(&self) -> u32 {
        self.inner.token.attempt
    }

    /// Names the delivery for ever.
    pub fn token(&self) -> &Token {
        &self.inner.token
    }

    /// When it was handed out.
    pub fn handed(&self) -> Moment {
        self.inner.handed
    }

    /// When the lease ends, by the wall clock of the hand-out, if it is not extended.
    pub fn lease_until(&self) -> Moment {
        self.inner.lease_until
    }

    /// The work is done. It counts after the end of the lease, too, until the timer is handed out again.
    ///
    /// The receipt resolves with the moment of the next occurrence, if there is one.
    pub fn ack(mut self) -> Receipt<Option<Moment>> {
        self.on_drop = OnDrop::Nothing;
        self.settle(Verdict::Ack, |settled| match settled {
            Settled::Acked(next) => next,
            _ => None,
        })
    }

    /// The work failed: the next attempt is after the delay of `nack`, or by the timer's backoff. If this was the last
    /// attempt, the timer is given up.
    pub fn nack(mut self, nack: Nack) -> Receipt<Settled> {
        self.on_drop = OnDrop::Nothing;
        self.settle(Verdict::Nack(nack.after.map(Into::into), nack.error), |settled| settled)
    }

    /// The work takes so long from now, at most 12 hours. Resolves with the new end of the lease.
    pub fn extend(&self, lease: Duration) -> Receipt<Moment> {
        let lease = match super::queue::lease(lease) {
            Ok(lease) => lease,
            Err(error) => return Receipt::ready(Err(error.into())),
        };
        self.settle(Verdict::Extend(lease), |settled| match settled {
            Settled::Extended(until) => until,
            _ => Moment::ZERO,
        })
    }

    fn settle<T: Send + 'static>(&self, verdict: Verdict, read: fn(Settled) -> T) -> Receipt<T> {
        self.queue.settle(self.inner.token.clone(), verdict, read)
    }
}

impl Queue {
    /// Says something about one delivery.
    pub(super) fn settle<T: Send + 'static>(
        &self,
        token: Token,
        verdict: Verdict,
        read: fn(Settled) -> T,
    ) -> Receipt<T> {
        let request = Request::Settle { queue: self.name.clone(), tokens: vec![token], verdict };
        self.request(request, move |answer| match answer? {
            Answer::Settled(mut settled) => match settled.pop() {
                Some(outcome) => outcome.map(read).map_err(Error::Stale),
                None => unreachable!("one token was named"),
            },
            other => unreachable!("a settle was answered with {other:?}"),
        })
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let verdict = match self.on_drop {
            OnDrop::Nothing => return,
            OnDrop::Release => Verdict::Release,
            OnDrop::Nack => Verdict::Nack(None, Some("dropped unanswered".into())),
        };
        drop(self.settle(verdict, |_| ()));
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

/// That a delivery is refused, and why.
///
/// It is made of any error, so that a handler may use `?`; without a delay, the timer's backoff decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nack {
    after: Option<Duration>,
    error: Option<Arc<str>>,
}

impl Nack {
    /// Refused for that reason.
    pub fn because(error: impl Into<Arc<str>>) -> Self {
        Nack { after: None, error: Some(error.into()) }
    }

    /// The next attempt is after so long, whatever the timer's backoff says.
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = Some(delay);
        self
    }
}

impl<E: std::error::Error> From<E> for Nack {
    fn from(error: E) -> Self {
        Nack::because(error.to_string())
    }
}
