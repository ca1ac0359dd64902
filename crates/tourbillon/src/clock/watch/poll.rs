//! The fallback if the system does not report a set clock: reads the clock every 30 s while a timer waits for it.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

/// The time between two readings.
pub(super) const PERIOD: Duration = Duration::from_secs(30);

/// A smaller deviation is not a setting but slewing: the system runs the clock slightly faster or slower.
const SLACK: Duration = Duration::from_millis(1);

pub(super) struct Poll {
    period: Duration,
    state: Mutex<PollState>,
    changed: Condvar,
}

struct PollState {
    notified: bool,
    /// The readings at the end of the last wait. A change after them ends the next wait.
    last: (SystemTime, Instant),
}

impl Poll {
    pub(super) fn new(period: Duration) -> Self {
        let state = PollState { notified: false, last: read() };
        Poll { period, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Blocks until the clock was set or `notify` is called. Reads the clock only while a timer waits.
    pub(super) fn wait(&self, is_waiting: impl Fn() -> bool) {
        loop {
            // `is_waiting` is called without the lock. A timer that begins to wait after this check calls `notify`.
            let limit = is_waiting().then_some(self.period);
            let mut state = self.lock();
            if planted!("third.ring-before-the-sleep-is-lost", true, !state.notified) {
                state = self.sleep(state, limit);
            }
            let now = read();
            if state.notified || was_set(state.last, now) {
                state.notified = planted!("wall.poll-notified-for-ever", state.notified, false);
                state.last = now;
                return;
            }
        }
    }

    fn sleep<'a>(
        &self,
        state: MutexGuard<'a, PollState>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, PollState> {
        match limit {
            Some(limit) => match self.changed.wait_timeout(state, limit) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            },
            None => self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
        }
    }

    pub(super) fn notify(&self) {
        self.lock().notified = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, PollState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn read() -> (SystemTime, Instant) {
    (SystemTime::now(), Instant::now())
}

/// Whether the wall clock has moved by a different amount than the time that passed.
fn was_set(before: (SystemTime, Instant), now: (SystemTime, Instant)) -> bool {
    let passed = now.1.saturating_duration_since(before.1);
    match now.0.duration_since(before.0) {
        Ok(shown) => shown.abs_diff(passed) > SLACK,
        Err(_) => planted!("wall.poll-misses-a-clock-set-back", false, true),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread;

    use super::*;

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let (wall, now) = (SystemTime::now(), Instant::now());
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
        assert!(!was_set((wall, now), (wall + hour, now + hour)));
        assert!(!was_set((wall, now), (wall + hour + SLACK, now + hour)));
        assert!(was_set((wall, now), (wall + hour + second, now + hour)));
        assert!(was_set((wall, now), (wall + hour - second, now + hour)));
        assert!(was_set((wall, now), (wall - second, now + second)));
    }

    /// Real time: reads the clock repeatedly while a timer waits, and blocks without a limit when none does.
    #[test]
    fn it_reads_the_clock_only_while_a_timer_waits() {
        let poll = Poll::new(Duration::from_millis(1));
        let looks = AtomicUsize::new(0);
        thread::scope(|scope| {
            // A timer waits during the first twenty checks, then no longer.
            scope.spawn(|| poll.wait(|| looks.fetch_add(1, SeqCst) < 20));
            while looks.load(SeqCst) < 21 {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(50));
            assert_eq!(looks.load(SeqCst), 21, "it sleeps");
            poll.notify();
        });
        // A notification before a wait ends that wait at once.
        poll.notify();
        poll.wait(|| false);
    }

    /// Real time: notifications that precede a wait, however many, end only that wait.
    #[test]
    fn rings_end_one_wait() {
        let poll = Poll::new(Duration::from_millis(1));
        for rings in 1..=3 {
            let ends_one = |_| {
                (0..rings).for_each(|_| poll.notify());
                poll.wait(|| true);
                let looks = AtomicUsize::new(0);
                poll.wait(|| {
                    if looks.fetch_add(1, SeqCst) == 3 {
                        poll.notify();
                    }
                    true
                });
                looks.load(SeqCst) == 4
            };
            // If the thread is preempted between its two readings, the clock looks as if it had been set.
            assert!((0..10).any(ends_one), "{rings} rings");
        }
    }
}
