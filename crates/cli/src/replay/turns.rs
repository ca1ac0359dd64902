//! Counts how often the hand of a hashed wheel meets an occupied slot, without walking.
//!
//! Driven bucket by bucket, a hashed wheel stops at each occupied slot in every turn. On a ring of 8 slots, the hand
//! meets a timer a thousand years away four billion times before the timer fires. A Fenwick tree records which slots
//! are occupied, so that the stops in any range of ticks are a product and two sums of O(log slots).

/// The occupied slots of a ring.
#[derive(Debug)]
pub(super) struct Turns {
    /// The number of timers in each slot.
    timers: Vec<u32>,
    /// A Fenwick tree over "slot is occupied": entry `i` (from 1) sums the `i & -i` slots that end with `i - 1`.
    sums: Vec<u32>,
    occupied: u32,
}

impl Turns {
    pub(super) fn new(slots: u32) -> Self {
        let slots = slots as usize;
        Turns { timers: vec![0; slots], sums: vec![0; slots + 1], occupied: 0 }
    }

    pub(super) fn add(&mut self, slot: u32) {
        self.timers[slot as usize] += 1;
        if self.timers[slot as usize] == 1 {
            self.occupied += 1;
            self.climb(slot, |sum| *sum += 1);
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.timers[slot as usize] -= 1;
        if self.timers[slot as usize] == 0 {
            self.occupied -= 1;
            self.climb(slot, |sum| *sum -= 1);
        }
    }

    /// The number of ticks after `from`, up to and including `to`, whose slot is occupied.
    pub(super) fn between(&self, from: u64, to: u64) -> u64 {
        debug_assert!(from <= to);
        let slots = self.timers.len() as u64;
        let (turns, rest) = ((to - from) / slots, (to - from) % slots);
        // The remaining slots are `first..first + rest`, modulo the number of slots.
        let first = from % slots + 1;
        let end = first + rest;
        let part = if end <= slots {
            self.below(end) - self.below(first)
        } else {
            self.occupied - self.below(first) + self.below(end - slots)
        };
        turns * u64::from(self.occupied) + u64::from(part)
    }

    /// The number of occupied slots below `end`.
    fn below(&self, end: u64) -> u32 {
        let mut i = usize::try_from(end).expect("no more than the slots");
        let mut sum = 0;
        while i > 0 {
            sum += self.sums[i];
            i &= i - 1;
        }
        sum
    }

    fn climb(&mut self, slot: u32, change: impl Fn(&mut u32)) {
        let mut i = slot as usize + 1;
        while i < self.sums.len() {
            change(&mut self.sums[i]);
            i += i & i.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_agrees_with_walking() {
        for slots in [1, 2, 3, 8, 20] {
            let mut turns = Turns::new(slots);
            for slot in [0, 3, 5, 5, 7, 19] {
                turns.add(slot % slots);
            }
            turns.remove(5 % slots);
            turns.remove(3 % slots);
            let occupied = |tick: &u64| turns.timers[(tick % u64::from(slots)) as usize] > 0;
            for from in 0..30 {
                for to in from..70 {
                    let walked = (from + 1..=to).filter(occupied).count() as u64;
                    assert_eq!(
                        turns.between(from, to),
                        walked,
                        "{slots} slots, after {from} up to {to}"
                    );
                }
            }
        }
    }
}
