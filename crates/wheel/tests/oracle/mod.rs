//! The slow, obviously correct wheel that the real ones are compared with, and inputs generated near edge cases.

#![allow(unreachable_pub, dead_code, reason = "shared by several tests, each of which uses a part")]

use std::collections::BTreeMap;

use tourbillon_wheel::{Key, Place, Time};

/// A small generator: the same seed gives the same run on every platform.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<X: Copy>(&mut self, from: &[X]) -> X {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A wheel as the scenarios describe it: its kind, its tick, its slots.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub hashed: bool,
    pub tick: u64,
    pub slots: &'static [u32],
}

impl Shape {
    /// The spans of the levels in ticks, lowest first, as far as `u64` reaches.
    pub fn spans(&self) -> Vec<u64> {
        let mut spans = vec![1_u64];
        for level in 0.. {
            let slots = self.slots[level.min(self.slots.len() - 1)];
            match spans[level].checked_mul(slots.into()) {
                Some(span) if !(self.hashed && level > 0) => spans.push(span),
                _ => break,
            }
        }
        spans
    }

    /// The placement rule, implemented independently: the lowest level with `r < span(l)`.
    pub fn place(&self, due: u64, hand: u64) -> Place {
        if due <= hand {
            return Place::Due;
        }
        let slots = |level: usize| u64::from(self.slots[level.min(self.slots.len() - 1)]);
        if self.hashed {
            return Place::Ring { slot: (due % slots(0)) as u32, rounds: (due - hand) / slots(0) };
        }
        let mut unit = 1_u128;
        for level in 0.. {
            let span = unit * u128::from(slots(level));
            if u128::from(due - hand) < span {
                let slot = (u128::from(due) / unit % u128::from(slots(level))) as u32;
                return Place::Level { level: level as u32 + 1, slot };
            }
            unit = span;
        }
        unreachable!()
    }

    /// A duration, in units, near an edge case.
    pub fn edge(&self, rng: &mut Rng) -> u64 {
        let ticks = match rng.below(16) {
            0 => 0,
            1..=4 => rng.below(2 * u64::from(self.slots[0]) + 2),
            5..=10 => {
                let spans = self.spans();
                // The highest levels are reached only with an early enough start: choose them more often.
                let from = if rng.one_in(4) { spans.len().saturating_sub(3) } else { 0 };
                let span = rng.pick(&spans[from..]);
                let turns = 1 + rng.below(3);
                span.saturating_mul(turns).saturating_add(rng.below(9)).saturating_sub(4)
            }
            11 => (1_u64 << rng.below(64)).saturating_add(rng.below(9)).saturating_sub(4),
            12 => rng.next() >> rng.below(64),
            13 => u64::MAX - rng.below(5),
            _ => rng.below(5_000),
        };
        let off = if self.tick > 1 { rng.below(self.tick) } else { 0 };
        ticks.saturating_mul(self.tick).saturating_add(off)
    }

    /// A start time for a wheel.
    pub fn start(&self, rng: &mut Rng) -> u64 {
        match rng.below(6) {
            0 | 1 => 0,
            2 => rng.below(10_000),
            3 => rng.next(),
            4 => u64::MAX - rng.below(100_000),
            _ => u64::MAX - self.edge(rng),
        }
    }
}

/// One pending timer in the oracle.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub due: u64,
    /// The tick at which it fires: `due`, or the tick at which it was inserted if that is later.
    pub fires: u64,
    /// The directions of its last two moves, for counting three-step moves.
    pub moves: [i8; 2],
    /// Whether it was ever moved while it was ready: moved back to its old tick, it may fire in its old position.
    pub was_ready: bool,
    /// How many times the wheel had been advanced when its deadline was set.
    pub pass: u64,
}

/// Ticks computed by definition, timers in a map.
#[derive(Debug)]
pub struct Oracle {
    pub start: u64,
    pub tick: u64,
    pub pending: BTreeMap<Key, Pending>,
}

impl Oracle {
    pub fn due(&self, deadline: u64) -> u64 {
        let units = deadline.saturating_sub(self.start);
        units / self.tick + u64::from(units % self.tick != 0)
    }

    pub fn current(&self, now: u64) -> u64 {
        now.saturating_sub(self.start) / self.tick
    }

    pub fn time(&self, tick: u64) -> Option<Time> {
        let units = u128::from(tick) * u128::from(self.tick) + u128::from(self.start);
        u64::try_from(units).ok().map(Time::from)
    }

    pub fn next_due(&self, hand: u64) -> Option<Time> {
        let least = self.pending.values().map(|timer| timer.due).min()?;
        self.time(least.max(hand))
    }
}
