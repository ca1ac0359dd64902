//! `Interval`: ticks at a fixed rate.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;

use super::host::{Given, Global, Home};
use super::sleep::Sleep;
use super::streak::Streak;
use crate::clock::nanoseconds;
use crate::missed::{Beat, Missed};
use crate::timer::Timer;

/// Ticks at once and then once every period, on the default engine.
///
/// # Panics
/// As [`sleep`](super::sleep()), when a tick is awaited.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tourbillon::tasks;
///
/// # futures_lite::future::block_on(async {
/// let mut interval = tasks::interval(Duration::from_millis(5));
/// let first = interval.tick().await;
/// assert_eq!(interval.tick().await, first + Duration::from_millis(5), "when it was due");
/// assert_eq!(interval.tick().await, first + Duration::from_millis(10), "it does not drift");
/// assert!(Instant::now() >= first + Duration::from_millis(10));
/// # });
/// ```
pub fn interval(period: Duration) -> Interval {
    Interval::new(Sleep::after(Global::here(), Duration::ZERO), period)
}

/// Ticks at the given instant and then once every period, on the default engine.
///
/// Otherwise as [`interval`].
pub fn interval_at(first: impl Into<Instant>, period: Duration) -> Interval {
    Interval::new(Sleep::at(Global::here(), first.into()), period)
}

/// Intervals on this timer. A tick is an error if the timer is stopped before the tick is due.
impl Timer {
    /// Ticks at once and then once every period.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock, tasks};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let mut interval = timer.interval(Duration::from_secs(60));
    /// tasks::block_on(&clock, async {
    ///     for _ in 0..=10 {
    ///         interval.tick().await?;
    ///     }
    ///     Ok::<_, tasks::SleepError>(())
    /// })??;
    /// assert_eq!(clock.elapsed(), Duration::from_secs(600));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interval(&self, period: Duration) -> Interval<Given> {
        Interval::new(Sleep::after(Given::on(self), Duration::ZERO), period)
    }

    /// Ticks at the given instant and then once every period.
    pub fn interval_at(&self, first: impl Into<Instant>, period: Duration) -> Interval<Given> {
        Interval::new(Sleep::at(Given::on(self), first.into()), period)
    }
}

/// Ticks at a fixed rate without drift.
///
/// Each tick is due one period after the previous tick was due.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Missed, Timer, VirtualClock, tasks};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let mut interval = timer.interval(Duration::from_secs(10)).missed(Missed::Skip);
/// tasks::block_on(&clock, async {
///     let begin = interval.tick().await?;
///     timer.sleep(Duration::from_secs(34)).await?;
///     // The tick at 10 s is late. The ticks at 20 s and 30 s were missed.
///     assert_eq!(interval.tick().await? - begin, Duration::from_secs(10));
///     assert_eq!(interval.tick().await? - begin, Duration::from_secs(40));
///     Ok::<_, tasks::SleepError>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "an interval does nothing until its ticks are awaited"]
pub struct Interval<H: Home = Global> {
    /// Sleeps until the next tick.
    next: Sleep<H>,
    /// Nanoseconds, at least one.
    period: u64,
    missed: Missed,
    streak: Streak,
}

impl<H: Home> Interval<H> {
    fn new(next: Sleep<H>, period: Duration) -> Self {
        // A period of zero becomes one tick of the engine; otherwise the interval would tick forever at the same
        // moment.
        let zero = planted!("tasks.an-interval-of-zero-stays-zero", false, period.is_zero());
        let period = if zero { next.tick() } else { nanoseconds(period) };
        Interval { next, period, missed: Missed::default(), streak: Streak::default() }
    }

    /// Sets what happens to missed ticks. The default is [`Missed::Burst`].
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Changes what happens to missed ticks, from the next tick on.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Missed, tasks};
    ///
    /// let mut interval = tasks::interval(Duration::from_secs(1));
    /// assert_eq!(interval.missed_behavior(), Missed::Burst);
    /// interval.set_missed(Missed::Delay);
    /// assert_eq!(interval.missed_behavior(), Missed::Delay);
    /// ```
    pub fn set_missed(&mut self, missed: Missed) {
        self.missed = missed;
    }

    /// What happens to missed ticks.
    pub fn missed_behavior(&self) -> Missed {
        self.missed
    }

    /// The time between two ticks. A period of zero counts as one tick of the engine.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// Waits for the next tick and returns the instant at which it was due.
    ///
    /// # Cancel safety
    /// A tick is consumed only when this future returns it, so dropping the future loses none.
    ///
    /// # Panics
    /// As [`sleep`](super::sleep()), on the default engine.
    pub async fn tick(&mut self) -> H::Output<Instant> {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Polls for the next tick: [`tick`](Interval::tick) for handwritten futures.
    ///
    /// After 128 ticks in a row it wakes its task and returns `Pending` once, so that a backlog does not starve other
    /// tasks.
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<H::Output<Instant>> {
        let mut streak = std::mem::take(&mut self.streak);
        let polled = streak.poll(context.waker(), || self.poll_one(context));
        self.streak = streak;
        polled
    }

    fn poll_one(&mut self, context: &Context<'_>) -> Poll<H::Output<Instant>> {
        match self.next.poll_outcome(context.waker()) {
            None => Poll::Pending,
            Some(Err(wrong)) => Poll::Ready(H::output(Err(wrong))),
            Some(Ok(())) => {
                let due = self.next.deadline();
                let last = planted!("tasks.an-interval-drifts", self.next.now(), self.next.due());
                let now = planted!("more.interval-knows-of-no-missed-tick", last, self.next.now());
                let beat = Beat { due: last, began: now, ended: None };
                let next = self.missed.following(beat, self.period, self.next.tick());
                self.next.move_to(next);
                let due = planted!("tasks.a-tick-names-the-next-one", self.next.deadline(), due);
                Poll::Ready(H::output(Ok(due)))
            }
        }
    }

    /// Restarts the interval: the next tick is one period from now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock, tasks};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let mut interval = timer.interval(Duration::from_secs(10));
    /// tasks::block_on(&clock, interval.tick())??;
    /// clock.advance(Duration::from_secs(7))?;
    /// interval.reset();
    /// tasks::block_on(&clock, interval.tick())??;
    /// assert_eq!(clock.elapsed(), Duration::from_secs(17));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset(&mut self) {
        planted!(
            "tasks.interval-reset-counts-from-the-next-tick",
            self.next.move_to(self.next.due() + self.period),
            self.next.reset_after(self.period())
        );
    }

    /// Restarts the interval: the next tick is the given delay from now, and later ticks follow at the period.
    pub fn reset_after(&mut self, after: Duration) {
        planted!(
            "third.interval-reset-after-the-tick-to-come",
            self.next.move_to(self.next.due() + nanoseconds(after)),
            self.next.reset_after(after)
        );
    }

    /// Restarts the interval: the next tick is at the given instant, and later ticks follow at the period.
    pub fn reset_at(&mut self, at: impl Into<Instant>) {
        self.next.reset(at);
    }

    /// Restarts the interval: the next tick is now, and later ticks follow at the period.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock, tasks};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let mut interval = timer.interval(Duration::from_secs(10));
    /// tasks::block_on(&clock, interval.tick())??;
    /// interval.reset_immediately();
    /// tasks::block_on(&clock, interval.tick())??;
    /// assert_eq!(clock.elapsed(), Duration::ZERO);
    /// tasks::block_on(&clock, interval.tick())??;
    /// assert_eq!(clock.elapsed(), Duration::from_secs(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset_immediately(&mut self) {
        planted!(
            "tasks.interval-reset-to-now-waits-a-period",
            self.reset(),
            self.next.reset_after(Duration::ZERO)
        );
    }
}

/// An endless stream of ticks. If the timer is stopped, it yields one error and then ends.
///
/// ```
/// use futures_lite::StreamExt;
/// use std::time::Duration;
/// use tourbillon::tasks;
///
/// # futures_lite::future::block_on(async {
/// let ticks: Vec<_> = tasks::interval(Duration::from_millis(2)).take(3).collect().await;
/// assert_eq!(ticks[2] - ticks[0], Duration::from_millis(4));
/// # });
/// ```
impl<H: Home> Stream for Interval<H> {
    type Item = H::Output<Instant>;

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<H::Output<Instant>>> {
        let over = self.next.was_stopped();
        if planted!("tasks.stream-of-a-stopped-interval-never-ends", false, over) {
            return Poll::Ready(None);
        }
        self.get_mut().poll_tick(context).map(Some)
    }
}

impl<H: Home> fmt::Debug for Interval<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("next", &self.next.deadline())
            .field("period", &self.period())
            .finish_non_exhaustive()
    }
}
