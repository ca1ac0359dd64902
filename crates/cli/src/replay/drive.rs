//! The three ways to drive a wheel through an `advance`: where the clock stops, and how often.
//!
//! Each drive determines its next stop at which something can happen; idle stops before it are counted without visiting
//! them. All three fire the same timers at the same times.
//!
//! | drive | next stop | idle stops, only counted |
//! |---|---|---|
//! | `tick` | the next slot to begin (hashed: the next due time) | every tick on the way there |
//! | `bucket` | the same | hashed: each turn of an occupied slot on the way there |
//! | `due` | the next due time | none |

use tourbillon_wheel::{self as wheel, Time};

use super::event::Sink;
use super::run::{Result, Run};
use crate::scenario::{Drive, Kind};

impl<K: wheel::Kind, S: Sink> Run<K, S> {
    pub(super) fn advance(&mut self, to: u64) -> Result<()> {
        // Timers that are already due fire first. If there are none, this does not count as a stop.
        let passes = self.passes()?;
        self.wakes(passes);
        while !self.stopped {
            let Some(next) = self.next_stop().filter(|next| *next <= to) else { break };
            assert!(
                next > self.clock,
                "everything that was due has fired, so the next stop is later"
            );
            self.count_idle(next, 1);
            self.clock = next;
            let passes = self.passes()?;
            self.wakes(passes.max(1));
        }
        let to = to.max(self.clock);
        if !self.stopped {
            self.count_idle(to, 0);
        }
        self.clock = to;
        if !self.stopped {
            // This pass only cascades, which does not count as a stop: nothing is due any more.
            let due = self.begin_pass()?;
            assert!(!due, "a timer was due and its stop was missed");
        }
        Ok(())
    }

    /// Processes everything at the clock, and returns the number of passes.
    ///
    /// Slots that begin here cascade, then passes fire due timers until none is left.
    fn passes(&mut self) -> Result<u64> {
        let mut passes = 0;
        while !self.stopped && self.begin_pass()? {
            passes += 1;
            self.passes += 1;
            self.fire_pass()?;
        }
        Ok(passes)
    }

    /// The next moment at which the drive stops and something can happen.
    pub(super) fn next_stop(&mut self) -> Option<u64> {
        let hierarchical = self.rules.kind == Kind::Hierarchical;
        let next = match self.rules.drive {
            Drive::Tick | Drive::Bucket if hierarchical => self.wheel.next_slot(),
            Drive::Tick | Drive::Bucket | Drive::Due => self.wheel.next_due(),
        };
        next.map(Time::units)
    }

    /// Counts the idle stops after the clock up to `to`, without the last `but` ticks.
    fn count_idle(&mut self, to: u64, but: u64) {
        let tick_of = |time: u64| (time - self.wheel.start().units()) / self.wheel.tick();
        let (from, to) = (tick_of(self.clock), tick_of(to) - but);
        let idle = match (self.rules.drive, &self.turns) {
            (Drive::Tick, _) => to - from,
            (Drive::Bucket, Some(turns)) => turns.between(from, to),
            (Drive::Bucket, None) | (Drive::Due, _) => 0,
        };
        self.wakes(idle);
    }

    fn wakes(&mut self, more: u64) {
        self.totals.wakes = self.totals.wakes.saturating_add(more);
    }
}
