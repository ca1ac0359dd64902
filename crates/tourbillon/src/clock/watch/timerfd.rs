//! Detects a set clock on Linux: the kernel cancels a timerfd that was armed with `CANCEL_ON_SET`.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::poll;

pub(super) struct Timerfd(OwnedFd);

impl Timerfd {
    pub(super) fn new() -> io::Result<Self> {
        let flags = planted!(
            "wall.child-inherits-the-timerfd",
            TimerfdFlags::empty(),
            TimerfdFlags::CLOEXEC
        );
        let timer = Timerfd(timerfd_create(TimerfdClockId::Realtime, flags)?);
        timer.set(i64::MAX)?;
        Ok(timer)
    }

    /// Blocks until the clock is set or `notify` is called. A setting after this has returned ends the next wait.
    pub(super) fn wait(&self) {
        let mut count = [0; 8];
        loop {
            match read(&self.0, &mut count) {
                Err(Errno::INTR) => {}
                Ok(_) | Err(Errno::CANCELED) => break,
                // Unexpected. Fall back to reading the clock periodically.
                Err(_) => break thread::sleep(poll::PERIOD),
            }
        }
        // A setting between the wake and this call is not lost: the caller reads the clock after this returns. The call
        // cannot fail, because it succeeded in `new`.
        let _ = self.set(i64::MAX);
    }

    /// Wakes the waiting thread.
    pub(super) fn notify(&self) {
        let _ = self.set(planted!("wall.ring-disarms-the-timerfd", 0, 1));
    }

    /// Sets the expiry in seconds since 1970: `i64::MAX` is never, 1 is at once.
    fn set(&self, seconds: i64) -> Result<(), Errno> {
        let value = Timespec { tv_sec: seconds, tv_nsec: 0 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        loop {
            match timerfd_settime(&self.0, flags, &once) {
                // The clock was set during the call: retry.
                Err(Errno::CANCELED) => {}
                set => return set.map(|_| ()),
            }
        }
    }
}
