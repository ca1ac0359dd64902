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

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};

pub(crate) struct Bell {
    fd: OwnedFd,
    rung: AtomicBool,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = planted!(
            "engine.bell-leaks-into-children",
            EventfdFlags::NONBLOCK,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK
        );
        let fd = eventfd(0, flags)?;
        Ok(Bell { fd, rung: AtomicBool::new(false) })
    }

    pub(crate) fn ring(&self) {
        // It fails only if it was rung 2^64 times and never silenced: then it is readable as well.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
        // Pairs with the look in `silence`.
        self.rung.store(true, Release);
    }

    pub(crate) fn silence(&self) {
        if self.rung.swap(false, AcqRel) {
            let _ = planted!(
                "engine.bell-stays-readable",
                rustix::io::read(&self.fd, &mut [0; 4]),
                rustix::io::read(&self.fd, &mut [0; 8])
            );
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
