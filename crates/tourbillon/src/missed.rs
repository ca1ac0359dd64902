//! What happens to missed runs and ticks: the shared arithmetic of everything that repeats.

use tourbillon_wheel::Time;

/// What happens to missed runs of a repeating timer and missed ticks of an interval.
///
/// A run of a [timer](crate::Repeat::every) is missed if it was due while the previous run was still running, or before
/// it could start; a tick of an interval, if it was not received in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missed {
    /// They follow at once, one after the other, until the schedule has caught up: none is skipped.
    #[default]
    Burst,
    /// They are skipped; the next one is due according to the original schedule.
    Skip,
    /// They are skipped, and the schedule shifts.
    ///
    /// After a run that started late, or ended after the next one was due, the next run is due a full period after its
    /// end; after a tick that was received late, a full period after it was received. Late means late by more than 5
    /// ms, or by more than one tick of the engine if that is longer.
    Delay,
}

/// Lateness in nanoseconds that still counts as punctual. tokio's intervals use the same limit.
const SLACK: u64 = 5_000_000;

/// A run of a timer, or a tick that was received.
#[derive(Clone, Copy)]
pub(crate) struct Beat {
    pub(crate) due: Time,
    /// When it started or was received.
    pub(crate) began: Time,
    /// When the run ended. A tick has no duration.
    pub(crate) ended: Option<Time>,
}

impl Missed {
    /// When the next run or tick is due. Saturates at the end of time.
    pub(crate) fn following(self, beat: Beat, period: u64, tick: u64) -> Time {
        let Beat { due, began, ended } = beat;
        let (next, now) = (due + period, ended.unwrap_or(began));
        match self {
            Missed::Burst => next,
            // The first beat after `due` that is not before now: one that is due now is not missed. On a clock that was
            // set back, now may be before `due`.
            Missed::Skip => {
                let late = now.units().saturating_sub(due.units());
                let behind = planted!(
                    "missed.skip-passes-over-now",
                    late / period + 1,
                    late.div_ceil(period).max(1)
                );
                due + planted!(
                    "later.skip-overflows-at-the-end-of-time",
                    behind * period,
                    behind.saturating_mul(period)
                )
            }
            Missed::Delay => {
                let slack = planted!("missed.late-by-a-tick-is-late", SLACK, SLACK.max(tick));
                let behind = began.units().saturating_sub(due.units());
                let late = planted!("fourth.just-in-time-is-late", behind >= slack, behind > slack);
                let from = planted!("blind.delay-counts-from-the-start", began, now);
                let too_long = |ended| {
                    planted!(
                        "sixth.run-as-long-as-its-period-has-missed-one",
                        ended >= next,
                        ended > next
                    )
                };
                if late || ended.is_some_and(too_long) {
                    planted!("fifth.delay-leaves-out-just-one", next, from) + period
                } else {
                    next
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The next deadline after a run that is due and starts at 100 ms and ends at `ended`, with a period of 10 ms.
    fn after_run(missed: Missed, ended: u64) -> Time {
        let beat = Beat {
            due: Time::new(100 * MS),
            began: Time::new(100 * MS),
            ended: Some(Time::new(ended)),
        };
        missed.following(beat, 10 * MS, MS)
    }

    #[test]
    fn what_was_missed_is_made_up_for_left_out_or_put_off() {
        use Missed::{Burst, Delay, Skip};
        for (missed, ended, next) in [
            // The run ended before the next deadline, or exactly at it: all give the same.
            (Burst, 103, 110),
            (Skip, 103, 110),
            (Delay, 103, 110),
            (Burst, 110, 110),
            (Skip, 110, 110),
            (Delay, 110, 110),
            // One run was missed; then nearly three; then the run ended exactly at the third.
            (Burst, 111, 110),
            (Skip, 111, 120),
            (Delay, 111, 121),
            (Burst, 129, 110),
            (Skip, 129, 130),
            (Delay, 129, 139),
            (Burst, 130, 110),
            (Skip, 130, 130),
            (Delay, 130, 140),
            // A clock that was set back.
            (Skip, 0, 110),
            (Delay, 0, 110),
        ] {
            assert_eq!(
                after_run(missed, ended * MS),
                Time::new(next * MS),
                "{missed:?} at {ended}"
            );
        }
        for missed in [Burst, Skip, Delay] {
            let beat = Beat { due: Time::new(5), began: Time::MAX, ended: None };
            assert_eq!(missed.following(beat, u64::MAX - 1, 1), Time::MAX);
        }
    }

    /// If a tick or run was late, the next one is a full period later.
    #[test]
    fn a_late_beat_puts_the_next_off() {
        let due = Time::new(100 * MS);
        let next = |late: u64, length: Option<u64>, tick: u64| {
            let began = due + late;
            let beat = Beat { due, began, ended: length.map(|length| began + length) };
            Missed::Delay.following(beat, 50 * MS, tick).units() - due.units()
        };
        for length in [None, Some(0), Some(7 * MS)] {
            let ended = length.unwrap_or(0);
            assert_eq!(next(5 * MS, length, MS), 50 * MS, "{length:?}: not late");
            assert_eq!(next(5 * MS + 1, length, MS), 55 * MS + 1 + ended, "{length:?}: late");
            assert_eq!(next(8 * MS, length, 8 * MS), 50 * MS, "{length:?}: within a tick");
            assert_eq!(next(8 * MS + 1, length, 8 * MS), 58 * MS + 1 + ended, "{length:?}");
        }
    }
}
