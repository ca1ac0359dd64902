//! Thousands of timers in few slots, against the oracle. They exercise what a handful of timers does not: rings of many
//! chunks from which timers are removed at both ends, slots so large that their least timers are kept in a heap, and
//! budgets that interrupt a slot while its timers are cancelled and moved.
//!
//! `TOURBILLON_LARGE` sets how many wheels of each shape are tested; `TOURBILLON_SEED` selects another run.

mod oracle;

use std::collections::{BTreeMap, BTreeSet};

use oracle::{Rng, Shape};
use tourbillon_wheel::{HashedWheel, HierarchicalWheel, Key, Kind, Progress, Time, Wheel};

struct Timer {
    due: u64,
    /// The tick it fires at, if it was not moved while it was ready.
    fires: Option<u64>,
    /// Its index in `keys`.
    nth: usize,
}

struct Run<K> {
    shape: Shape,
    rng: Rng,
    wheel: Wheel<u64, K>,
    start: u64,
    timers: BTreeMap<Key, Timer>,
    by_due: BTreeSet<(u64, Key)>,
    keys: Vec<Key>,
    /// Deadlines are in ticks from here, within this many ticks.
    base: u64,
    width: u64,
}

impl<K: Kind> Run<K> {
    fn new(shape: Shape, seed: u64, wheel: impl Fn(Time) -> Wheel<u64, K>) -> Self {
        let mut rng = Rng::new(seed);
        let start = match rng.below(3) {
            0 => 0,
            1 => rng.below(10_000),
            _ => u64::MAX - rng.below(1 << 40),
        };
        let wheel = wheel(Time::from(start));
        let mut run = Run {
            shape,
            rng,
            wheel,
            start,
            timers: BTreeMap::new(),
            by_due: BTreeSet::new(),
            keys: Vec::new(),
            base: 0,
            width: 1,
        };
        run.aim();
        run
    }

    fn hand(&self) -> u64 {
        (self.wheel.now().units() - self.start) / self.shape.tick
    }

    /// Chooses where the next timers are inserted: mostly into one slot of some level.
    fn aim(&mut self) {
        let spans = self.shape.spans();
        let span = spans[self.rng.below(spans.len().min(5) as u64) as usize];
        let hand = self.hand();
        self.width = self.rng.pick(&[1, 2, span, span, span, 3 * span, 10_000]);
        self.base = (hand / span + 1 + self.rng.below(3)) * span;
    }

    fn tick(&mut self) -> u64 {
        let near = self.rng.below(self.width);
        match self.rng.below(64) {
            0 => self.hand().saturating_sub(near),
            1 => self.hand() + near,
            2 => self.base + near + self.shape.edge(&mut self.rng) / self.shape.tick % (1 << 30),
            _ => self.base + near,
        }
    }

    /// A deadline that is due at about this tick, and the tick it is due at.
    fn deadline(&mut self, tick: u64) -> (Time, u64) {
        let off = self.rng.below(self.shape.tick);
        let units = tick.saturating_mul(self.shape.tick).saturating_sub(off);
        let deadline = self.start.saturating_add(units);
        (Time::from(deadline), (deadline - self.start).div_ceil(self.shape.tick))
    }

    fn insert(&mut self) {
        let tick = self.tick();
        let (deadline, due) = self.deadline(tick);
        let key = self.wheel.insert(deadline, due).unwrap();
        let fires = Some(due.max(self.hand()));
        let timer = Timer { due, fires, nth: self.keys.len() };
        assert!(self.timers.insert(key, timer).is_none(), "a key was given twice");
        self.by_due.insert((due, key));
        self.keys.push(key);
    }

    fn forget(&mut self, key: Key) -> Timer {
        let timer = self.timers.remove(&key).expect("it was pending");
        assert!(self.by_due.remove(&(timer.due, key)));
        self.keys.swap_remove(timer.nth);
        if let Some(moved) = self.keys.get(timer.nth) {
            self.timers.get_mut(moved).unwrap().nth = timer.nth;
        }
        timer
    }

    fn cancel(&mut self, key: Key) {
        let timer = self.forget(key);
        assert_eq!(self.wheel.cancel(key), Some(timer.due), "the value is the due tick");
    }

    fn reschedule(&mut self, key: Key, tick: u64) {
        let (deadline, due) = self.deadline(tick);
        let was_ready = self.wheel.place(key) == Some(tourbillon_wheel::Place::Due);
        self.wheel.reschedule(key, deadline).unwrap();
        if let Some(value) = self.wheel.get_mut(key) {
            *value = due;
        }
        let hand = self.hand();
        let timer = self.timers.get_mut(&key).unwrap();
        assert!(self.by_due.remove(&(timer.due, key)));
        self.by_due.insert((due, key));
        timer.due = due;
        timer.fires = (!was_ready && due > hand).then_some(due);
    }

    fn some(&mut self) -> Option<Key> {
        (!self.keys.is_empty()).then(|| self.rng.pick(&self.keys))
    }

    fn earliest(&self) -> Option<(u64, Key)> {
        self.by_due.first().copied()
    }

    fn next_due(&mut self) {
        let hand = self.hand();
        let time = |tick: u64| {
            let units = u128::from(tick) * u128::from(self.shape.tick) + u128::from(self.start);
            u64::try_from(units).ok().map(Time::from)
        };
        let expected = self.earliest().and_then(|(due, _)| time(due.max(hand)));
        let (bound, slot) = (self.wheel.next_due_bound(), self.wheel.next_slot());
        assert_eq!(self.wheel.next_due(), expected, "at {hand}");
        if let Some(expected) = expected {
            assert!(bound.unwrap() <= expected && slot.unwrap() <= expected);
            assert!(self.wheel.next_due_bound().unwrap() <= expected);
        }
    }

    /// One operation that does not move the hand.
    fn touch(&mut self) {
        match self.rng.below(10) {
            0 | 1 => {
                if let Some((_, key)) = self.earliest() {
                    self.cancel(key);
                }
            }
            2 => {
                if let Some(key) = self.some() {
                    self.cancel(key);
                }
            }
            3 => {
                if let Some((due, key)) = self.earliest() {
                    let by = self.rng.below(self.width + 2);
                    self.reschedule(key, due.saturating_add(by));
                }
            }
            4 | 5 => {
                if let Some(key) = self.some() {
                    let tick = self.tick();
                    self.reschedule(key, tick);
                }
            }
            6 => {
                if let Some(key) = self.some() {
                    let (due, by) = (self.timers[&key].due, self.rng.below(40));
                    self.reschedule(key, due.saturating_sub(by));
                }
            }
            7 => {
                // At or near the end of a ring: one of the last inserted.
                let nth = self.keys.len().saturating_sub(1 + self.rng.below(40) as usize);
                if let Some(&key) = self.keys.get(nth) {
                    self.cancel(key);
                }
            }
            _ => self.insert(),
        }
        if self.rng.one_in(2) {
            self.next_due();
        }
    }

    fn advance(&mut self, target: u64) {
        let units = target.saturating_mul(self.shape.tick);
        let now = Time::from(self.start.saturating_add(units));
        let target = ((now.units() - self.start) / self.shape.tick).max(self.hand());
        let mut last = 0;
        let mut moved = 0;
        loop {
            let budget = self.rng.pick(&[1, 7, 31, 32, 33, 500, 5_000, usize::MAX]);
            let progress = self.wheel.advance(now, budget);
            let leave = if self.rng.one_in(4) { self.rng.below(40) as usize } else { 0 };
            while self.wheel.ready() > leave {
                let expired = self.wheel.pop().unwrap();
                let timer = self.forget(expired.key);
                assert_eq!(expired.value, timer.due);
                assert!(timer.due <= self.hand(), "early");
                if let Some(fires) = timer.fires {
                    assert!(fires >= last, "{fires} after {last}");
                    last = fires;
                }
            }
            if moved < 400 && self.rng.one_in(2) {
                for _ in 0..self.rng.below(4) {
                    self.touch();
                    moved += 1;
                }
            }
            match self.rng.below(400) {
                0 => self.wheel.shrink().unwrap(),
                1 => self.wheel.check().unwrap(),
                _ => {}
            }
            match progress {
                Progress::Done if self.wheel.ready() == 0 => break,
                Progress::OutOfMemory => panic!("there is memory"),
                _ => {}
            }
        }
        assert_eq!(self.hand(), target);
        if moved == 0 {
            let late = self.earliest().filter(|&(due, _)| due <= target);
            assert_eq!(late, None, "lost at {target}");
        }
    }

    fn live(&mut self) {
        let most = self.rng.pick(&[200, 3_000, 9_000, 9_000, 20_000]);
        for _ in 0..1 + self.rng.below(2) {
            self.aim();
            for _ in 0..most {
                self.insert();
            }
        }
        self.wheel.check().unwrap();
        for step in 0..3_000 {
            match self.rng.below(200) {
                0 | 1 => {
                    let by = self.rng.below(self.width + 1) / 8;
                    self.advance(self.hand() + by);
                }
                2 => self.advance(self.hand() + 1),
                3 => {
                    if let Some((due, _)) = self.earliest() {
                        self.advance(due);
                    }
                }
                4 if self.rng.one_in(20) => self.wheel.shrink().unwrap(),
                5 if self.rng.one_in(100) => {
                    self.wheel.clear();
                    while let Some(&key) = self.keys.last() {
                        self.forget(key);
                    }
                }
                6 => self.aim(),
                7 => {
                    for _ in 0..self.rng.below(2_000) {
                        self.insert();
                    }
                }
                8 => {
                    // Cancels the earliest repeatedly, until the heap is used up and beyond.
                    for _ in 0..self.rng.below(3_000) {
                        if let Some((due, key)) = self.earliest() {
                            if self.rng.one_in(3) {
                                let by = self.rng.below(self.width);
                                self.reschedule(key, due.saturating_add(by));
                            } else {
                                self.cancel(key);
                            }
                            self.next_due();
                        }
                    }
                }
                _ => self.touch(),
            }
            assert_eq!(self.wheel.len(), self.timers.len());
            if step % 200 == 0 {
                self.wheel.check().unwrap();
            }
        }
        // Until nothing is pending.
        while let Some((due, _)) = self.earliest() {
            let due = due.max(self.hand());
            let units = u128::from(due) * u128::from(self.shape.tick) + u128::from(self.start);
            if units > u128::from(u64::MAX) {
                break;
            }
            self.advance(due);
            if self.rng.one_in(50) {
                self.wheel.check().unwrap();
            }
            if self.timers.len() < 50 || self.rng.one_in(400) {
                break;
            }
        }
        self.wheel.check().unwrap();
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

fn run<K: Kind>(shape: Shape, wheel: impl Fn(Time) -> Wheel<u64, K>) {
    let first = setting("TOURBILLON_SEED").unwrap_or(1);
    for seed in first..first + setting("TOURBILLON_LARGE").unwrap_or(30) {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Run::new(shape, seed, &wheel).live();
        }));
        if let Err(panic) = caught {
            eprintln!("{shape:?}: TOURBILLON_SEED={seed} TOURBILLON_LARGE=1 shows it again");
            std::panic::resume_unwind(panic);
        }
    }
}

fn hierarchical(tick: u64, slots: &'static [u32]) {
    run(Shape { hashed: false, tick, slots }, |start| {
        HierarchicalWheel::with_levels(start, tick, slots).unwrap()
    });
}

fn hashed(tick: u64, slots: &'static [u32]) {
    run(Shape { hashed: true, tick, slots }, |start| {
        HashedWheel::with_slots(start, tick, slots[0]).unwrap()
    });
}

#[test]
fn hierarchical_256() {
    hierarchical(1, &[256]);
}

#[test]
fn hierarchical_2() {
    hierarchical(1, &[2]);
}

#[test]
fn hierarchical_3_2_5() {
    hierarchical(7, &[3, 2, 5]);
}

#[test]
fn hierarchical_clock_face() {
    hierarchical(10, &[60, 60, 24]);
}

#[test]
fn hierarchical_4096() {
    hierarchical(1, &[4096]);
}

#[test]
fn hashed_1() {
    hashed(1, &[1]);
}

#[test]
fn hashed_8() {
    hashed(3, &[8]);
}

#[test]
fn hashed_512() {
    hashed(1, &[512]);
}
