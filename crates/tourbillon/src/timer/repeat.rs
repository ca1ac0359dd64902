//! Repeating timers: their schedule, and what happens to missed runs.
//!
//! Time increases to the right, each run is a line, and `|` marks where a run is due. The second run takes too long:
//!
//! ```text
//!            |     |     |     |     |     |     |
//!   Burst    ==    =============== == ==    ==    ==       every run takes place; missed runs follow at once
//!   Skip     ==    ===============    ==    ==    ==       missed runs are skipped; the schedule is kept
//!   Delay    ==    ===============     ==    ==    ==      missed runs are skipped; a new schedule begins
//!
//!   after_each     ==     ==============     ==     ==     there is no schedule: the pauses between runs are equal
//! ```
//!
//! At a fixed rate, the next deadline is the previous deadline plus the period, in whole nanoseconds, and never depends
//! on a reading of the clock: it cannot drift. A run is armed when the previous one has ended, so runs of one timer
//! never overlap, and each arming is counted like any other.

use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::Time;

use super::callback::Callback;
use super::context::Context;
use super::{Timeout, Timer};
use crate::clock::{EngineClock, nanoseconds};
use crate::contain::contain;
use crate::error::ScheduleError;
use crate::missed::{Beat, Missed};

/// The schedule of a repeating timer, for [`Timer::repeat`].
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Missed, Repeat, Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let minute = Duration::from_secs(60);
/// // At once, then every minute. Runs that are missed because a run takes longer than a minute are skipped.
/// let rhythm = Repeat::every(minute).first(Duration::ZERO).missed(Missed::Skip);
/// let report = timer.repeat(rhythm, |_| ())?;
///
/// clock.advance(minute * 10)?;
/// assert_eq!(timer.counts().fired, 11);
/// assert!(report.cancel(), "no further run starts");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a rhythm does nothing until a timer is given it"]
pub struct Repeat {
    pace: Pace,
    first: Option<First>,
    missed: Missed,
    survives: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    After(Duration),
    At(Instant),
    Wall(SystemTime),
}

/// Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Rate(u64),
    Pause(u64),
}

impl Repeat {
    /// A fixed rate: each run is due one period after the previous run was due.
    ///
    /// It does not depend on when that run started, and does not drift by a nanosecond. A period of zero counts as one
    /// tick.
    pub fn every(period: Duration) -> Self {
        Repeat::new(Pace::Rate(nanoseconds(period)))
    }

    /// A fixed pause: each run is due `pause` after the previous run has ended. A pause of zero counts as one tick.
    pub fn after_each(pause: Duration) -> Self {
        Repeat::new(Pace::Pause(nanoseconds(pause)))
    }

    fn new(pace: Pace) -> Self {
        Repeat { pace, first: None, missed: Missed::default(), survives: false }
    }

    /// Sets the delay of the first run, which is one period or pause by default.
    pub fn first(mut self, after: Duration) -> Self {
        self.first = Some(First::After(after));
        self
    }

    /// Sets the instant of the first run, instead of one period or pause from now.
    ///
    /// If the instant has passed, the runs since then count as missed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Missed, Repeat, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let (began, second) = (clock.now(), Duration::from_secs(1));
    /// clock.advance(Duration::from_millis(2500))?;
    /// let rhythm = Repeat::every(second).first_at(began).missed(Missed::Skip);
    /// let beat = timer.repeat(rhythm, |_| ())?;
    /// clock.advance(Duration::from_millis(1))?;
    /// assert_eq!(beat.deadline(), Some(began + 3 * second), "in the phase of its beginning");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first_at(mut self, at: Instant) -> Self {
        self.first = Some(First::At(at));
        self
    }

    /// Sets the wall-clock time of the first run, by the wall clock as it is set when the timer is created.
    ///
    /// If that time has passed, the first run is due at once, and no run counts as missed.
    ///
    /// Later runs follow the engine's clock. For a timer that follows the wall clock when that is set, use
    /// [`schedule_wall`](Timer::schedule_wall).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Repeat, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let hour = Duration::from_secs(3600);
    /// timer.repeat(Repeat::every(24 * hour).first_wall(clock.wall_now() + 3 * hour), |_| ())?;
    /// clock.advance(27 * hour)?;
    /// assert_eq!(timer.counts().fired, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first_wall(mut self, at: SystemTime) -> Self {
        self.first = Some(First::Wall(at));
        self
    }

    /// Sets what happens to missed runs. The default is [`Missed::Burst`]. With a fixed pause, no run is missed.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Keeps the timer alive when a run panics. The panic is reported and counted as usual.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Repeat, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let second = Duration::from_secs(1);
    /// let oh = |_: &tourbillon::Context<'_>| std::panic::resume_unwind(Box::new("oh"));
    /// timer.repeat(Repeat::every(second).survive_panics(), oh)?;
    /// timer.repeat(Repeat::every(second), oh)?;
    /// clock.advance(second * 3)?;
    /// assert_eq!(timer.counts().panicked, 3 + 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn survive_panics(mut self) -> Self {
        self.survives = true;
        self
    }

    fn first_due(&self, clock: &EngineClock, tick: u64) -> Time {
        let first = planted!(
            "more.first-run-at-once-waits-a-period",
            self.first.filter(|first| *first != First::After(Duration::ZERO)),
            self.first
        );
        match first {
            None => clock.now() + self.step(tick),
            Some(First::After(after)) => clock.now() + nanoseconds(after),
            Some(First::At(at)) => planted!(
                "fifth.rhythm-that-began-in-the-past-begins-now",
                clock.time(at).max(clock.now()),
                clock.time(at)
            ),
            Some(First::Wall(at)) => clock.when(at),
        }
    }

    /// The period or the pause. Zero becomes one tick; otherwise the runs would never end on a virtual clock or a
    /// driver.
    fn step(&self, tick: u64) -> u64 {
        let (Pace::Rate(step) | Pace::Pause(step)) = self.pace;
        if planted!("timer.period-of-zero-is-no-tick", false, step == 0) { tick } else { step }
    }

    /// When the run after a run with these times is due. `None` at the end of time.
    ///
    /// At the end of time, all further runs would be due at once, forever.
    fn next(&self, due: Time, began: Time, ended: Time, tick: u64) -> Option<Time> {
        let step = self.step(tick);
        let next = match self.pace {
            Pace::Pause(_) => planted!("timer.pause-counts-from-the-deadline", due, ended) + step,
            Pace::Rate(_) => {
                let ended = planted!("blind.length-of-a-run-is-overlooked", None, Some(ended));
                self.missed.following(Beat { due, began, ended }, step, tick)
            }
        };
        planted!("timer.repeats-at-the-end-of-time", next >= due, next > due).then_some(next)
    }
}

/// Repeating.
impl Timer {
    /// Runs `callback` repeatedly, at a fixed rate or with a fixed pause.
    ///
    /// It runs until it is cancelled or panics, or the timer is stopped. A run is never early, and never overlaps the
    /// previous run.
    ///
    /// The handle is valid for all runs: [`cancel`](Timeout::cancel) returns `true` if no further run starts, even when
    /// called during a run or inside the callback. [Rescheduling](Timeout::reschedule) the timer moves the next run,
    /// and later runs count from there; so does a call of [`again`](Context::again) in the callback. For a period that
    /// the callback chooses each time, use [`schedule_repeating`](Timer::schedule_repeating).
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Repeat, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let mut left = 3;
    /// timer.repeat(Repeat::after_each(Duration::from_secs(5)), move |context| {
    ///     left -= 1;
    ///     if left == 0 {
    ///         context.timeout().unwrap().cancel();
    ///     }
    /// })?;
    /// clock.advance(Duration::from_secs(3600))?;
    /// assert_eq!((timer.counts().fired, timer.len()), (3, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn repeat<F>(&self, repeat: Repeat, callback: F) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut(&Context<'_>) + Send + 'static,
    {
        let context = &self.core().context;
        let at = repeat.first_due(&context.clock, context.tick);
        let armed = self.schedule_boxed(at, Rhythmic { repeat, callback });
        armed.map_err(|error| error.map(|rhythmic| rhythmic.callback))
    }
}

/// A callback that runs at a fixed rate or with a fixed pause.
struct Rhythmic<F> {
    repeat: Repeat,
    callback: F,
}

impl<F: FnMut(&Context<'_>) + Send + 'static> Callback for Rhythmic<F> {
    fn call(&mut self, context: &Context<'_>) {
        if self.repeat.survives {
            contain(context.shard, || (self.callback)(context));
        } else {
            (self.callback)(context);
        }
        if planted!("timer.rhythm-overrules-again", true, !context.wants_again()) {
            let Context { core, deadline, started, .. } = *context;
            let due =
                planted!("sixth.fixed-rate-counts-from-the-start-of-the-run", started, deadline);
            let next = self.repeat.next(due, started, core.context.clock.now(), core.context.tick);
            context.again.set(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Source, VirtualClock};

    const TICK: u64 = 1_000;

    fn next(repeat: Repeat, deadline: u64, now: u64) -> Option<u64> {
        repeat.next(Time::new(deadline), Time::new(deadline), Time::new(now), TICK).map(Time::units)
    }

    fn every(period: u64, missed: Missed) -> Repeat {
        Repeat::every(Duration::from_nanos(period)).missed(missed)
    }

    #[test]
    fn a_pause_counts_from_the_end() {
        let pause = Repeat::after_each(Duration::from_nanos(10)).missed(Missed::Skip);
        assert_eq!(next(pause, 100, 137), Some(147));
    }

    #[test]
    fn nothing_at_all_is_a_tick() {
        for missed in [Missed::Burst, Missed::Skip, Missed::Delay] {
            assert_eq!(next(every(0, missed), 5_000, 5_000), Some(6_000));
        }
        assert_eq!(next(Repeat::after_each(Duration::ZERO), 5_000, 7_000), Some(8_000));
        let clock = EngineClock::new(Source::Virtual(VirtualClock::new()));
        let first = |repeat: Repeat| repeat.first_due(&clock, TICK).units() - clock.now().units();
        assert_eq!(first(Repeat::every(Duration::ZERO)), TICK);
        assert_eq!(first(Repeat::every(Duration::MAX).first(Duration::ZERO)), 0);
    }

    #[test]
    fn a_rhythm_ends_where_time_does() {
        for missed in [Missed::Burst, Missed::Skip, Missed::Delay] {
            let longest = Repeat::every(Duration::MAX).missed(missed);
            assert_eq!(next(longest, 0, 0), Some(u64::MAX), "{missed:?}");
            assert_eq!(next(longest, 1, 1), Some(u64::MAX), "{missed:?}");
            assert_eq!(next(every(7, missed), u64::MAX - 1, u64::MAX - 1), Some(u64::MAX));
            assert_eq!(next(every(7, missed), u64::MAX, u64::MAX), None, "{missed:?}");
        }
        // The next deadline of the schedule would lie past the end of time.
        assert_eq!(next(every(u64::MAX - 10, Missed::Skip), 2, u64::MAX), Some(u64::MAX));
        let pause = Repeat::after_each(Duration::from_nanos(1));
        assert_eq!(next(pause, 0, u64::MAX), Some(u64::MAX));
        assert_eq!(next(pause, u64::MAX, u64::MAX), None);
    }
}
