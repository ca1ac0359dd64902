//! What the tables of durations share: extreme durations and instants, the engine under test, and the shape of a row.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};

use tourbillon::{BootClock, Builder, Context, Timer, VirtualClock};

use crate::common::{MS, YEAR};

pub(crate) const NS: Duration = Duration::from_nanos(1);
pub(crate) const CENTURY: Duration = YEAR.saturating_mul(100);
/// The end of an engine's time, as a duration since its beginning.
pub(crate) const END: Duration = Duration::from_nanos(u64::MAX - (1 << 61));

/// An extreme duration, and the instants that are as far away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) name: &'static str,
    pub(crate) after: Duration,
    pub(crate) at: Instant,
    pub(crate) wall: SystemTime,
    /// Whether it ends more than a century from now.
    pub(crate) far: bool,
}

impl Span {
    /// All extremes, counted from the given instants.
    pub(crate) fn all(now: Instant, wall: SystemTime) -> [Span; 5] {
        let near = |name, after| {
            let (at, wall) = (now + after, wall + after);
            Span { name, after, at, wall, far: false }
        };
        let past =
            Span { at: first(now), wall: first_wall(wall), ..near("the far past", Duration::ZERO) };
        let far = |name, after| Span {
            name,
            after,
            at: now.checked_add(after).unwrap_or_else(|| last(now)),
            wall: wall.checked_add(after).unwrap_or_else(|| last_wall(wall)),
            far: true,
        };
        [
            near("nothing", Duration::ZERO),
            past,
            near("a nanosecond", NS),
            far("u64::MAX nanoseconds", Duration::from_nanos(u64::MAX)),
            far("Duration::MAX", Duration::MAX),
        ]
    }

    /// Counted from the system's clocks, for verbs that do not use a virtual clock.
    pub(crate) fn real() -> [Span; 5] {
        Span::all(Instant::now(), SystemTime::now())
    }

    /// Whether it has passed as soon as it begins.
    pub(crate) fn is_over(&self) -> bool {
        self.after.is_zero()
    }
}

/// The farthest value that `step` reaches from `from`. Halves the step whenever it fails.
fn outermost<M: Copy>(from: M, step: impl Fn(M, Duration) -> Option<M>) -> M {
    let (mut at, mut by) = (from, Duration::MAX);
    while by > Duration::ZERO {
        match step(at, by) {
            Some(further) => at = further,
            None => by /= 2,
        }
    }
    at
}

fn first(now: Instant) -> Instant {
    outermost(now, |at, by| at.checked_sub(by))
}

fn last(now: Instant) -> Instant {
    outermost(now, |at, by| at.checked_add(by))
}

fn first_wall(now: SystemTime) -> SystemTime {
    outermost(now, |at, by| at.checked_sub(by))
}

fn last_wall(now: SystemTime) -> SystemTime {
    outermost(now, |at, by| at.checked_add(by))
}

/// The clock that a bench uses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    Virtual,
    System,
    Boot,
}

/// A timer under test. A virtual clock starts between two ticks, if a tick is longer than a nanosecond.
pub(crate) struct Bench {
    whose: Whose,
    /// The timer's clock if time is virtual; otherwise unused.
    pub(crate) clock: VirtualClock,
    pub(crate) timer: Timer,
    pub(crate) tick: Duration,
}

impl Bench {
    pub(crate) fn new(whose: Whose, tick: Duration) -> Self {
        let clock = VirtualClock::new();
        clock.advance(MS + NS * 500_007).unwrap();
        let timer = builder(whose, &clock, tick).build().unwrap();
        Bench { whose, clock, timer, tick }
    }

    pub(crate) fn builder(&self) -> Builder {
        builder(self.whose, &self.clock, self.tick)
    }

    /// Asserts that the armed timer has a deadline. With a system clock, the deadline may already have passed.
    pub(crate) fn holds(&self, deadline: Option<Instant>) {
        assert!(deadline.is_some() || !matches!(self.whose, Whose::Virtual));
    }

    pub(crate) fn spans(&self) -> [Span; 5] {
        Span::all(self.timer.now(), self.timer.wall_now())
    }
}

fn builder(whose: Whose, clock: &VirtualClock, tick: Duration) -> Builder {
    let builder = Timer::builder().on_driver().shards(1).tick(tick);
    match whose {
        Whose::Virtual => builder.clock(clock),
        Whose::System => builder,
        Whose::Boot => builder.clock(BootClock),
    }
}

/// When a timer with a zero delay fires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtOnce {
    /// With the next advance: callbacks never run inside the call that arms them.
    No,
    /// Before the next advance: the value can be taken at once.
    Yes,
    /// Before the next advance, if the tick of its deadline has begun.
    OnATick,
}

/// A verb, and how to arm something with it.
pub(crate) struct Row {
    /// The name as in `durations.rs`, with the parameter if the verb takes more than one duration.
    pub(crate) verb: &'static str,
    pub(crate) at_once: AtOnce,
    /// It fires with the first advance by this many ticks.
    pub(crate) ticks: u32,
    pub(crate) arm: fn(&Bench, &Span) -> Armed,
}

pub(crate) const fn row(verb: &'static str, arm: fn(&Bench, &Span) -> Armed) -> Row {
    Row { verb, at_once: AtOnce::No, ticks: 1, arm }
}

impl Row {
    pub(crate) const fn at_once(self) -> Row {
        Row { at_once: AtOnce::Yes, ..self }
    }

    pub(crate) const fn on_a_tick(self) -> Row {
        Row { at_once: AtOnce::OnATick, ..self }
    }

    /// For a verb that fires after another timer, or that rounds a zero duration up to one tick.
    pub(crate) const fn in_two_ticks(self) -> Row {
        Row { ticks: 2, ..self }
    }
}

/// What a row has armed.
pub(crate) struct Armed {
    /// Whether it has fired.
    pub(crate) fired: Box<dyn FnMut() -> bool + Send>,
    /// Cancels it. Returns whether it was pending before and no longer is.
    pub(crate) cancel: Box<dyn FnMut() -> bool + Send>,
    /// Stops its engine. Returns whether nothing is pending any more.
    pub(crate) stop: Box<dyn FnMut() -> bool + Send>,
}

/// A callback that counts its runs, and the count.
#[derive(Clone)]
pub(crate) struct Rung(Arc<AtomicUsize>);

pub(crate) type Ring = Box<dyn FnMut(&Context<'_>) + Send>;

impl Rung {
    pub(crate) fn new() -> Self {
        Rung(Arc::new(AtomicUsize::new(0)))
    }

    /// Increments the count and returns it.
    pub(crate) fn add(&self) -> usize {
        self.0.fetch_add(1, SeqCst) + 1
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(SeqCst)
    }

    pub(crate) fn ring(&self) -> Ring {
        let own = self.clone();
        Box::new(move |_| _ = own.add())
    }
}
