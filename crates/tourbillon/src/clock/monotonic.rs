//! The system's monotonic clock, as engines read it. The one place where this crate has a way of its own for a system.

use std::time::Instant;

/// Where an engine's time begins, both as the system counts it and as an [`Instant`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Begin {
    pub(super) instant: Instant,
    raw: u64,
}

impl Begin {
    pub(super) fn new() -> Self {
        // In this order: then a moment given as an `Instant` is reached by the raw clock no earlier than by `Instant`.
        let instant = Instant::now();
        Begin { instant, raw: raw(instant) }
    }

    /// Nanoseconds since then.
    #[inline]
    pub(super) fn elapsed(self) -> u64 {
        raw(self.instant).saturating_sub(self.raw)
    }
}

/// What `Instant` reads, as a number: half the instructions of a difference of two instants.
#[cfg(target_os = "linux")]
#[inline]
fn raw(_begin: Instant) -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let id = planted!("clock.reads-the-coarse-clock", ClockId::MonotonicCoarse, ClockId::Monotonic);
    let now = clock_gettime(id);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

#[cfg(not(target_os = "linux"))]
#[inline]
fn raw(begin: Instant) -> u64 {
    super::nanoseconds(begin.elapsed())
}
