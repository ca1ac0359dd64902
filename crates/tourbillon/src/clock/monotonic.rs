//! The system's monotonic clock. Every call of this crate to the operating system for time is in this file, and
//! goes through the standard library, which is the portable path.

use std::time::Instant;

use crate::engine::Sleeper;

#[inline]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Sleeps until that instant, or until woken. A system wakes a thread a little late, never early; if one did, the
/// driver would look at the clock and sleep again.
pub(super) fn wait(until: Instant, sleeper: &Sleeper) {
    sleeper.sleep(Some(until.saturating_duration_since(now())));
}
