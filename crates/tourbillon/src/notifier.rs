//! A file descriptor that any thread can make readable: an eventfd.
//!
//! It is readable from `notify` until `clear`. Reading it costs a system call, so `clear` checks a flag first:
//!
//! | `notified` | means |
//! |---|---|
//! | false | there is nothing to read, or `notify` has written but not yet set the flag: one spurious wake follows |
//! | true | there is something to read |
//!
//! `notify` sets the flag after the write. In the opposite order, a `clear` in between would read nothing and reset the
//! flag, and the descriptor would stay readable forever.
//!
//! In a model build, which has no descriptors, `Eventfd` is a counter behind a mutex (`notifier/model.rs`).

#[cfg(not(any(loom, shuttle)))]
mod eventfd;
#[cfg(any(loom, shuttle))]
#[path = "notifier/model.rs"]
mod eventfd;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use eventfd::Eventfd;

pub(crate) struct Notifier {
    fd: Eventfd,
    notified: AtomicBool,
}

impl Notifier {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Notifier { fd: Eventfd::new()?, notified: AtomicBool::new(false) })
    }

    pub(crate) fn notify(&self) {
        planted!(
            "engine.notified-before-it-is-readable",
            {
                self.notified.store(true, Release);
                self.fd.write();
            },
            {
                self.fd.write();
                // Pairs with the swap in `clear`.
                self.notified.store(true, Release);
            }
        );
    }

    pub(crate) fn clear(&self) {
        if self.notified.swap(false, AcqRel) {
            self.fd.read();
        }
    }

    /// Polls without a timeout.
    #[cfg(all(any(loom, shuttle), test))]
    pub(crate) fn wait_until_readable(&self) {
        self.fd.wait_until_readable();
    }

    #[cfg(all(any(loom, shuttle), test))]
    pub(crate) fn is_readable(&self) -> bool {
        self.fd.is_readable()
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
