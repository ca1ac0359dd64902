//! The pace of a queue: limits the hand-outs per second.

use std::collections::VecDeque;

use crate::values::{Span, Steady};

const SECOND: Span = Span::from_secs(1);

/// The hand-outs of the last second in a queue with a rate. Lost at a restart.
#[derive(Default)]
pub(crate) struct Pace {
    /// One entry per millisecond, which bounds the number of entries.
    handed: VecDeque<(Steady, u32)>,
    total: u32,
    /// Whether a timer on the steady clock is set for the next allowed hand-out.
    pub(crate) waits: bool,
}

impl Pace {
    /// When the next hand-out is allowed; `None` if it is allowed now.
    pub(crate) fn next(&mut self, rate: u32, now: Steady) -> Option<Steady> {
        while self.handed.front().is_some_and(|(at, _)| *at + SECOND <= now) {
            self.total -= self.handed.pop_front().map_or(0, |(_, count)| count);
        }
        let first = self.handed.front().map(|(at, _)| *at + SECOND);
        first.filter(|_| self.total >= rate)
    }

    pub(crate) fn count(&mut self, now: Steady) {
        self.total += 1;
        match self.handed.back_mut().filter(|(at, _)| *at == now) {
            Some((_, count)) => *count += 1,
            None => self.handed.push_back((now, 1)),
        }
    }
}
