//! Lateness of the hand-outs of the last minute, counted by second and by class of lateness.
//!
//! Below 16 ms each millisecond is a class. Above, each power of two is divided into eight classes. A second stores
//! only the classes that occurred, so an idle queue takes no memory.

use std::collections::VecDeque;

use crate::message::Lateness;
use crate::values::{Span, Steady};

/// The number of seconds counted.
const SECONDS: u64 = 60;

/// The hand-outs of the last minute in a queue. Lost at a restart.
#[derive(Default)]
pub(crate) struct LastMinute {
    seconds: VecDeque<Second>,
}

struct Second {
    number: u64,
    max: u64,
    /// The count of each class that occurred, sorted by class.
    counts: Vec<(u16, u32)>,
}

impl LastMinute {
    /// Counts a hand-out and its lateness.
    pub(crate) fn count(&mut self, now: Steady, late: Span) {
        let (number, late) = (now.millis() / 1000, late.millis());
        if self.seconds.back().is_none_or(|second| second.number != number) {
            self.forget(number);
            self.seconds.push_back(Second { number, max: 0, counts: Vec::new() });
        }
        let Some(second) = self.seconds.back_mut() else { return };
        second.max = second.max.max(late);
        let class = class(late);
        match second.counts.binary_search_by_key(&class, |count| count.0) {
            Ok(nth) => second.counts[nth].1 += 1,
            Err(nth) => second.counts.insert(nth, (class, 1)),
        }
    }

    fn forget(&mut self, number: u64) {
        while self.seconds.front().is_some_and(|second| second.number + SECONDS <= number) {
            self.seconds.pop_front();
        }
    }

    /// Returns the lateness, and the hand-outs per second.
    pub(crate) fn summary(&mut self, now: Steady) -> (Lateness, f64) {
        self.forget(now.millis() / 1000);
        let mut counts: Vec<(u16, u32)> =
            self.seconds.iter().flat_map(|second| second.counts.iter().copied()).collect();
        counts.sort_unstable();
        let handed: u64 = counts.iter().map(|count| u64::from(count.1)).sum();
        let max = self.seconds.iter().map(|second| second.max).max().unwrap_or(0);
        let percentile = |percent: u64| {
            let mut left = (handed * percent).div_ceil(100);
            let reaches = counts.iter().find(|(_, count)| {
                let within = left <= u64::from(*count);
                left = left.saturating_sub(u64::from(*count));
                within
            });
            Span::from_millis(reaches.map_or(0, |(class, _)| longest(*class)).min(max))
        };
        let lateness =
            Lateness { p50: percentile(50), p99: percentile(99), max: Span::from_millis(max) };
        (lateness, handed as f64 / SECONDS as f64)
    }
}

/// The class of a lateness.
fn class(millis: u64) -> u16 {
    if millis < 16 {
        return millis as u16;
    }
    let power = millis.ilog2();
    (16 + (power - 4) * 8) as u16 + ((millis >> (power - 3)) & 7) as u16
}

/// The longest lateness of a class.
fn longest(class: u16) -> u64 {
    if class < 16 {
        return class.into();
    }
    let (power, eighth) = (u32::from(class - 16) / 8 + 4, u64::from(class - 16) % 8);
    let above = u128::from(9 + eighth) << (power - 3);
    u64::try_from(above - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_it_says() {
        for power in 0..64 {
            for millis in [1_u64 << power, (1 << power) - 1, (1 << power) + (1 << power) / 3] {
                let longest = longest(class(millis));
                assert!(longest >= millis, "{millis}");
                assert!(longest - millis <= millis / 8, "{millis}: {longest}");
                assert_eq!(class(longest), class(millis), "{millis}");
            }
        }
    }

    #[test]
    fn the_last_minute_is_summed_and_forgotten() {
        let (mut minute, at) = (LastMinute::default(), Steady::from_millis);
        assert_eq!(minute.summary(at(0)), (Lateness::default(), 0.0));
        (0..98).for_each(|_| minute.count(at(500), Span::from_millis(3)));
        minute.count(at(30_000), Span::from_millis(1000));
        minute.count(at(30_000), Span::from_millis(5000));
        let ms = Span::from_millis;
        let all = Lateness { p50: ms(3), p99: ms(1023), max: ms(5000) };
        assert_eq!(minute.summary(at(59_999)), (all, 100.0 / 60.0));
        let late = Lateness { p50: ms(1023), p99: ms(5000), max: ms(5000) };
        assert_eq!(minute.summary(at(60_000)), (late, 2.0 / 60.0));
        assert_eq!(minute.summary(at(90_000)), (Lateness::default(), 0.0));
        assert!(minute.seconds.is_empty());
    }
}
