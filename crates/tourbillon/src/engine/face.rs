//! A face is a front-end built on the engine, such as `Timer`. This is its interface to the engine.

use tourbillon_wheel::Time;

use crate::clock::EngineClock;

/// A front-end of the engine: the type of its values in the wheels, and its state for each shard.
///
/// These functions run under a shard's lock, and must not run user code or drop user values.
pub(crate) trait Face: Send + Sync + Sized + 'static {
    /// The value of a timer in the wheels.
    type Value: Send + 'static;
    /// State of a shard, kept under its lock.
    type Kept: Kept;
    /// State of a shard that is readable without its lock.
    type Shown: Default + Send + Sync;
    /// What the caller of `arm` gets in addition to the timer's key.
    type Given: Copy;

    /// Called before a timer is armed. `None` if the face has no room for it.
    fn arm(value: &mut Self::Value, kept: &mut Self::Kept) -> Option<Self::Given>;

    /// Undoes [`arm`](Face::arm) if the wheel has no memory for the timer.
    fn disarm(_given: Self::Given, _value: &mut Self::Value, _kept: &mut Self::Kept) {}

    /// Publishes the state of the shard after timers were made ready, claimed or handed back. After a pass, `all_due`
    /// says whether every due timer is ready. `hand` is the position of the wheel's hand; it is present only if no
    /// timer is ready and the engine was not stopped.
    #[inline]
    fn show(
        _shown: &Self::Shown,
        _kept: &mut Self::Kept,
        _all_due: Option<bool>,
        _hand: Option<Time>,
    ) {
    }

    /// Whether a claim must inspect a timer before taking it out.
    /// The timer may have to [wait](Face::waits) for another clock, or [stay](Face::start_in_place) in the wheel.
    #[inline]
    fn looks(_kept: &Self::Kept) -> bool {
        false
    }

    /// The engine time until which a ready timer must still wait, if it waits for another clock.
    fn waits(_value: &Self::Value, _now: Time, _clock: &EngineClock) -> Option<Time> {
        None
    }

    /// Prefetches what is needed when the timer starts.
    #[inline]
    fn touch(_value: &Self::Value, _kept: &Self::Kept) {}

    /// Called when a timer has left the wheel and starts.
    #[inline]
    fn start(_value: &mut Self::Value, _kept: &mut Self::Kept) {}

    /// Whether the timer can be armed again. If so, it stays in the wheel while it runs.
    fn stays(_value: &Self::Value) -> bool {
        false
    }

    /// Starts a timer that [stays](Face::stays): returns the value to run, and puts a mark in its place in the wheel.
    fn start_in_place(_value: &mut Self::Value, _kept: &mut Self::Kept) -> Option<Self::Value> {
        None
    }

    /// Whether this value is the mark of a running timer.
    #[inline]
    fn is_running(_value: &Self::Value) -> bool {
        false
    }

    /// Called when the timer that left this mark is armed again with this value.
    fn rearm(_value: &mut Self::Value, _mark: &Self::Value, _kept: &mut Self::Kept) {}

    /// Called when the run of the timer that left this mark has ended and the timer is not armed again.
    fn end(_mark: &mut Self::Value, _handed_back: bool, _kept: &mut Self::Kept) {}

    /// Called when the timer was rescheduled.
    #[inline]
    fn moved(_value: &Self::Value) {}

    /// Called when the engine was stopped and the timer is handed back.
    fn hand_back(_value: &mut Self::Value, _kept: &mut Self::Kept) {}
}

/// State that a face keeps for a shard under its lock.
pub(crate) trait Kept: Default + Send {
    /// The bytes it holds.
    fn memory(&self) -> usize {
        0
    }

    /// Frees memory that only an earlier peak needed.
    fn shrink(&mut self) {}

    /// Whether the memory of a past peak should be [taken](Kept::take_spent).
    #[inline]
    fn is_spent(&self) -> bool {
        false
    }

    /// Takes out the memory of a past peak, to be freed without the lock.
    fn take_spent(&mut self) -> Self {
        Self::default()
    }

    /// Checks the invariants, and names the first that does not hold.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Kept for () {}
