//! An eventfd for the model checkers: a counter behind a mutex.
//!
//! A poll that never ends is a deadlock, which the model checker reports.

use std::io;
use std::os::fd::BorrowedFd;

use crate::sync::{Condvar, Mutex, lock};

pub(super) struct Eventfd {
    written: Mutex<u64>,
    /// Where `wait_until_readable` blocks.
    polled: Condvar,
}

impl Eventfd {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Eventfd { written: Mutex::new(0), polled: Condvar::new() })
    }

    pub(super) fn write(&self) {
        *lock(&self.written) += 1;
        self.polled.notify_all();
    }

    pub(super) fn read(&self) {
        *lock(&self.written) = 0;
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        unreachable!("a model has no descriptors")
    }

    #[cfg(all(any(loom, shuttle), test))]
    pub(super) fn wait_until_readable(&self) {
        let mut written = lock(&self.written);
        while *written == 0 {
            written = crate::sync::wait(&self.polled, written, None);
        }
    }

    #[cfg(all(any(loom, shuttle), test))]
    pub(super) fn is_readable(&self) -> bool {
        *lock(&self.written) > 0
    }
}
