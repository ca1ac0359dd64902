//! How a driver sleeps and is woken.
//!
//! A sleeper keeps a permit, as `std::thread::park` does: a wake before the sleep is not lost.

use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::time::Duration;

#[cfg(target_os = "linux")]
use crate::notifier::Notifier;
use crate::sync::{Condvar, Mutex, lock, wait};

/// Lets a driver sleep until it is woken.
///
/// Passed to [`Clock::wait`](crate::Clock::wait), which may keep a clone in order to wake the driver.
#[derive(Clone)]
pub struct Sleeper {
    shared: Arc<Bed>,
}

struct Bed {
    permit: Mutex<bool>,
    woken: Condvar,
    /// Created on the first sleep on file descriptors.
    #[cfg(target_os = "linux")]
    notifier: OnceLock<Notifier>,
}

impl Sleeper {
    pub(crate) fn new() -> Self {
        let bed = Bed {
            permit: Mutex::new(false),
            woken: Condvar::new(),
            #[cfg(target_os = "linux")]
            notifier: OnceLock::new(),
        };
        Sleeper { shared: Arc::new(bed) }
    }

    /// Sleeps until [`wake`](Sleeper::wake) is called or `limit` has passed; without a limit, forever.
    ///
    /// Returns at once if `wake` was called since the last sleep. It may return slightly early: check the clock.
    pub fn sleep(&self, limit: Option<Duration>) {
        let mut permit = lock(&self.shared.permit);
        if !*permit && limit != Some(Duration::ZERO) {
            permit = wait(&self.shared.woken, permit, limit);
        }
        *permit = planted!("blind.permit-is-never-spent", *permit, false);
    }

    /// Sleeps until the descriptor is readable or [`wake`](Sleeper::wake) is called.
    ///
    /// Returns at once if `wake` was called since the last sleep. It may return early. The notifier is created before
    /// the permit is checked, so a `wake` after that check finds the notifier.
    #[cfg(target_os = "linux")]
    pub(crate) fn sleep_until_readable(&self, alarm: &std::os::fd::OwnedFd) -> std::io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        let notifier = match self.shared.notifier.get() {
            Some(notifier) => notifier,
            None => {
                let made = Notifier::new()?;
                self.shared.notifier.get_or_init(|| made)
            }
        };
        let woken = *lock(&self.shared.permit);
        if !woken {
            // A signal may interrupt the poll, which then returns early.
            let _ = poll(
                &mut [PollFd::new(alarm, PollFlags::IN), PollFd::new(notifier, PollFlags::IN)],
                None,
            );
        }
        notifier.clear();
        planted!("engine.boot-permit-never-spent", (), *lock(&self.shared.permit) = false);
        Ok(())
    }

    /// Ends the current sleep, or the next one.
    pub fn wake(&self) {
        planted!("engine.wake-leaves-no-permit", (), *lock(&self.shared.permit) = true);
        self.shared.woken.notify_one();
        #[cfg(target_os = "linux")]
        if let Some(notifier) =
            planted!("engine.wake-forgets-the-notifier", None, self.shared.notifier.get())
        {
            notifier.notify();
        }
    }
}

impl std::fmt::Debug for Sleeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sleeper")
    }
}
