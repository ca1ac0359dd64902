//! Deliveries: timers in the hands of a taker.

use std::sync::Arc;
use std::time::Duration;

use super::error::Error;
use super::queue::Queue;
use super::receipt::Receipt;
use crate::shard::{self, Answer, Request, Settled, Stale, Token, Verdict};
use crate::values::{Content, Moment, Retry, Span, Webhook};

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

    /// The queue of the timer.
    pub fn queue(&self) -> &str {
        self.inner.queue.as_str()
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

    /// Gives the timer up at once, whatever attempts are left, for that reason. It is dead, also if it recurs.
    pub fn give_up(mut self, error: impl Into<Arc<str>>) -> Receipt<()> {
        self.on_drop = OnDrop::Nothing;
        self.settle(Verdict::GiveUp(Some(error.into())), |_| ())
    }

    /// Gives it back: due again at once, and no attempt is used up.
    pub fn release(self) -> Receipt<()> {
        self.release_for(Duration::ZERO)
    }

    /// Gives it back: due again after so long, and no attempt is used up.
    pub fn release_for(mut self, delay: Duration) -> Receipt<()> {
        self.on_drop = OnDrop::Nothing;
        self.settle(Verdict::Release(delay.into()), |_| ())
    }

    /// Lets it go unanswered. Its lease runs on, and whoever has the token may settle it with [`Queue::ack`],
    /// [`Queue::nack`] and [`Queue::extend`].
    pub fn detach(mut self) -> Token {
        self.on_drop = OnDrop::Nothing;
        self.inner.token.clone()
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

/// Deliveries by their tokens. The answers are in the order of the tokens; a stale one harms no other.
impl Queue {
    /// The work of these deliveries is done, as [`Delivery::ack`].
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
    /// // The token goes over a wire, and comes back.
    /// let token = token.parse()?;
    /// let answers = jobs.ack([&token, &token]).wait()?;
    /// assert_eq!(answers, [Ok(Settled::Acked(None)), Err(Stale::Acked)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ack<'t>(&self, tokens: impl IntoIterator<Item = &'t Token>) -> Receipt<Outcomes> {
        self.settle_all(tokens, Verdict::Ack)
    }

    /// The work of these deliveries failed, as [`Delivery::nack`].
    pub fn nack<'t>(
        &self,
        tokens: impl IntoIterator<Item = &'t Token>,
        nack: Nack,
    ) -> Receipt<Outcomes> {
        self.settle_all(tokens, Verdict::Nack(nack.after.map(Into::into), nack.error))
    }

    /// The work of these deliveries takes so long from now, as [`Delivery::extend`].
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

/// What became of each token of a request.
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
