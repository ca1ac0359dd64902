//! The occurrences for which a timer has run: none runs twice, however the clock is set.
//!
//! They are stored as spans of consecutive occurrences, from the first to the last. A clock that only moves forward
//! makes one span, which grows. A clock that jumps over occurrences leaves a gap. If the clock is set back, the
//! occurrences in the gap run, because they have never run:
//!
//! ```text
//!   every hour:   8   9  10 ──jump──▶ 14  15      the clock is set back to 8:30:
//!   spans:       [8 … 10]            [14 … 15]    the next are 11, 12, 13, 16
//! ```
//!
//! Remembering only the last occurrence would be simpler. But if a clock was ten years ahead for an hour, as on a
//! machine without a battery, the timer would then not run for ten years.

use std::time::SystemTime;

use super::plan::Rule;

/// The maximum number of spans. Beyond it, the nearest two are merged. The occurrences between them are then lost, but
/// still none runs twice.
const MOST: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fired {
    /// In order, and disjoint.
    spans: Vec<(SystemTime, SystemTime)>,
}

impl Fired {
    pub(super) fn new() -> Self {
        Fired { spans: Vec::new() }
    }

    /// Records a run for `at`, which is in no span. After a jump it does not extend the span before it.
    pub(super) fn add(&mut self, at: SystemTime, jumped: bool) {
        let place = self.spans.partition_point(|&(_, last)| last < at);
        if self.spans.get(place).is_some_and(|&(first, _)| first <= at) {
            return;
        }
        match place.checked_sub(1) {
            Some(before) if !jumped => self.spans[before].1 = at,
            _ => self.spans.insert(place, (at, at)),
        }
        if self.spans.len() > MOST {
            self.join_nearest();
        }
    }

    /// The first occurrence after `now` that has not fired, and whether it begins a new span. It begins one if the
    /// clock was set and it does not directly follow the last occurrence that fired before it. If the clock was not
    /// set, occurrences were missed because a run took too long, and are skipped for good.
    pub(super) fn choose(
        &self,
        rule: &Rule,
        now: SystemTime,
        was_set: bool,
    ) -> Option<(SystemTime, bool)> {
        let mut at = rule(now)?;
        for &(first, last) in &self.spans {
            let begun = planted!("fifth.first-of-a-span-runs-twice", first < at, first <= at);
            if begun && planted!("wall.last-of-a-span-runs-twice", at < last, at <= last) {
                at = rule(last)?;
            }
        }
        let before = self.spans.iter().rev().find(|&&(_, last)| last < at);
        let follows = || before.is_some_and(|&(_, last)| rule(last) == Some(at));
        Some((at, was_set && !follows()))
    }

    /// Whether an occurrence that directly follows one that fired has not fired itself.
    pub(super) fn has_passed_over(&self, rule: &Rule) -> bool {
        let in_a_span = |at| {
            self.spans.iter().any(|&(first, last)| {
                first <= at
                    && planted!("third.cron-that-is-over-stays-pending", at < last, at <= last)
            })
        };
        let next = |&(_, last): &(SystemTime, SystemTime)| rule(last);
        self.spans.iter().filter_map(next).any(|at| !in_a_span(at))
    }

    fn join_nearest(&mut self) {
        let apart = |pair: &[(SystemTime, SystemTime)]| pair[1].0.duration_since(pair[0].1).ok();
        let pairs = self.spans.windows(2).enumerate();
        let nearest = planted!(
            "later.farthest-spans-joined",
            pairs.max_by_key(|(_, pair)| apart(pair)),
            pairs.min_by_key(|(_, pair)| apart(pair))
        );
        let Some((nearest, _)) = nearest else { return };
        let (_, last) = self.spans.remove(nearest + 1);
        planted!("wall.joined-span-keeps-its-old-end", (), self.spans[nearest].1 = last);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn every_hour(after: SystemTime) -> Option<SystemTime> {
        let seconds = after.duration_since(UNIX_EPOCH).unwrap().as_secs();
        Some(hour(seconds / 3600 + 1))
    }

    fn hour(n: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(n * 3600)
    }

    /// The occurrences that run if the clock continues from hour `from`.
    fn run(fired: &mut Fired, from: u64, runs: usize) -> Vec<SystemTime> {
        let mut now = hour(from) + Duration::from_secs(1);
        let mut was_set = true;
        let mut ran = Vec::new();
        for _ in 0..runs {
            let (at, jumped) = fired.choose(&every_hour, now, was_set).unwrap();
            fired.add(at, jumped);
            ran.push(at);
            (now, was_set) = (at, false);
        }
        ran
    }

    #[test]
    fn nothing_fires_twice_and_what_was_passed_over_comes_again() {
        let mut fired = Fired::new();
        assert_eq!(run(&mut fired, 7, 3), [8, 9, 10].map(hour));
        assert_eq!(run(&mut fired, 13, 2), [14, 15].map(hour));
        assert_eq!(fired.spans, [(hour(8), hour(10)), (hour(14), hour(15))]);
        assert_eq!(run(&mut fired, 8, 4), [11, 12, 13, 16].map(hour));
        assert_eq!(run(&mut fired, 6, 3), [7, 17, 18].map(hour));
    }

    #[test]
    fn spans_that_follow_upon_each_other_have_no_gap() {
        let until_13 = |after| every_hour(after).filter(|&at| at <= hour(13));
        let whole = Fired { spans: vec![(hour(8), hour(10)), (hour(11), hour(13))] };
        assert!(!whole.has_passed_over(&until_13));
        let gap = Fired { spans: vec![(hour(8), hour(10)), (hour(12), hour(13))] };
        assert!(gap.has_passed_over(&until_13));
    }

    #[test]
    fn the_smallest_gap_is_lost_first() {
        let mut fired = Fired::new();
        let hours = (1..=8).map(|n| n * 100).chain([803]);
        hours.for_each(|n| fired.add(hour(n), true));
        assert_eq!(fired.spans.len(), MOST);
        assert_eq!(fired.spans.last(), Some(&(hour(800), hour(803))));
    }

    #[test]
    fn a_run_that_takes_too_long_leaves_no_gap() {
        let mut fired = Fired::new();
        for n in (1..10_000).step_by(3) {
            let (at, jumped) = fired.choose(&every_hour, hour(n), false).unwrap();
            fired.add(at, jumped);
        }
        assert_eq!(fired.spans.len(), 1);
    }

    #[test]
    fn spans_are_bounded_and_none_is_forgotten() {
        let mut fired = Fired::new();
        for n in 0..100 {
            run(&mut fired, 1_000_000 - n * n, 1);
            assert!(fired.spans.len() <= MOST);
            let sorted = fired.spans.windows(2).all(|pair| pair[0].1 < pair[1].0);
            assert!(sorted && fired.spans.iter().all(|span| span.0 <= span.1));
        }
        for n in 0..100 {
            let at = hour(1_000_001 - n * n);
            assert!(fired.spans.iter().any(|&(first, last)| first <= at && at <= last), "{n}");
        }
    }
}
