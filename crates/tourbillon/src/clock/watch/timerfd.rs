//! Linux says when its clock is set: it cancels a timer of its own that was asked to be cancelled by that.

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

    /// Sleeps until the clock was set, or somebody rang. What is set after this has returned ends the next wait.
    pub(super) fn wait(&self) {
        let mut count = [0; 8];
        loop {
            match read(&self.0, &mut count) {
                Err(Errno::INTR) => {}
                Ok(_) | Err(Errno::CANCELED) => break,
                // That cannot be; if it is, the clock is read again after a while, as elsewhere.
                Err(_) => break thread::sleep(poll::PERIOD),
            }
        }
        // A clock that is set between the two was set before this returns, and is looked at then. Cannot fail: it
        // succeeded before.
        let _ = self.set(i64::MAX);
    }

    /// Wakes who waits.
    pub(super) fn notify(&self) {
        let _ = self.set(planted!("wall.ring-disarms-the-timerfd", 0, 1));
    }

    /// It is to expire so many seconds after 1970: `i64::MAX` is never, 1 is now.
    fn set(&self, seconds: i64) -> Result<(), Errno> {
        let value = Timespec { tv_sec: seconds, tv_nsec: 0 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        loop {
            match timerfd_settime(&self.0, flags, &once) {
                // The clock was set at this moment.
                Err(Errno::CANCELED) => {}
                set => return set.map(|_| ()),
            }
        }
    }
}
