//! A file descriptor that can be notified from any thread: an eventfd.
//!
//! It is readable from the ring until it is silenced. That costs a system call, so who turns asks a word first:
//!
//! | `notified` | means |
//! |---|---|
//! | false | nothing to read, or somebody has written and not yet said so: it is readable once more then, for nothing |
//! | true | there is something to read |
//!
//! The word is written after the descriptor. The other way round, who silences in between would read nothing, forget
//! the ring, and leave the descriptor readable for ever.
//!
//! The model checkers know no descriptors: for them `Eventfd` is a counter behind a mutex (`notifier/model.rs`), as it
//! is in the kernel.

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
                // Pairs with the look in `clear`.
                self.notified.store(true, Release);
            }
        );
    }

    pub(crate) fn clear(&self) {
        if self.notified.swap(false, AcqRel) {
            self.fd.read();
        }
    }

    /// Polls, without a limit.
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
