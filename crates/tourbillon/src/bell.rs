//! A file descriptor that can be rung from any thread: an eventfd.
//!
//! It is readable from the ring until it is silenced. That costs a system call, so who turns asks a word first:
//!
//! | `rung` | means |
//! |---|---|
//! | false | nothing to read, or somebody has written and not yet said so: it is readable once more then, for nothing |
//! | true | there is something to read |
//!
//! The word is written after the descriptor. The other way round, who silences in between would read nothing, forget
//! the ring, and leave the descriptor readable for ever.
//!
//! The model checkers know nothing of descriptors: for them `Eventfd` is a counter behind a mutex (`bell/model.rs`), as
//! it is inside the kernel.

#[cfg(not(any(loom, shuttle)))]
mod eventfd;
#[cfg(any(loom, shuttle))]
#[path = "bell/model.rs"]
mod eventfd;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use eventfd::Eventfd;

pub(crate) struct Bell {
    fd: Eventfd,
    rung: AtomicBool,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Bell { fd: Eventfd::new()?, rung: AtomicBool::new(false) })
    }

    pub(crate) fn ring(&self) {
        planted!(
            "engine.bell-rung-before-it-is-readable",
            {
                self.rung.store(true, Release);
                self.fd.write();
            },
            {
                self.fd.write();
                // Pairs with the look in `silence`.
                self.rung.store(true, Release);
            }
        );
    }

    pub(crate) fn silence(&self) {
        if self.rung.swap(false, AcqRel) {
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

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
