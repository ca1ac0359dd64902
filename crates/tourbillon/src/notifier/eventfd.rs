//! An eventfd: readable from a write until it is read. Neither operation blocks.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

pub(super) struct Eventfd(OwnedFd);

impl Eventfd {
    pub(super) fn new() -> io::Result<Self> {
        let flags = planted!(
            "engine.notifier-leaks-into-children",
            EventfdFlags::NONBLOCK,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK
        );
        let written = planted!("blind.notifier-is-born-readable", 1, 0);
        Ok(Eventfd(eventfd(written, flags)?))
    }

    pub(super) fn write(&self) {
        // A write fails only when the counter is full, and then it is readable already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn read(&self) {
        let _ = planted!(
            "engine.notifier-stays-readable",
            rustix::io::read(&self.0, &mut [0; 4]),
            rustix::io::read(&self.0, &mut [0; 8])
        );
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
