//! What becomes of the beats of a rhythm that were missed: the one arithmetic of all that repeats.

use tourbillon_wheel::Time;

/// What becomes of what was missed in a rhythm: runs of a [timer](crate::Repeat::every) that were due while the last
/// one still ran, or before it could start; ticks of an interval that nobody took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missed {
    /// They follow at once, one after the other, until the rhythm is caught up with: every one takes place.
    #[default]
    Burst,
    /// They are left out; the next is the next of the rhythm.
    Skip,
    /// They are left out; the next is a period from now, and the rhythm goes on from there.
    Delay,
}

impl Missed {
    /// When the next is due, if the last was due at `due` and was over, or taken, `now`. It stays at the end of time.
    pub(crate) fn following(self, due: Time, now: Time, period: u64) -> Time {
        let next = due + period;
        // What is due at this very moment is not missed.
        let in_time = planted!("missed.beat-of-now-is-missed", next > now, next >= now);
        if self == Missed::Burst || in_time {
            return next;
        }
        match self {
            Missed::Skip => {
                let late = now.units() - due.units();
                let behind = planted!(
                    "missed.skip-passes-over-now",
                    late / period + 1,
                    late.div_ceil(period)
                );
                due + planted!(
                    "later.skip-overflows-at-the-end-of-time",
                    behind * period,
                    behind.saturating_mul(period)
                )
            }
            Missed::Burst | Missed::Delay => now + period,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_made_up_for_left_out_or_put_off() {
        use Missed::{Burst, Delay, Skip};
        for (missed, now, next) in [
            // In time, and just in time: all agree.
            (Burst, 103, 110),
            (Skip, 103, 110),
            (Delay, 103, 110),
            (Burst, 110, 110),
            (Skip, 110, 110),
            (Delay, 110, 110),
            // One was missed; then nearly three; then exactly at the third.
            (Burst, 111, 110),
            (Skip, 111, 120),
            (Delay, 111, 121),
            (Burst, 129, 110),
            (Skip, 129, 130),
            (Delay, 129, 139),
            (Burst, 130, 110),
            (Skip, 130, 130),
            (Delay, 130, 140),
            // A clock that went back.
            (Skip, 0, 110),
            (Delay, 0, 110),
        ] {
            let following = missed.following(Time::new(100), Time::new(now), 10);
            assert_eq!(following, Time::new(next), "{missed:?} at {now}");
        }
        for missed in [Burst, Skip, Delay] {
            assert_eq!(missed.following(Time::new(5), Time::MAX, u64::MAX - 1), Time::MAX);
        }
    }
}
