//! Deliveries: due timers held by a taker under a lease.

use std::sync::Arc;
use std::time::Duration;

use super::error::Error;
use super::queue::Queue;
use super::receipt::Receipt;
use crate::shard::{self, Answer, Request, Settled, Stale, Token, Verdict};
use crate::values::{Content, Moment, Retry, Span, Webhook};

/// A due timer, held by its taker until the lease ends.
///
/// [`ack`](Delivery::ack) it when the work is done. A delivery dropped without an answer is nacked: the timer is
/// retried with its backoff, and an attempt is used up.
#[must_use = "a delivery that is dropped is refused"]
pub struct Delivery {
    queue: Queue,
    inner: shard::Delivery,
    on_drop: OnDrop,
}

/// What dropping a delivery does.
enum OnDrop {
    /// It never reached its taker: a drop releases it, and no attempt is used up.
    Release,
    /// It reached its taker: a drop nacks it.
    Nack,
    /// It was settled: a drop does nothing.
    Nothing,
}

impl Delivery {
    pub(super) fn new(queue: Queue, inner: shard::Delivery) -> Self {
        Delivery { queue, inner, on_drop: OnDrop::Release }
    }

    /// Marks it as received by its taker.
    pub(super) fn reached(mut self) -> Self {
        self.on_drop = OnDrop::Nack;
        self
    }

    /// The payload of the timer.
    pub fn payload(&self) -> &[u8] {
        &self.inner.payload
    }

    /// Whether the payload is JSON or bytes.
    pub fn content(&self) -> Content {
        self.inner.payload.content()
    }

    /// The webhook to which it is posted, if it has one.
    pub fn webhook(&self) -> Option<&Webhook> {
        self.inner.webhook.as_deref()
    }

    /// Its attempts and backoff.
    pub fn retry(&self) -> &Retry {
        &self.inner.retry
    }

    /// The queue of the timer.
    pub fn queue(&self) -> &str {
        self.inner.queue.as_str()
    }

    /// The key of the timer.
    pub fn key(&self) -> &str {
        self.inner.token.key.as_str()
    }

    /// The due moment of the occurrence. Retries do not change it.
    pub fn due(&self) -> Moment {
        self.inner.due
    }

    /// The number of the occurrence, from 1.
    pub fn occurrence(&self) -> u64 {
        self.inner.token.occurrence
    }

    /// The number of times this occurrence was handed out, including this one.
    pub fn attempt(&self) -> u32 {
        self.inner.token.attempt
    }

    /// The permanent identity of the delivery.
    pub fn token(&self) -> &Token {
        &self.inner.token
    }

    /// When it was handed out.
    pub fn handed(&self) -> Moment {
        self.inner.handed
    }

    /// When the lease ends unless it is extended, computed from the wall clock at the hand-out.
    pub fn lease_until(&self) -> Moment {
        self.inner.lease_until
    }

    /// Reports the work as done. Counts even after the end of the lease, until the timer is handed out again.
    ///
    /// The receipt resolves with the moment of the next occurrence, if there is one.
    pub fn ack(mut self) -> Receipt<Option<Moment>> {
        self.on_drop = OnDrop::Nothing;
        self.settle(Verdict::Ack, |settled| match settled {
            Settled::Acked(next) => next,
            _ => None,
        })
    }

    /// Reports the work as failed. The next attempt follows after the delay of `nack`, or the timer's backoff.
    ///
    /// If this was the last attempt, the timer is given up.
    pub fn nack(mut self, nack: Nack) -> Receipt<Settled> {
        self.on_drop = OnDrop::Nothing;
        self.settle(Verdict::Nack(nack.after.map(Into::into), nack.error), |settled| settled)
    }

    /// Extends the lease to end this long from now (1 s to 12 hours). The receipt resolves with the new end.
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

    /// Gives the timer up at once with that reason, however many attempts are left. It is dead, even if it recurs.
    pub fn give_up(mut self, error: impl Into<Arc<str>>) -> Receipt<()> {
        self.on_drop = OnDrop::Nothing;
        self.settle(Verdict::GiveUp(Some(error.into())), |_| ())
    }

    /// Releases it: due again at once, and no attempt is used up.
    pub fn release(self) -> Receipt<()> {
        self.release_for(Duration::ZERO)
    }

    /// Releases it: due again after `delay`, and no attempt is used up.
    pub fn release_for(mut self, delay: Duration) -> Receipt<()> {
        self.on_drop = OnDrop::Nothing;
        self.settle(Verdict::Release(delay.into()), |_| ())
    }

    /// Detaches the token, without settling the delivery. The lease keeps running.
    ///
    /// Any holder of the token may settle it with [`Queue::ack`], [`Queue::nack`] and [`Queue::extend`].
    pub fn detach(mut self) -> Token {
        self.on_drop = OnDrop::Nothing;
        self.inner.token.clone()
    }

    fn settle<T: Send + 'static>(&self, verdict: Verdict, read: fn(Settled) -> T) -> Receipt<T> {
        self.queue.settle(self.inner.token.clone(), verdict, read)
    }
}

impl Queue {
    /// Settles one delivery.
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

/// Settling deliveries by token. The answers are in the order of the tokens; a stale token does not affect the others.
impl Queue {
    /// Reports these deliveries as done, as [`Delivery::ack`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon_durable::{Durable, NewTimer, Settled, Stale};
    ///
    /// let durable = Durable::memory()?;
    /// let jobs = durable.queue("jobs")?;
    /// jobs.schedule(NewTimer::after(Duration::ZERO).key("a")?).wait()?;
    /// let job = jobs.receive(1, Duration::from_secs(20)).wait()?.remove(0);
    /// let token = job.detach().to_string();
    /// // The token goes over a wire and returns.
    /// let token = token.parse()?;
    /// let answers = jobs.ack([&token, &token]).wait()?;
    /// assert_eq!(answers, [Ok(Settled::Acked(None)), Err(Stale::Acked)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ack<'t>(&self, tokens: impl IntoIterator<Item = &'t Token>) -> Receipt<Outcomes> {
        self.settle_all(tokens, Verdict::Ack)
    }

    /// Reports these deliveries as failed, as [`Delivery::nack`].
    pub fn nack<'t>(
        &self,
        tokens: impl IntoIterator<Item = &'t Token>,
        nack: Nack,
    ) -> Receipt<Outcomes> {
        self.settle_all(tokens, Verdict::Nack(nack.after.map(Into::into), nack.error))
    }

    /// Extends the leases of these deliveries, as [`Delivery::extend`].
    pub fn extend<'t>(
        &self,
        tokens: impl IntoIterator<Item = &'t Token>,
        lease: Duration,
    ) -> Receipt<Outcomes> {
        match super::queue::lease(lease) {
            Ok(lease) => self.settle_all(tokens, Verdict::Extend(lease)),
            Err(error) => Receipt::ready(Err(error.into())),
        }
    }

    fn settle_all<'t>(
        &self,
        tokens: impl IntoIterator<Item = &'t Token>,
        verdict: Verdict,
    ) -> Receipt<Outcomes> {
        let tokens = tokens.into_iter().cloned().collect();
        let request = Request::Settle { queue: self.name.clone(), tokens, verdict };
        self.request(request, |answer| match answer? {
            Answer::Settled(settled) => Ok(settled),
            other => unreachable!("a settle was answered with {other:?}"),
        })
    }
}

/// The outcome for each token of a request.
pub type Outcomes = Vec<Result<Settled, Stale>>;

impl Drop for Delivery {
    fn drop(&mut self) {
        let verdict = match self.on_drop {
            OnDrop::Nothing => return,
            OnDrop::Release => Verdict::Release(Span::ZERO),
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

/// A failure report, with an optional reason and delay.
///
/// Converts from any error, so that a handler may use `?`. Without a delay, the timer's backoff applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nack {
    after: Option<Duration>,
    error: Option<Arc<str>>,
}

impl Nack {
    /// A failure for that reason.
    pub fn because(error: impl Into<Arc<str>>) -> Self {
        Nack { after: None, error: Some(error.into()) }
    }

    /// Sets the delay before the next attempt, overriding the timer's backoff.
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
