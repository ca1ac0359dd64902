//! The clock that goes on while the machine sleeps: `CLOCK_BOOTTIME`, on Linux.
//!
//! To read it is the smaller part. The timed wait of a condition variable counts time that stands still while the
//! machine sleeps: a driver that waits there wakes too late, by as long as the machine slept. Here it waits for a
//! timerfd of the same clock, which the kernel looks at as soon as the machine is awake, or for its sleeper's notifier.

/// The clock that also counts the time during which the machine was suspended: for [`Builder::clock`].
///
/// A timer of one hour on a laptop that sleeps for fifty minutes has ten minutes left afterwards; if the hour passes
/// while it sleeps, it runs as soon as the machine is awake. The timer does not wake the machine. With any other clock
/// the hour is one of being awake.
///
/// - It exists on Linux. Elsewhere this is the monotonic clock of the system, and counts the time asleep only if that
///   does.
/// - Its moments are those of [`Timer::now`], and run ahead of [`Instant::now`] by the time asleep: for
///   [`schedule_at`](crate::Timer::schedule_at) and its like, add to `timer.now()`.
/// - Without file descriptors to wait with, the driver looks at the clock once a second.
///
/// [`Builder::clock`]: crate::Builder::clock
/// [`Timer::now`]: crate::Timer::now
/// [`Instant::now`]: std::time::Instant::now
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{BootClock, Timer};
///
/// let timer = Timer::builder().clock(BootClock).build()?;
/// let (done, wait) = std::sync::mpsc::channel();
/// timer.schedule(Duration::from_millis(10), move |_| done.send(()).unwrap())?;
/// wait.recv()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

#[cfg(target_os = "linux")]
pub(crate) use linux::Boot;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    use rustix::time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
        clock_gettime, timerfd_create, timerfd_settime,
    };

    use tourbillon_wheel::Time;

    use crate::clock::BEGIN;
    use crate::clock::monotonic::together;
    use crate::sleeper::Sleeper;

    const SECOND: u64 = 1_000_000_000;

    pub(crate) struct Boot {
        /// What the clock read when time began.
        begin: u64,
        /// Made for the first wait. Whoever waits is alone: a driver, or who leads in a queue.
        alarm: OnceLock<OwnedFd>,
    }

    /// The same clock for another who waits: to share the alarm would be to set it for one and miss the other.
    impl Clone for Boot {
        fn clone(&self) -> Self {
            let begin = planted!("third.clone-of-the-boot-clock-begins-anew", raw(), self.begin);
            Boot { begin, alarm: OnceLock::new() }
        }
    }

    impl Boot {
        /// A clock whose time begins now, and what `Instant` reads then.
        pub(crate) fn begin() -> (Instant, Self) {
            let (instant, begin) = together(Instant::now, raw);
            (instant, Boot { begin, alarm: OnceLock::new() })
        }

        /// The current time.
        pub(crate) fn time(&self) -> Time {
            BEGIN + raw().saturating_sub(self.begin)
        }

        /// Waits until that moment, or until the sleeper is woken. It may end early.
        pub(crate) fn wait(&self, until: Time, sleeper: &Sleeper) {
            let left = until.units().saturating_sub(self.time().units());
            let after = until.units().saturating_sub(BEGIN.units());
            if left > 0 && self.wait_for_alarm(after, sleeper).is_err() {
                // Without descriptors there is only the other clock: look at this one now and then.
                let left = Duration::from_nanos(left.min(SECOND));
                planted!("clock.no-alarm-no-sleep", (), sleeper.sleep(Some(left)));
            }
        }

        /// Waits until so long after time began.
        fn wait_for_alarm(&self, after: u64, sleeper: &Sleeper) -> io::Result<()> {
            let alarm = match self.alarm.get() {
                Some(alarm) => alarm,
                None => {
                    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
                    let made = timerfd_create(TimerfdClockId::Boottime, flags)?;
                    self.alarm.get_or_init(|| made)
                }
            };
            // Setting it also clears an expiry. A moment past the end of its numbers never comes.
            let begin = planted!("clock.boot-alarm-without-the-beginning", 0, self.begin);
            let at = begin.saturating_add(after);
            let at = Timespec {
                tv_sec: (at / SECOND).try_into().unwrap_or(i64::MAX as _),
                tv_nsec: (at % SECOND) as _,
            };
            let once = Itimerspec { it_interval: Timespec::default(), it_value: at };
            let flags = planted!(
                "clock.boot-alarm-counted-from-now",
                TimerfdTimerFlags::empty(),
                TimerfdTimerFlags::ABSTIME
            );
            timerfd_settime(alarm, flags, &once)?;
            sleeper.sleep_until_readable(alarm)
        }
    }

    fn raw() -> u64 {
        let now = clock_gettime(ClockId::Boottime);
        (now.tv_sec as u64).wrapping_mul(SECOND).wrapping_add(now.tv_nsec as u64)
    }
}
