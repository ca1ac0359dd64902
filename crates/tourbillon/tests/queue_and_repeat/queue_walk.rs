//! Random calls of all verbs of a queue, compared with a sorted map.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use tourbillon::{DelayQueue, Fired, Key, TakeError, Timer, VirtualClock};

use crate::common::{MS, case};

/// The contents: by deadline, and for equal deadlines in the order of the puts and moves.
type Sorted = BTreeMap<(u32, u32), (Key, u32)>;

struct World {
    queue: DelayQueue<u32>,
    clock: VirtualClock,
    random: Rng,
    sorted: Sorted,
    /// Counts puts and moves.
    serial: u32,
    /// Every key ever returned.
    keys: Vec<Key>,
    taken: u64,
    removed: u64,
}

impl World {
    fn now(&self) -> u32 {
        self.clock.elapsed().as_millis() as u32
    }

    fn some(&mut self) -> u32 {
        let most = [2, 20, 300, 100_000][self.random.usize(0..4)];
        self.random.u32(0..most)
    }

    fn put(&mut self) {
        self.serial += 1;
        let (at, serial) = (self.now() + self.some(), self.serial);
        let begin = self.clock.now() - self.clock.elapsed();
        let (at, key) = match self.random.u32(0..3) {
            0 => (at, self.queue.put(MS * (at - self.now()), serial)),
            1 => (at, self.queue.put_at(begin + MS * at, serial)),
            // In the past.
            _ => (
                at % (self.now() + 1),
                self.queue.put_at(begin + MS * (at % (self.now() + 1)), serial),
            ),
        };
        self.insert(at, key.unwrap(), serial);
    }

    fn insert(&mut self, at: u32, key: Key, value: u32) {
        self.keys.push(key);
        assert!(self.sorted.insert((at, self.serial), (key, value)).is_none());
    }

    /// Where the key is in the map.
    fn place(&self, key: Key) -> Option<(u32, u32)> {
        self.sorted.iter().find(|(_, (other, _))| *other == key).map(|(place, _)| *place)
    }

    fn remove(&mut self, key: Key) {
        let removed = self.place(key).and_then(|place| self.sorted.remove(&place));
        self.removed += u64::from(removed.is_some());
        assert_eq!(self.queue.remove(key), removed.map(|(_, value)| value));
    }

    fn reschedule(&mut self, key: Key) {
        self.serial += 1;
        let after = self.some();
        let there = self.place(key);
        assert_eq!(self.queue.reschedule(key, MS * after).is_ok(), there.is_some());
        let value = there.and_then(|place| self.sorted.remove(&place));
        if let Some(value) = value {
            self.sorted.insert((self.now() + after, self.serial), value);
        }
    }

    /// Removes the first value from the map, if it is due.
    fn pop(&mut self) -> Option<(Key, u32, u32)> {
        let first = self
            .sorted
            .first_entry()
            .filter(|first| first.key().0 <= self.clock.elapsed().as_millis() as u32)?;
        let ((at, _), (key, value)) = first.remove_entry();
        Some((key, value, at))
    }

    fn told(&self, fired: &Fired<u32>) -> (Key, u32, u32) {
        let begin = self.clock.now() - self.clock.elapsed();
        (fired.key, fired.value, (fired.deadline() - begin).as_millis() as u32)
    }

    fn take(&mut self) {
        let taken = match self.random.u32(0..4) {
            0 => self.queue.try_take_entry(),
            1 => self.queue.take_entry_within(Duration::ZERO),
            // Only if a value is due: the take would block otherwise.
            2 if self.queue.next_deadline().is_some_and(|at| at <= self.clock.now()) => {
                self.queue.take_entry()
            }
            _ => {
                let value = self.pop();
                self.taken += u64::from(value.is_some());
                let expected = value.map(|(_, value, _)| value).ok_or(TakeError::NothingDue);
                let taken = self.queue.taker().take_within(Duration::ZERO);
                return assert_eq!(taken, expected);
            }
        };
        let expected = self.pop();
        self.taken += u64::from(expected.is_some());
        match taken {
            Ok(fired) => assert_eq!(Some(self.told(&fired)), expected),
            Err(why) => assert_eq!((why, expected), (TakeError::NothingDue, None)),
        }
    }

    fn drain_due(&mut self) {
        let most = self.random.usize(0..6);
        let expected: Vec<_> = (0..most).map_while(|_| self.pop()).collect();
        self.taken += expected.len() as u64;
        let drained = self.queue.drain_due(most);
        assert_eq!(drained.iter().map(|fired| self.told(fired)).collect::<Vec<_>>(), expected);
    }

    fn empty(&mut self) {
        let all = std::mem::take(&mut self.sorted);
        self.removed += all.len() as u64;
        if self.random.bool() {
            return self.queue.clear();
        }
        let expected: Vec<_> =
            all.into_iter().map(|((at, _), (key, value))| (key, value, at)).collect();
        let drained = self.queue.drain();
        assert_eq!(drained.iter().map(|fired| self.told(fired)).collect::<Vec<_>>(), expected);
    }

    /// Compares all queries.
    fn look(&mut self) {
        let begin = self.clock.now() - self.clock.elapsed();
        let all = self.sorted.iter().map(|((at, _), (key, _))| (*key, begin + MS * *at));
        let all: Vec<_> = all.collect();
        let pending = self.queue.pending();
        let pending: Vec<_> = pending.iter().map(|one| (one.key, one.deadline)).collect();
        assert_eq!(pending, all);
        assert_eq!(self.queue.peek().map(|one| (one.key, one.deadline)), all.first().copied());
        assert_eq!(self.queue.next_deadline(), all.first().map(|(_, at)| *at));
        assert_eq!((self.queue.len(), self.queue.is_empty()), (all.len(), all.is_empty()));
        if let Some(&key) = self.random.choice(&self.keys) {
            let at = all.iter().find(|(other, _)| *other == key).map(|(_, at)| *at);
            assert_eq!((self.queue.contains(key), self.queue.deadline(key)), (at.is_some(), at));
        }
        let counts = self.queue.counts();
        let told = (counts.fired, counts.cancelled, counts.pending);
        assert_eq!(told, (self.taken, self.removed, all.len() as u64));
        assert_eq!(counts.armed, self.taken + self.removed + all.len() as u64);
        assert_eq!(self.queue.check(), Ok(()));
    }

    fn step(&mut self) {
        let key = self.random.choice(&self.keys).copied();
        match (self.random.u32(0..100), key) {
            (0..35, _) => self.put(),
            (35..45, Some(key)) => self.remove(key),
            (45..55, Some(key)) => self.reschedule(key),
            (55..75, _) => self.take(),
            (75..80, _) => self.drain_due(),
            (80, _) => self.empty(),
            _ => {
                let by = MS * self.some();
                self.clock.advance(by).unwrap();
            }
        }
        // A query sorts the values, and the takes must not depend on that.
        if self.random.u32(0..3) == 0 {
            self.look();
        }
    }
}

#[test]
fn a_random_life_of_a_queue_is_that_of_a_sorted_map() {
    for seed in 0..30 {
        case(format!("seed {seed}"), move || {
            let clock = VirtualClock::new();
            let queue = Timer::builder().clock(&clock).queue().unwrap();
            let (random, sorted, keys) = (Rng::with_seed(seed), Sorted::new(), Vec::new());
            let mut world =
                World { queue, clock, random, sorted, serial: 0, keys, taken: 0, removed: 0 };
            (0..500).for_each(|_| world.step());
            world.look();
            let mut left = world.queue.close();
            left.sort_by_key(|fired| (fired.deadline(), fired.key));
            let mut expected: Vec<_> =
                world.sorted.iter().map(|((at, _), (key, value))| (*key, *value, *at)).collect();
            expected.sort_by_key(|(key, _, at)| (*at, *key));
            assert!(left.iter().map(|fired| world.told(fired)).eq(expected));
            assert!(world.keys.iter().all(|&key| world.queue.remove(key).is_none()));
        });
    }
}
