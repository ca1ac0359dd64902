//! Both wheels against the oracle, step by step, with inputs generated at the edges.
//!
//! After every step, these are compared: the result, `check()`, the exact `next_due`, its bound, and the count. A run
//! prints how often each class of input occurred, and fails if one was too rare to be a test.
//!
//! `TOURBILLON_STEPS` sets the number of steps for each wheel; `TOURBILLON_SEED` selects another run.

mod oracle;

use std::collections::BTreeMap;
use std::fmt::Write;

use oracle::{Oracle, Pending, Rng, Shape};
use tourbillon_wheel::{
    HashedWheel, HierarchicalWheel, Key, Kind, Moved, Place, Progress, RescheduleError, Slot, Time,
    Wheel,
};

const SHAPES: &[Shape] = &[
    Shape { hashed: false, tick: 1, slots: &[256] },
    Shape { hashed: false, tick: 1, slots: &[64] },
    Shape { hashed: false, tick: 10, slots: &[20] },
    Shape { hashed: false, tick: 1, slots: &[60, 60, 24] },
    Shape { hashed: false, tick: 7, slots: &[256, 64, 64] },
    Shape { hashed: false, tick: 1, slots: &[2] },
    Shape { hashed: false, tick: 1, slots: &[3, 2, 5] },
    Shape { hashed: false, tick: 1_000_000, slots: &[512, 8] },
    Shape { hashed: true, tick: 1, slots: &[1] },
    Shape { hashed: true, tick: 1, slots: &[8] },
    Shape { hashed: true, tick: 10, slots: &[60] },
    Shape { hashed: true, tick: 1, slots: &[512] },
];

/// Steps with one wheel before the next: long enough for several turns, short enough for many start times.
const LIFE: u64 = 400;
/// A few timers reach as many edge cases as many do, and keep `check()` fast.
const MOST_PENDING: usize = 24;

struct Run<K> {
    shape: Shape,
    rng: Rng,
    wheel: Wheel<u64, K>,
    oracle: Oracle,
    clock: u64,
    /// Keys that are no longer pending, and keys of other wheels.
    stale: Vec<Key>,
    foreign: Vec<Key>,
    met: BTreeMap<String, u64>,
    serial: u64,
    /// How many times the wheel was advanced.
    passes: u64,
}

impl<K: Kind> Run<K> {
    fn new(shape: Shape, seed: u64, wheel: impl Fn(Time) -> Wheel<u64, K>) -> Self {
        let mut rng = Rng::new(seed);
        let start = shape.start(&mut rng);
        let mut other = wheel(Time::ZERO);
        let foreign = (0..4).map(|n| other.insert(Time::from(n), n).unwrap()).collect();
        Run {
            shape,
            rng,
            wheel: wheel(Time::from(start)),
            oracle: Oracle { start, tick: shape.tick, pending: BTreeMap::new() },
            clock: start,
            stale: Vec::new(),
            foreign,
            met: BTreeMap::new(),
            serial: 0,
            passes: 0,
        }
    }

    fn count(&mut self, class: &str) {
        match self.met.get_mut(class) {
            Some(count) => *count += 1,
            None => drop(self.met.insert(class.to_string(), 1)),
        }
    }

    fn hand(&self) -> u64 {
        self.oracle.current(self.wheel.now().units())
    }

    fn deadline(&mut self) -> u64 {
        let edge = self.shape.edge(&mut self.rng);
        if self.rng.one_in(12) {
            self.clock.saturating_sub(edge)
        } else {
            self.clock.saturating_add(edge)
        }
    }

    fn any_pending(&mut self) -> Option<Key> {
        let nth = self.rng.below(self.oracle.pending.len().max(1) as u64) as usize;
        self.oracle.pending.keys().nth(nth).copied()
    }

    /// A key that the wheel must refuse.
    fn dead_key(&mut self) -> Option<(Key, &'static str)> {
        if self.rng.one_in(3) {
            return Some((self.rng.pick(&self.foreign), "foreign key"));
        }
        (!self.stale.is_empty()).then(|| (self.rng.pick(&self.stale), "stale key"))
    }

    fn insert(&mut self) {
        let deadline = self.deadline();
        let (due, hand) = (self.oracle.due(deadline), self.hand());
        let expected = self.shape.place(due, hand);
        if self.timers_at(expected) == 1 {
            self.count("a lone timer gets company");
        }
        assert_eq!(self.wheel.place_of(Time::from(deadline)), expected);
        let key = self.wheel.insert(Time::from(deadline), self.serial).unwrap();
        assert_eq!(self.wheel.place(key), Some(expected), "due {due} at {hand}");
        assert_eq!(self.wheel.get(key), Some(&self.serial));
        self.serial += 1;
        let (fires, pass) = (due.max(hand), self.passes);
        let timer = Pending { due, fires, moves: [0; 2], was_ready: false, pass };
        assert!(self.oracle.pending.insert(key, timer).is_none(), "a key was given twice");
        if due <= hand {
            self.count("past");
        }
        if deadline == u64::MAX {
            self.count("saturated");
        }
        if let Place::Level { slot, level } = expected {
            let unit = self.shape.spans()[level as usize - 1];
            if u64::from(slot) <= hand / unit % self.slots(level) {
                self.count("reused slot");
            }
        } else if matches!(expected, Place::Ring { slot, .. } if u64::from(slot) <= hand % self.slots(1))
        {
            self.count("reused slot");
        }
    }

    /// How many timers are in the slot of a place, in any round.
    fn timers_at(&self, place: Place) -> usize {
        let slot = self.wheel.occupied().find(|slot| Some(slot.slot) == place.slot());
        slot.map_or(0, |slot| slot.timers)
    }

    /// Every timer that is not ready counts once in an occupied slot: that of its place.
    fn check_occupied(&self) {
        let mut slots: BTreeMap<Slot, usize> = BTreeMap::new();
        for slot in self.wheel.occupied() {
            assert!(
                slots.insert(slot.slot, slot.timers).is_none(),
                "{} is listed twice",
                slot.slot
            );
        }
        let keys = self.oracle.pending.keys();
        for slot in keys.filter_map(|&key| self.wheel.place(key).and_then(Place::slot)) {
            let left = slots.get_mut(&slot).expect("the slot of a timer is occupied");
            *left = left.checked_sub(1).expect("it counts all timers that belong there");
        }
        // The remaining timers are due: they are in the slot under the hand, or ready.
        let due = self.oracle.pending.values().filter(|timer| timer.due <= self.hand()).count();
        assert_eq!(slots.values().sum::<usize>() + self.wheel.ready(), due);
    }

    fn slots(&self, level: u32) -> u64 {
        u64::from(self.shape.slots[(level as usize - 1).min(self.shape.slots.len() - 1)])
    }

    fn cancel(&mut self) {
        if let (true, Some((key, class))) = (self.rng.one_in(4), self.dead_key()) {
            self.count(class);
            assert_eq!(self.wheel.cancel(key), None, "{class}");
            assert_eq!(self.wheel.get(key), None);
            assert_eq!(self.wheel.due(key), None);
            assert_eq!(self.wheel.place(key), None);
        } else if let Some(key) = self.any_pending() {
            if self.wheel.place(key).is_some_and(|place| self.timers_at(place) == 1) {
                self.count("a lone timer is cancelled");
            }
            assert!(self.wheel.cancel(key).is_some());
            self.forget(key);
        }
    }

    fn forget(&mut self, key: Key) {
        assert!(self.oracle.pending.remove(&key).is_some());
        if self.stale.len() == 64 {
            let nth = self.rng.below(64) as usize;
            self.stale.swap_remove(nth);
        }
        self.stale.push(key);
    }

    fn reschedule(&mut self) {
        if let (true, Some((key, class))) = (self.rng.one_in(4), self.dead_key()) {
            self.count(class);
            let deadline = Time::from(self.deadline());
            assert_eq!(self.wheel.reschedule(key, deadline), Err(RescheduleError::NotPending));
            return;
        }
        let Some(key) = self.any_pending() else { return };
        for _ in 0..self.rng.pick(&[1, 1, 1, 1, 4]) {
            self.move_one(key);
        }
    }

    fn move_one(&mut self, key: Key) {
        let deadline = match self.rng.below(3) {
            // Near its current deadline, a little earlier or later: in the same slot, or the next one.
            0 => {
                let now = self.wheel.due(key).unwrap().units();
                let by = self.shape.edge(&mut self.rng).min(3 * self.shape.tick * self.slots(1));
                if self.rng.one_in(2) { now.saturating_sub(by) } else { now.saturating_add(by) }
            }
            _ => self.deadline(),
        };
        let hand = self.hand();
        let value = self.wheel.get(key);
        let ready = self.wheel.iter_ready().any(|ready| Some(ready) == value);
        assert_eq!(self.wheel.reschedule(key, Time::from(deadline)), Ok(()));
        let due = self.oracle.due(deadline);
        assert_eq!(self.wheel.due(key), Some(self.oracle.time(due).unwrap_or(Time::MAX)));
        let timer = self.oracle.pending.get_mut(&key).unwrap();
        let way = (due > timer.due) as i8 - (due < timer.due) as i8;
        let three_steps = timer.moves == [1, -1] && way == 1;
        let (moves, was_ready) = ([timer.moves[1], way], timer.was_ready || ready);
        *timer = Pending { due, fires: due.max(hand), moves, was_ready, pass: self.passes };
        if three_steps {
            self.count("later, earlier, later");
        }
    }

    /// Advances to `now` in passes, with cancels and moves between the pops.
    fn advance(&mut self, now: u64) {
        let now = if self.rng.one_in(50) {
            now.saturating_sub(self.shape.edge(&mut self.rng))
        } else {
            now
        };
        self.clock = self.clock.max(now);
        let target = self.oracle.current(now).max(self.hand());
        let mut last = 0;
        loop {
            let budget =
                if self.rng.one_in(2) { usize::MAX } else { 1 + self.rng.below(4) as usize };
            let mut moved = Vec::new();
            let (before, ready) = (self.hand(), self.wheel.ready());
            self.passes += 1;
            let progress = self
                .wheel
                .advance_watched(Time::from(now), budget, |moved_one| moved.push(moved_one));
            assert!(self.hand() >= before && self.hand() <= target);
            assert!(self.wheel.ready() - ready <= budget, "a budget of {budget} fires no more");
            assert!(moved.len() <= budget, "nor does it hand down more");
            if progress == Progress::More && self.wheel.ready() == 0 {
                self.count("budget cut while handing down");
            }
            for (nth, &Moved { key, from, to, .. }) in moved.iter().enumerate() {
                self.handed_down(key, from, to);
                let others = moved.iter().enumerate().filter(|&(other, _)| other != nth);
                if budget == usize::MAX && others.clone().all(|(_, other)| other.from != from) {
                    self.count("a lone timer is handed down");
                }
            }
            self.wheel.check().unwrap();
            self.pop_some(target, &mut last);
            match progress {
                Progress::Done => break,
                Progress::More => {}
                Progress::OutOfMemory => panic!("there is memory"),
            }
        }
        while self.wheel.ready() > 0 {
            self.pop_some(target, &mut last);
        }
        assert_eq!(self.hand(), target);
        // Only timers that were inserted or moved between the last pops may be left.
        for (key, timer) in &self.oracle.pending {
            let late = timer.due <= target && timer.pass < self.passes;
            assert!(!late, "{key:?} {timer:?} was lost at {target}");
        }
    }

    fn handed_down(&mut self, key: Key, from: Place, to: Place) {
        let (Place::Level { level: from, .. }, Place::Level { level: to, .. }) = (from, to) else {
            panic!("{key:?} went from {from} to {to}");
        };
        assert!(to < from);
        self.count(&format!("handed down from L{from:02}"));
    }

    fn pop_some(&mut self, target: u64, last: &mut u64) {
        loop {
            let next = self.wheel.peek().map(|(key, _)| key);
            let Some(expired) = self.wheel.pop() else { break assert_eq!(next, None) };
            assert_eq!(next, Some(expired.key), "what was seen is popped");
            let timer = self.oracle.pending[&expired.key];
            assert!(timer.due <= target, "{timer:?} fired early, at {target}");
            assert_eq!(Some(expired.due), self.oracle.time(timer.due));
            assert!(timer.fires >= *last, "{timer:?} fired after one of {last}");
            *last = if timer.was_ready { timer.due.max(*last) } else { timer.fires };
            self.forget(expired.key);
            match self.rng.below(24) {
                0 => self.cancel(),
                1 => self.reschedule(),
                2 => self.insert(),
                3 => self.wheel.check().unwrap(),
                4 => break,
                _ => {}
            }
        }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..=34 if self.oracle.pending.len() < MOST_PENDING => self.insert(),
            0..=44 => self.cancel(),
            45..=69 => self.reschedule(),
            70..=79 => {
                let edge = self.shape.edge(&mut self.rng);
                self.advance(self.clock.saturating_add(edge));
            }
            80..=89 => {
                let next =
                    if self.rng.one_in(2) { self.wheel.next_due() } else { self.wheel.next_slot() };
                self.advance(next.map_or(self.clock, Time::units));
            }
            90..=97 => self.advance(self.clock.saturating_add(self.shape.tick)),
            98 => self.wheel.shrink().unwrap(),
            _ if self.rng.one_in(8) => {
                self.wheel.clear();
                for key in self.oracle.pending.keys().copied().collect::<Vec<_>>() {
                    self.forget(key);
                }
            }
            _ => self.advance(self.clock),
        }
    }

    fn agree(&mut self) {
        self.wheel.check().unwrap();
        assert_eq!(self.wheel.len(), self.oracle.pending.len());
        let hand = self.hand();
        let bound = self.wheel.next_due_bound();
        let slot = self.wheel.next_slot();
        let next = self.wheel.next_due();
        assert_eq!(next, self.oracle.next_due(hand), "at {hand}: {:?}", self.oracle.pending);
        let first = self.wheel.first().map(|key| self.wheel.due(key).unwrap());
        assert_eq!(first.is_some(), !self.oracle.pending.is_empty());
        if let (Some(first), Some(next)) = (first, next) {
            assert!(first <= next, "the first, due at {first}, is not due at {next}");
        }
        self.agree_on_what_is_not_ready();
        assert_eq!(bound.is_some(), !self.oracle.pending.is_empty());
        if let Some(next) = next {
            assert!(bound.unwrap() <= next, "the bound {bound:?} is after {next}");
            assert!(slot.unwrap() <= next, "the slot {slot:?} begins after {next}");
        }
        self.wheel.check().unwrap();
        self.check_occupied();
    }

    fn agree_on_what_is_not_ready(&mut self) {
        let now = self.wheel.now();
        let due_now = self.wheel.iter().filter(|&(_, due, _)| due <= now).count();
        let after = self.wheel.iter().map(|(_, due, _)| due).filter(|&due| due > now).min();
        let expected = if due_now > self.wheel.ready() { Some(now) } else { after };
        // A tick past the end of time has no `Time`; `iter` reports `Time::MAX` for it.
        let upcoming = self.wheel.upcoming().or(expected.filter(|&due| due == Time::MAX));
        assert_eq!(upcoming, expected, "of those that are not ready");
    }
}

fn steps() -> u64 {
    let steps = std::env::var("TOURBILLON_STEPS").ok().and_then(|steps| steps.parse().ok());
    // Three million over all shapes.
    steps.unwrap_or(250_000)
}

fn run<K: Kind>(shape: Shape, wheel: impl Fn(Time) -> Wheel<u64, K> + Copy) {
    let seed =
        std::env::var("TOURBILLON_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let steps = steps();
    let mut met = BTreeMap::<String, u64>::new();
    for life in 0..steps / LIFE {
        let seed = seed + life;
        let mut run = Run::new(shape, seed, wheel);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..LIFE {
                run.step();
                run.agree();
            }
        }));
        if let Err(panic) = caught {
            eprintln!("{shape:?}: TOURBILLON_SEED={seed} TOURBILLON_STEPS={LIFE} shows it again");
            std::panic::resume_unwind(panic);
        }
        for (class, count) in run.met {
            *met.entry(class).or_default() += count;
        }
    }
    report(shape, steps, met);
}

fn report(shape: Shape, steps: u64, met: BTreeMap<String, u64>) {
    let mut classes: Vec<String> =
        ["past", "saturated", "reused slot", "stale key", "foreign key", "later, earlier, later"]
            .map(String::from)
            .into();
    classes.extend(["a lone timer gets company", "a lone timer is cancelled"].map(String::from));
    if !shape.hashed {
        classes.push("budget cut while handing down".into());
        classes.push("a lone timer is handed down".into());
        // A level is reachable if the clock can reach the beginning of one of its slots other than the first.
        let reached =
            shape.spans().into_iter().skip(1).filter(|unit| unit.checked_mul(shape.tick).is_some());
        classes
            .extend((2..2 + reached.count()).map(|level| format!("handed down from L{level:02}")));
    }
    let mut text = format!("{steps} steps of {shape:?}\n");
    let mut rare = Vec::new();
    for class in classes {
        let count = met.get(&class).copied().unwrap_or(0);
        writeln!(text, "  {count:>9} {class}").unwrap();
        if count < 1000 && steps >= 1_000_000 {
            rare.push(class);
        }
    }
    println!("{text}");
    assert!(rare.is_empty(), "{shape:?}: met less than a thousand times: {rare:?}");
}

macro_rules! shapes {
    ($($name:ident $index:literal)*) => {$(
        #[test]
        fn $name() {
            let shape = SHAPES[$index];
            if shape.hashed {
                run(shape, |start| HashedWheel::with_slots(start, shape.tick, shape.slots[0]).unwrap());
            } else {
                run(shape, |start| HierarchicalWheel::with_levels(start, shape.tick, shape.slots).unwrap());
            }
        }
    )*};
}

shapes! {
    hierarchical_256 0
    hierarchical_64 1
    hierarchical_20 2
    hierarchical_clock_face 3
    hierarchical_256_64_64 4
    hierarchical_2 5
    hierarchical_3_2_5 6
    hierarchical_512_8 7
    hashed_1 8
    hashed_8 9
    hashed_60 10
    hashed_512 11
}
