//! Timers that wait for the wall clock: for a moment, at a fixed period, or by the calendar.
//!
//! Such a timer is an ordinary timer whose deadline is computed from the wall clock. Two mechanisms make it follow that
//! clock:
//!
//! ```text
//!   the clock was set                         a thread wants to start the timer
//!   (clock/watch, or a virtual clock)          (under the shard's lock)
//!        │                                         │
//!        ▼                                         ▼
//!   registry: re-examines each waiting        plan: has the wall clock reached the moment?
//!   timer and moves its deadline              no: back into the wheel, still unclaimed
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `plan.rs` | when one timer runs by the wall clock, and for which occurrences it has run |
//! | `fired.rs` | the occurrences for which a timer has run, each at most once |
//! | `registry.rs` | the timers of one engine that wait for the wall clock |

mod fired;
mod plan;
mod registry;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{Callback, Context, Timeout, Timer, TimerShard};
use crate::error::ScheduleError;
use crate::leases::State;
pub(crate) use plan::Plan;
use plan::Rule;
pub(crate) use registry::Registry;

/// Scheduling by the wall clock.
impl Timer {
    /// The wall-clock time that its timers follow: that of the system or of a virtual clock.
    ///
    /// See [`VirtualClock::wall_now`](crate::VirtualClock::wall_now).
    pub fn wall_now(&self) -> SystemTime {
        self.core().context.clock.wall_now()
    }

    /// Runs `callback` once when the wall clock shows `at`, never earlier. A past moment is due now.
    ///
    /// Takes a [`SystemTime`] or anything that converts to one, such as jiff's `Timestamp` and `&Zoned`.
    ///
    /// The timer follows settings of the clock: if the clock is set forward past the moment, the timer is due at once;
    /// if it is set back, the timer waits longer. In any case the timer runs once. A timer on a [user-defined
    /// clock](crate::Clock) follows the system's wall clock.
    ///
    /// Linux reports when the clock is set and when the machine resumes from a suspend; one thread of the process
    /// blocks until then. Elsewhere that thread reads the clock every 30 s while such a timer is pending.
    ///
    /// [`Timeout::deadline`] and [`Context::lateness`] use the engine's clock: the deadline is the moment, converted
    /// with the wall clock as it was last set. [`Timeout::reschedule`] makes this an ordinary timer that runs
    /// after the given delay, whatever the wall clock shows.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// // 2000-01-01T12:00:00Z; a virtual wall clock begins at the start of that year.
    /// let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(946_728_000);
    /// let lunch = timer.schedule_wall(noon, move |context| {
    ///     assert_eq!(context.wall_deadline(), Some(noon));
    /// })?;
    ///
    /// clock.advance(Duration::from_secs(11 * 3600))?;
    /// assert_eq!(lunch.wall_deadline(), Some(noon));
    /// // The clock is set forward past noon.
    /// clock.set_wall(noon + Duration::from_secs(60))?;
    /// assert_eq!((lunch.is_pending(), timer.counts().fired), (false, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A zoned time can be passed too. jiff converts a date and a time of day: by default, a time in a gap moves later
    /// by the length of the gap, and a time in a fold is the first of the two.
    ///
    /// ```
    /// use jiff::civil::date;
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// // On that night, 02:30 does not exist in Berlin.
    /// let night = date(2025, 3, 30).at(2, 30, 0, 0).in_tz("Europe/Berlin")?;
    /// assert_eq!(night.to_string(), "2025-03-30T03:30:00+02:00[Europe/Berlin]");
    /// let timeout = timer.schedule_wall(&night, |_| ())?;
    /// assert_eq!(timeout.wall_deadline(), Some(night.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_wall<F>(
        &self,
        at: impl Into<SystemTime>,
        callback: F,
    ) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        if let Err(wrong) = self.core().delivery.wall.attach(self.core()) {
            return Err(ScheduleError::Thread(callback, wrong));
        }
        let seen = self.core().delivery.wall.epoch();
        let armed = self.schedule_plan(at.into(), None, seen, AtMoment(Some(callback)));
        armed.map_err(|error| error.map(|once| once.0.expect("it has not run")))
    }

    /// Runs `callback` whenever the wall clock shows `first` or a multiple of `period` after it.
    ///
    /// It runs until it is cancelled or panics, the timer is stopped, or the system cannot represent the next moment.
    /// If `first` has passed, the latest past moment is due now. A period shorter than a tick counts as one tick.
    ///
    /// It follows the wall clock, as [`schedule_wall`](Timer::schedule_wall) does. If the clock is set forward past one
    /// or more moments, it runs once, for the first of them. If the clock is set back, the timer waits: a moment that
    /// ran does not run again, and a moment that was skipped runs when it comes. Runs never overlap: moments that pass
    /// during a run are skipped. For days and months, which differ in length, use `schedule_cron` of the feature
    /// `calendar`.
    ///
    /// [`Context::wall_deadline`] returns the moment that a run is for. [`Context::again`] and [`Timeout::reschedule`]
    /// set the time of the next run; after it, the period applies again.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let (began, minute) = (clock.wall_now(), Duration::from_secs(60));
    /// let beat = timer.schedule_wall_every(began + minute, 10 * minute, |_| ())?;
    /// clock.advance(25 * minute)?;
    /// assert_eq!(timer.counts().fired, 3);
    ///
    /// // The clock is set forward past two moments: one run.
    /// clock.set_wall(began + 45 * minute)?;
    /// assert_eq!(timer.counts().fired, 4);
    /// assert_eq!(beat.wall_deadline(), Some(began + 51 * minute));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_wall_every<F>(
        &self,
        first: impl Into<SystemTime>,
        period: Duration,
        callback: F,
    ) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut(&Context<'_>) + Send + 'static,
    {
        let tick = Duration::from_nanos(self.core().context.tick);
        let period =
            planted!("fifth.wall-rhythm-without-a-period-panics", period, period.max(tick));
        let first = first.into();
        let rule = move |after| next_of_rhythm(first, period, after);
        // Of the past moments, only the last runs. If the timer began with the first, all of them would count as run,
        // and none of them would run again after the clock is set back among them.
        let begin = move |now| {
            let last = last_of_rhythm(first, period, now);
            planted!("wall.rhythm-begins-with-its-first", None, last).or(Some(first))
        };
        self.schedule_rule(begin, rule, callback)
    }

    /// Runs `callback` at the moments of a rule, which returns the first moment after a given one. `begin` returns the
    /// very first moment, given the current time.
    pub(crate) fn schedule_rule<F>(
        &self,
        begin: impl FnOnce(SystemTime) -> Option<SystemTime>,
        rule: impl Fn(SystemTime) -> Option<SystemTime> + Send + Sync + 'static,
        callback: F,
    ) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut(&Context<'_>) + Send + 'static,
    {
        let registry = &self.core().delivery.wall;
        if let Err(wrong) = registry.attach(self.core()) {
            return Err(ScheduleError::Thread(callback, wrong));
        }
        let seen = registry.epoch();
        let Some(at) = begin(self.wall_now()) else { return Err(ScheduleError::Never(callback)) };
        let armed = self.schedule_plan(at, Some(Box::new(rule)), seen, ByRule(callback));
        armed.map_err(|error| error.map(|by_rule| by_rule.0))
    }

    /// Arms a timer by its plan. `seen` is the registry's [epoch](Registry::epoch) when `at` was determined.
    fn schedule_plan<C: Callback + 'static>(
        &self,
        at: SystemTime,
        rule: Option<Box<Rule>>,
        seen: u64,
        callback: C,
    ) -> Result<Timeout, ScheduleError<C>> {
        let core = self.core();
        let plan = Arc::new(Plan::new(core.delivery.wall.clone(), at, rule, seen));
        let at_wall = AtWall { callback, plan: plan.clone() };
        let armed = self.schedule_boxed(core.context.clock.when(at), at_wall);
        let timeout = armed.map_err(|error| error.map(|at_wall| at_wall.callback))?;
        plan.enter(timeout.key());
        plan.settle(core);
        Ok(timeout)
    }
}

/// A callback that runs once.
struct AtMoment<F>(Option<F>);

impl<F: FnOnce(&Context<'_>) + Send + 'static> Callback for AtMoment<F> {
    fn call(&mut self, context: &Context<'_>) {
        self.0.take().into_iter().for_each(|callback| callback(context));
    }

    fn can_repeat(&self) -> bool {
        false
    }
}

/// A callback that runs again when its plan has a next time.
struct ByRule<F>(F);

impl<F: FnMut(&Context<'_>) + Send + 'static> Callback for ByRule<F> {
    fn call(&mut self, context: &Context<'_>) {
        (self.0)(context);
        let Some(plan) = context.plan.filter(|_| context.may_repeat) else { return };
        if planted!("blind.cron-overrules-again", false, context.wants_again()) {
            plan.moved();
        } else if let Some(at) = plan.next(&context.core.context.clock) {
            context.set_again(at);
        }
    }
}

/// The first of the moments `first`, `first + period`, … after `after`; `None` if the system cannot represent it.
fn next_of_rhythm(first: SystemTime, period: Duration, after: SystemTime) -> Option<SystemTime> {
    let Some(last) = last_of_rhythm(first, period, after) else { return Some(first) };
    let next = last.checked_add(period)?;
    // If the system's clock is coarser than the period, `next` may have been rounded down.
    if next > after { Some(next) } else { next.checked_add(period) }
}

/// The last of the moments `first`, `first + period`, … up to `now`; `None` if `first` is after `now`.
fn last_of_rhythm(first: SystemTime, period: Duration, now: SystemTime) -> Option<SystemTime> {
    let since = now.duration_since(first).ok()?;
    let part = since.as_nanos() % period.as_nanos();
    let fraction =
        planted!("fourth.wall-rhythm-in-whole-seconds", 0, (part % 1_000_000_000) as u32);
    now.checked_sub(Duration::new((part / 1_000_000_000) as u64, fraction))
}

/// A callback, and when it runs by the wall clock.
struct AtWall<C> {
    callback: C,
    plan: Arc<Plan>,
}

impl<C: Callback + 'static> Callback for AtWall<C> {
    fn call(&mut self, context: &Context<'_>) {
        self.callback.call(context);
    }

    fn can_repeat(&self) -> bool {
        self.callback.can_repeat()
    }

    fn will_not_run(&mut self, state: State, shard: &TimerShard) {
        self.callback.will_not_run(state, shard);
    }

    fn plan(&self) -> Option<&Arc<Plan>> {
        Some(&self.plan)
    }
}
