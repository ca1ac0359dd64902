//! What is made without a builder: the defaults.

use super::Builder;
use crate::queue::DelayQueue;
use crate::timer::Timer;

/// Making one.
impl Timer {
    /// A timer with a tick of 1 ms whose callbacks run on a pool. It starts no thread before the first timer.
    pub fn new() -> Self {
        Timer::builder().build().expect("the defaults are in range")
    }

    /// Settings for a timer, or for an [`Engine`](crate::Engine).
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Default for Timer {
    fn default() -> Self {
        Timer::new()
    }
}

/// Making one.
impl<T: Send + 'static> DelayQueue<T> {
    /// A queue with a tick of 1 ms. For other settings there is [`Builder::queue`].
    pub fn new() -> Self {
        Builder::default().queue().expect("the defaults are in range")
    }
}

impl<T: Send + 'static> Default for DelayQueue<T> {
    fn default() -> Self {
        DelayQueue::new()
    }
}
