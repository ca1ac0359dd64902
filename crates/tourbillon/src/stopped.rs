//! The result of a stop with a time limit.

/// The timers that never started, and whether all callbacks have ended.
///
/// Returned by [`Timer::stop_within`](crate::Timer::stop_within) and
/// [`Engine::stop_within`](crate::Engine::stop_within).
///
/// ```
/// use std::time::Duration;
/// use tourbillon::Timer;
///
/// let timer = Timer::new();
/// timer.schedule(Duration::from_secs(60), |_| ())?;
/// let stopped = timer.stop_within(Duration::from_secs(1));
/// assert!(stopped.finished && stopped.unfired.len() == 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Stopped<U> {
    /// The timers that had not started.
    pub unfired: Vec<U>,
    /// Whether all running callbacks ended within the limit.
    pub finished: bool,
}
