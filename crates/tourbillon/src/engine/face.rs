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
    /// What the caller who arms a timer gets beside its key.
    type Given: Copy;

    /// The timer is about to be armed. `None` if the face has no room for it.
    fn arm(value: &mut Self::Value, kept: &mut Self::Kept) -> Option<Self::Given>;

    /// The wheel had no memory for a timer after [`arm`](Face::arm): undoes that.
    fn disarm(_given: Self::Given, _value: &mut Self::Value, _kept: &mut Self::Kept) {}

    /// Timers were made ready, claimed or handed back: publishes how the shard stands now. After a pass, `all_due`
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

    /// Whether a claim must look at a timer before it takes it out: the timer may have to [wait](Face::waits) for
    /// another clock, or [stay](Face::start_in_place) in the wheel.
    #[inline]
    fn looks(_kept: &Self::Kept) -> bool {
        false
    }

    /// Until when a timer that is ready has to wait still, by another clock.
    fn waits(_value: &Self::Value, _now: Time, _clock: &EngineClock) -> Option<Time> {
        None
    }

    /// Prefetches what is needed when the timer starts.
    #[inline]
    fn touch(_value: &Self::Value, _kept: &Self::Kept) {}

    /// The timer starts, and has left the wheel.
    #[inline]
    fn start(_value: &mut Self::Value, _kept: &mut Self::Kept) {}

    /// Whether the timer can be armed again, and so stays in the wheel while it runs.
    fn stays(_value: &Self::Value) -> bool {
        false
    }

    /// A timer that [stays](Face::stays) starts: returns what runs, and leaves a mark in the wheel.
    fn start_in_place(_value: &mut Self::Value, _kept: &mut Self::Kept) -> Option<Self::Value> {
        None
    }

    /// Whether this is the mark of a timer that runs.
    #[inline]
    fn is_running(_value: &Self::Value) -> bool {
        false
    }

    /// The timer that left that mark is armed again, with this value.
    fn rearm(_value: &mut Self::Value, _mark: &Self::Value, _kept: &mut Self::Kept) {}

    /// The run of the timer that left that mark has ended, and it is not armed again.
    fn end(_mark: &mut Self::Value, _handed_back: bool, _kept: &mut Self::Kept) {}

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

    /// Whether a crowd has gone, and its memory is to be [taken](Kept::take_spent).
    #[inline]
    fn is_spent(&self) -> bool {
        false
    }

    /// The memory of a crowd that has gone, to be freed when the lock is not held.
    fn take_spent(&mut self) -> Self {
        Self::default()
    }

    /// Names the first invariant that does not hold.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Kept for () {}
