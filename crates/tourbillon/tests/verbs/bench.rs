//! What the tables of lengths share: the extreme lengths and moments, the engine that they are tried on, and what a
//! row says of its verb.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};

use tourbillon::{BootClock, Builder, Context, Timer, VirtualClock};

use crate::common::{MS, YEAR};

pub(crate) const NS: Duration = Duration::from_nanos(1);
pub(crate) const CENTURY: Duration = YEAR.saturating_mul(100);
/// So many nanoseconds are the end of an engine's time.
pub(crate) const END: Duration = Duration::from_nanos(u64::MAX - (1 << 61));

/// An extreme length of time, and the moments that are as far away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) name: &'static str,
    pub(crate) after: Duration,
    pub(crate) at: Instant,
    pub(crate) wall: SystemTime,
    /// Whether it does not end within a century.
    pub(crate) far: bool,
}

impl Span {
    /// All of them, from these two moments on.
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

    /// From the system's clocks, for verbs that a virtual clock does not reach.
    pub(crate) fn real() -> [Span; 5] {
        Span::all(Instant::now(), SystemTime::now())
    }

    /// Whether it is over as soon as it begins.
    pub(crate) fn is_over(&self) -> bool {
        self.after.is_zero()
    }
}

/// The outermost that `step` reaches, by ever smaller steps.
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

/// Whose time it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    Virtual,
    System,
    Boot,
}

/// A timer. A virtual clock stands between two of its ticks, if there is anything between them.
pub(crate) struct Bench {
    whose: Whose,
    /// Moves nothing if time is not virtual.
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

    /// What was armed just now is there: a clock of the system may have gone past it.
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

/// When what is due at once fires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtOnce {
    /// With the next advance: callbacks never run inside the call.
    No,
    /// Before it: it is there to be taken.
    Yes,
    /// Before it, if the tick that it is filed under has begun.
    OnATick,
}

/// A verb, and how to arm something with it.
pub(crate) struct Row {
    /// As `durations.rs` names it, and if it takes more than one length, which of them.
    pub(crate) verb: &'static str,
    pub(crate) at_once: AtOnce,
    /// With the first advance over so many ticks it fires.
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

    /// Another fires first, or nothing counts as one tick.
    pub(crate) const fn in_two_ticks(self) -> Row {
        Row { ticks: 2, ..self }
    }
}

/// What a row has armed.
pub(crate) struct Armed {
    /// Whether it has fired.
    pub(crate) fired: Box<dyn FnMut() -> bool + Send>,
    /// Takes it back; whether it was pending until then, and is not any more.
    pub(crate) cancel: Box<dyn FnMut() -> bool + Send>,
    /// Stops its engine; whether nothing is pending any more.
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

    /// Counts one more; how many there are now.
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
