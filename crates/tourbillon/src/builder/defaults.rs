//! Constructors that need no builder, with the default settings.

use super::Builder;
use crate::queue::DelayQueue;
use crate::timer::Timer;

/// Construction.
impl Timer {
    /// Creates a timer with a tick of 1 ms whose callbacks run on a pool.
    ///
    /// It starts its first thread when the first timer is armed.
    pub fn new() -> Self {
        Timer::builder().build().expect("the defaults are in range")
    }

    /// Returns the settings for a timer or an [`Engine`](crate::Engine).
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Default for Timer {
    fn default() -> Self {
        Timer::new()
    }
}

/// Construction.
impl<T: Send + 'static> DelayQueue<T> {
    /// Creates a queue with a tick of 1 ms. For other settings, use [`Builder::queue`].
    pub fn new() -> Self {
        Builder::default().queue().expect("the defaults are in range")
    }
}

impl<T: Send + 'static> Default for DelayQueue<T> {
    fn default() -> Self {
        DelayQueue::new()
    }
}
