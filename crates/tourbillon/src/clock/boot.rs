//! `CLOCK_BOOTTIME` on Linux: a clock that also runs while the machine is suspended.
//!
//! The timed wait of a condition variable does not count suspended time: a driver that used it would be late by the
//! time suspended. Instead, the driver polls a timerfd of the same clock, which expires as soon as the machine resumes,
//! and its sleeper's notifier.

/// A clock that also counts the time during which the machine is suspended.
///
/// Pass it to [`Builder::clock`].
///
/// If a laptop is suspended for fifty minutes, a timer of one hour has ten minutes left afterwards. If the hour passes
/// while it is suspended, the timer fires as soon as the machine resumes. The timer does not wake the machine. On
/// Linux, the default clock counts only the time awake.
///
/// - Linux only. Elsewhere this is the system's monotonic clock, which may or may not count suspended time.
/// - Its instants, which [`Timer::now`] returns, are ahead of [`Instant::now`] by the time suspended. Compute the
///   arguments of [`schedule_at`](crate::Timer::schedule_at) and similar methods from `timer.now()`.
/// - If no file descriptor is available, the driver reads the clock once a second instead.
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
        /// The raw reading of the clock at [`BEGIN`].
        begin: u64,
        /// A timerfd, created on the first wait. Only one thread waits at a time: a driver, or the leader of a queue.
        alarm: OnceLock<OwnedFd>,
    }

    /// A clone has its own alarm: two waiters with a common alarm would overwrite each other's expiry.
    impl Clone for Boot {
        fn clone(&self) -> Self {
            let begin = planted!("third.clone-of-the-boot-clock-begins-anew", raw(), self.begin);
            Boot { begin, alarm: OnceLock::new() }
        }
    }

    impl Boot {
        /// Starts a clock at [`BEGIN`]. Also returns the `Instant` of that moment.
        pub(crate) fn begin() -> (Instant, Self) {
            let (instant, begin) = together(Instant::now, raw);
            (instant, Boot { begin, alarm: OnceLock::new() })
        }

        /// The current time.
        pub(crate) fn time(&self) -> Time {
            BEGIN + raw().saturating_sub(self.begin)
        }

        /// Waits until `until` or until the sleeper is woken. May return early.
        pub(crate) fn wait(&self, until: Time, sleeper: &Sleeper) {
            let left = until.units().saturating_sub(self.time().units());
            let after = until.units().saturating_sub(BEGIN.units());
            if left > 0 && self.wait_for_alarm(after, sleeper).is_err() {
                // Without a descriptor, the sleep is measured by the monotonic clock, so re-read this clock at least
                // once a second.
                let left = Duration::from_nanos(left.min(SECOND));
                planted!("clock.no-alarm-no-sleep", (), sleeper.sleep(Some(left)));
            }
        }

        /// Waits until `after` nanoseconds since [`BEGIN`].
        fn wait_for_alarm(&self, after: u64, sleeper: &Sleeper) -> io::Result<()> {
            let alarm = match self.alarm.get() {
                Some(alarm) => alarm,
                None => {
                    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
                    let made = timerfd_create(TimerfdClockId::Boottime, flags)?;
                    self.alarm.get_or_init(|| made)
                }
            };
            // Setting the timerfd also clears a past expiry. A time beyond the range of `tv_sec` means no expiry.
            let begin = planted!("clock.boot-alarm-without-the-beginning", 0, self.begin);
            let at = begin.saturating_add(after);
            let at = planted!(
                "fourth.boot-alarm-in-whole-seconds",
                at.div_ceil(SECOND).saturating_mul(SECOND),
                at
            );
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
