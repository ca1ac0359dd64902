//! Tests of the ordered wheel alone: random operations compared with a sorted map, and their cost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::*;

const TICK: u64 = 10;

fn wheel() -> OrderedWheel<u64> {
    OrderedWheel::new(&Geometry::Hierarchical(vec![256]), TICK).unwrap()
}

/// Takes the first value, if it is due, however small the budget.
fn take(wheel: &mut OrderedWheel<u64>, now: Time, budget: usize) -> Option<Taken<u64>> {
    while wheel.gather(now, budget) == Progress::More {}
    wheel.pop(now)
}

#[test]
fn a_gathering_whose_values_have_left_finds_what_is_due_after_them() {
    let mut wheel = wheel();
    let crowd: Vec<Key> = (0..8).map(|n| wheel.insert(BEGIN + 20, BEGIN, n).unwrap()).collect();
    wheel.insert(BEGIN + 40, BEGIN, 9).unwrap();
    let now = BEGIN + 1_000;
    assert_eq!(wheel.gather(now, 2), Progress::More);
    crowd.into_iter().for_each(|key| _ = wheel.cancel(key));
    assert_eq!(take(&mut wheel, now, 2).map(|taken| taken.value), Some(9));
}

/// The hand moves past all due values at once; otherwise each of its steps would put the whole backlog into the front.
#[test]
fn a_backlog_that_was_put_late_is_named_once() {
    let (mut wheel, now) = (wheel(), BEGIN + 1_000 * TICK);
    for n in 0..1_000 {
        wheel.insert(BEGIN + TICK * n + 5, now, n).unwrap();
    }
    assert_eq!(take(&mut wheel, now, 64).map(|taken| taken.value), Some(0));
    let hand = wheel.wheel.now();
    for n in 1..1_000 {
        assert_eq!(take(&mut wheel, now, 64).map(|taken| taken.value), Some(n));
        assert_eq!(wheel.wheel.now(), hand);
    }
}

/// The time it takes to sleep until each value and to take it.
fn sleep_and_take_each(count: u64, peek: bool) -> Duration {
    let mut wheel = wheel();
    wheel.insert(BEGIN + 1_000_000_000, BEGIN, 0).unwrap();
    if peek {
        wheel.first_key();
    }
    for n in 1..=count {
        wheel.insert(BEGIN + 100 * n, BEGIN, n).unwrap();
    }
    let (began, mut now) = (Instant::now(), BEGIN);
    for n in 1..=count {
        assert!(take(&mut wheel, now, 64).is_none());
        now = wheel.upcoming(now).unwrap();
        assert_eq!(take(&mut wheel, now, 64).map(|taken| taken.value), Some(n));
    }
    began.elapsed()
}

/// Real time: a peek at a distant value does not slow down takes of nearer values.
///
/// After the peek, all nearer values are in the front. Walking them for each take was fifty times slower.
#[test]
fn a_look_at_a_far_value_does_not_make_nearer_ones_dear() {
    let least = |peek| (0..5).map(|_| sleep_and_take_each(2_000, peek)).min().unwrap();
    let (without, with) = (least(false), least(true));
    assert!(with < without * 8, "{with:?}, and {without:?} without the look");
}

#[test]
fn any_order_of_verbs_gives_the_order_of_a_sorted_map() {
    let geometries =
        [Geometry::Hierarchical(vec![256]), Geometry::Hashed(16), Geometry::Hierarchical(vec![2])];
    for geometry in geometries {
        for seed in 0..20 {
            Walk::new(&geometry, seed).run();
        }
    }
}

struct Walk {
    name: String,
    random: fastrand::Rng,
    wheel: OrderedWheel<u64>,
    /// The deadline and the serial number, as the wheel should order them.
    sorted: BTreeMap<(Time, u64), Key>,
    serial: u64,
    now: Time,
    near: u64,
}

impl Walk {
    fn new(geometry: &Geometry, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let near = [15, 60, 3_000, 100_000][random.usize(0..4)];
        let (now, wheel) = (BEGIN + random.u64(0..100), OrderedWheel::new(geometry, TICK));
        let (wheel, sorted) = (wheel.unwrap(), BTreeMap::new());
        let name = format!("{geometry:?}, seed {seed}");
        Walk { name, random, wheel, sorted, serial: 0, now, near }
    }

    fn deadline(&mut self) -> Time {
        let later = self.now + self.random.u64(0..self.near);
        Time::new(later.units() - self.random.u64(0..self.near) / 2)
    }

    fn run(mut self) {
        for _ in 0..300 {
            self.serial += 1;
            match self.random.u32(0..12) {
                0..4 => self.insert(),
                4 | 5 => self.move_or_cancel(),
                6 => self.now = self.now + self.random.u64(0..self.near),
                7 => self.look_at_the_first(),
                8 => _ = self.wheel.gather(self.now, self.random.usize(1..4)),
                9 => self.make_ready(),
                _ => self.take_some(),
            }
            self.wheel.check().unwrap();
            assert_eq!(self.wheel.len(), self.sorted.len(), "{}", self.name);
            let names = self.wheel.front.len();
            assert!(names <= 2 * (self.wheel.len() + STALE) + 2, "{}: {names} names", self.name);
        }
    }

    fn insert(&mut self) {
        let deadline = self.deadline();
        let key = self.wheel.insert(deadline, self.now, self.serial).unwrap();
        self.sorted.insert((deadline, self.serial), key);
    }

    fn move_or_cancel(&mut self) {
        if self.sorted.is_empty() {
            return;
        }
        let one = *self.sorted.keys().nth(self.random.usize(0..self.sorted.len())).unwrap();
        let (key, deadline) = (self.sorted.remove(&one).unwrap(), self.deadline());
        if self.random.bool() {
            self.wheel.reschedule(key, deadline, self.now).unwrap();
            self.sorted.insert((deadline, self.serial), key);
        } else {
            assert!(self.wheel.cancel(key).is_some());
        }
    }

    fn look_at_the_first(&mut self) {
        let first = self.sorted.iter().next().map(|(&(at, _), &key)| (key, at));
        let shown = self.wheel.first().map(|(_, at)| at);
        assert_eq!(shown, first.map(|(_, at)| at), "{}", self.name);
        assert_eq!(self.wheel.first_key(), first, "{}", self.name);
    }

    /// Checks that due values are ready, and that the next value is neither due now nor reported a tick late.
    fn make_ready(&mut self) {
        self.wheel.make_ready(self.now);
        let (now, name) = (self.now, &self.name);
        let first = self.sorted.keys().next().map(|&(at, _)| at);
        if self.wheel.is_due(now) {
            assert!(first.is_some_and(|at| at <= now), "{name}: nothing is due");
        } else {
            assert!(first.is_none_or(|at| at + TICK > now), "{name}: something is due");
        }
        let next = self.wheel.upcoming(now);
        assert!(next.is_none_or(|next| next > now), "{name}: a sleep that is over");
        if let Some(&(later, _)) = self.sorted.keys().find(|(at, _)| *at > now) {
            assert!(next.is_some_and(|next| next < later + TICK), "{name}: sleeps too long");
        }
    }

    fn take_some(&mut self) {
        let (now, name) = (self.now, &self.name);
        for _ in 0..self.random.u32(1..20) {
            let taken = take(&mut self.wheel, now, if self.random.bool() { 1 } else { usize::MAX });
            if let Some(taken) = taken {
                let ((at, _), key) = self.sorted.pop_first().unwrap();
                assert!(at <= now, "{name}: early");
                assert_eq!((taken.key, taken.deadline), (key, at), "{name}");
                continue;
            }
            let Some((&(at, _), _)) = self.sorted.first_key_value() else { return };
            assert!(at + TICK > now, "{name}: it is more than a tick late");
            let next = self.wheel.upcoming(now);
            assert!(next.is_some_and(|next| next > now && next < at + TICK), "{name}: {next:?}");
            return;
        }
    }
}
