//! What the engine knows of a face: what lies in its wheels, and what is kept of each shard beside them.

use tourbillon_wheel::Time;

use crate::clock::EngineClock;

/// A face of the engine. Whatever is called here runs under a shard's lock, and must neither run nor drop what is the
/// user's.
pub(crate) trait Face: Send + Sync + Sized + 'static {
    /// What lies in the wheels.
    type Value: Send + 'static;
    /// What it keeps of a shard under the shard's lock.
    type Kept: Kept;
    /// What it shows of a shard to those who look without the lock.
    type Shown: Default + Send + Sync;

    /// Timers were made ready, claimed or handed back: shows what can be told of the shard now. After a pass, `all_due`
    /// says whether all that was due is ready; `hand` is where the hand of the wheel is, if nothing is ready and the
    /// engine was not stopped.
    #[inline]
    fn show(
        _shown: &Self::Shown,
        _kept: &mut Self::Kept,
        _all_due: Option<bool>,
        _hand: Option<Time>,
    ) {
    }

    /// Whether a timer that is ready may have to wait still, by another clock.
    #[inline]
    fn may_wait(_kept: &Self::Kept) -> bool {
        false
    }

    /// Until when a timer that is ready has to wait still, if it has to; it [may](Face::may_wait).
    fn waits(_value: &Self::Value, _now: Time, _clock: &EngineClock) -> Option<Time> {
        None
    }

    /// Prefetches what is needed when the timer starts.
    #[inline]
    fn touch(_value: &Self::Value, _kept: &Self::Kept) {}

    /// The timer starts. Says whether it keeps its place among the pending.
    #[inline]
    fn start(_value: &mut Self::Value, _kept: &mut Self::Kept) -> bool {
        false
    }

    /// The timer was moved.
    #[inline]
    fn moved(_value: &Self::Value) {}

    /// The engine was stopped: the timer is handed back.
    fn hand_back(_value: &mut Self::Value, _kept: &mut Self::Kept) {}
}

/// What a face keeps of a shard under its lock.
pub(crate) trait Kept: Default + Send {
    /// The bytes it holds.
    fn memory(&self) -> usize {
        0
    }

    /// Gives back the memory of a peak that has passed.
    fn shrink(&mut self) {}

    /// Names the first invariant that does not hold.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Kept for () {}
