//! Checks correctness: compares every contestant with an oracle, on the same random traces.
//!
//! A trace is a few thousand random operations, with delays at the edges where wheels fail: around powers of 64 and of
//! 256, at the ends of turns, at the longest delay that the contestant's documentation allows, and after odd steps of
//! time. The oracle is a `BTreeSet`. A panic of the contestant ends the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::league::Readings;
use crate::rng::Rng;
use crate::wheel::contestant::Contestant;

const OPERATIONS: usize = 6000;
/// The number of traces, each from an empty contestant: a fault that ends one trace does not hide faults in the others.
const TRACES: u64 = 8;

/// The faults of a contestant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Fired before their deadline.
    pub early: usize,
    /// Fired more than one tick after their deadline, although an earlier step had already reached it.
    pub late: usize,
    /// Never fired.
    pub lost: usize,
    /// Fired twice, or after being cancelled.
    pub ghosts: usize,
    /// Traces that ended in a panic.
    pub panics: usize,
}

impl Faults {
    pub fn readings(&self) -> Readings {
        let count = |count: usize| count as f64;
        vec![
            ("early", count(self.early)),
            ("late", count(self.late)),
            ("lost", count(self.lost)),
            ("ghosts", count(self.ghosts)),
            ("panics", count(self.panics)),
        ]
    }
}

/// Replays the traces and adds up the faults.
pub fn replay<C: Contestant>() -> Faults {
    let mut faults = Faults::default();
    // A peer's panic is a result, not an accident: its message stays out of the table.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for seed in 1..=TRACES {
        let mut trace = Trace::<C>::new(seed);
        let ended = catch_unwind(AssertUnwindSafe(|| trace.run()));
        faults.panics += usize::from(ended.is_err());
        trace.add_to(&mut faults);
    }
    std::panic::set_hook(hook);
    faults
}

struct Timer<K> {
    due: u64,
    /// The number of steps of time when the timer got this deadline.
    since: usize,
    key: K,
}

struct Trace<C: Contestant> {
    timers: C,
    rng: Rng,
    now: u64,
    /// The number of steps of time so far.
    steps: usize,
    /// Live timers by payload.
    live: BTreeMap<u32, Timer<C::Key>>,
    /// The oracle: (deadline, payload).
    due: BTreeSet<(u64, u32)>,
    started: u32,
    faults: Faults,
}

impl<C: Contestant> Trace<C> {
    fn new(seed: u64) -> Self {
        let (live, due) = (BTreeMap::new(), BTreeSet::new());
        Trace {
            timers: C::new(OPERATIONS),
            rng: Rng::new(seed),
            now: 0,
            steps: 0,
            live,
            due,
            started: 0,
            faults: Faults::default(),
        }
    }

    fn run(&mut self) {
        for _ in 0..OPERATIONS {
            match self.rng.below(20) {
                0..=8 => self.start(),
                9..=10 => self.cancel(),
                11..=13 => self.reschedule(),
                _ => self.step(),
            }
        }
        while let Some(&(due, _)) = self.due.first() {
            let before = self.due.len();
            self.advance(due.max(self.now));
            // Allows one more tick to contestants that fire late; after that, the timers are lost.
            if self.due.len() == before {
                self.advance(due.max(self.now) + 1);
            }
            let overdue: Vec<_> = self.due.range(..(self.now, 0)).copied().collect();
            for lost in overdue {
                self.due.remove(&lost);
                self.faults.lost += 1;
            }
        }
    }

    /// A delay at an edge, within what the contestant allows.
    fn delay(&mut self) -> u64 {
        let (least, most) = C::DELAYS;
        let near = self.rng.below(9);
        let raw = match self.rng.below(6) {
            0 => (1_u64 << (6 * self.rng.below(9))).saturating_add(near).saturating_sub(4),
            1 => (1_u64 << (8 * self.rng.below(7))).saturating_add(near).saturating_sub(4),
            2 => self.rng.below(64),
            3 => 1 << self.rng.below(50),
            4 => most.saturating_sub(near),
            _ => self.rng.below(100_000),
        };
        raw.clamp(least, most)
    }

    fn start(&mut self) {
        let due = self.now + self.delay();
        let payload = self.started;
        self.started += 1;
        let key = self.timers.start(due, payload);
        self.book(payload, due, key);
    }

    fn book(&mut self, payload: u32, due: u64, key: C::Key) {
        self.live.insert(payload, Timer { due, since: self.steps, key });
        self.due.insert((due, payload));
    }

    /// Removes a random live timer from the records.
    fn pick(&mut self) -> Option<(u32, C::Key)> {
        let from = self.rng.below(u64::from(self.started) + 1) as u32;
        let payload = *self.live.range(from..).next().or_else(|| self.live.iter().next())?.0;
        let Timer { due, key, .. } = self.live.remove(&payload)?;
        self.due.remove(&(due, payload));
        Some((payload, key))
    }

    fn cancel(&mut self) {
        if let Some((payload, key)) = self.pick() {
            let answer = self.timers.cancel(key);
            self.faults.ghosts += usize::from(answer != Some(payload));
        }
    }

    fn reschedule(&mut self) {
        if let Some((payload, key)) = self.pick() {
            let due = self.now + self.delay();
            let key = self.timers.reschedule(key, due);
            self.book(payload, due, key);
        }
    }

    /// Advances time by a tick, by a little, to or near the next deadline, or by a leap.
    fn step(&mut self) {
        let next = self.due.first().map_or(self.now, |first| first.0);
        let to = match self.rng.below(8) {
            0..=2 => self.now + 1,
            3 => self.now + self.rng.below(300),
            4 => next,
            5 => next.saturating_sub(1),
            6 => next + 1,
            _ => self.now + (1 << self.rng.below(34)) + self.rng.below(7),
        };
        self.advance(to.max(self.now));
    }

    fn advance(&mut self, now: u64) {
        let before = self.now;
        self.now = now;
        self.steps += 1;
        let mut fired = Vec::new();
        self.timers.advance(now, &mut |payload| fired.push(payload));
        for payload in fired {
            let Some(Timer { due, since, key }) = self.live.remove(&payload) else {
                self.faults.ghosts += 1;
                continue;
            };
            self.timers.release(key);
            self.faults.early += usize::from(due > now);
            // Late if an earlier step had reached the deadline. Contestants that round up get a tick of grace.
            let missed = before >= due && self.steps > since + 1;
            self.faults.late += usize::from(missed && now > due + 1);
            self.due.remove(&(due, payload));
        }
    }

    fn add_to(self, total: &mut Faults) {
        let Trace { mut timers, live, faults, .. } = self;
        for (_, timer) in live {
            timers.release(timer.key);
        }
        total.early += faults.early;
        total.late += faults.late;
        total.lost += faults.lost;
        total.ghosts += faults.ghosts;
    }
}
