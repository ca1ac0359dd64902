//! What the handles of a timer ask: its state, and the key that it has now.
//!
//! A timer that runs once has one key, the one that its handles were made with: it remembers none, and to ask for it
//! reads nothing of it. So the allocation of most timers is 48 bytes, and to move one touches its node alone.

use tourbillon_wheel as wheel;

use super::task::State;
use crate::sync::atomic::{AtomicU8, Ordering::Acquire, Ordering::Release};
use crate::sync::{Mutex, lock};

const STATES: [State; 5] =
    [State::Pending, State::Running, State::Fired, State::Cancelled, State::HandedBack];

/// The state of a timer.
pub(crate) struct Cell(AtomicU8);

impl Cell {
    pub(super) fn new() -> Self {
        Cell(AtomicU8::new(State::Pending as u8))
    }

    pub(crate) fn get(&self) -> State {
        // Pairs with the store below: who sees "fired" sees what the callback did.
        STATES[usize::from(self.0.load(Acquire))]
    }

    /// The shard's lock is held.
    #[inline]
    pub(crate) fn set(&self, state: State) {
        // Not an exchange: all writers but `fired` hold the lock, and that one only follows `running`.
        self.0.store(state as u8, Release);
    }

    /// The callback has ended; if it was cancelled meanwhile, it stays so. The shard's lock is held if it can repeat.
    #[inline]
    pub(crate) fn fired(&self) {
        if self.get() == State::Running {
            self.set(State::Fired);
        }
    }
}

/// The keys of a timer after its first: [`One`] or [`Many`].
pub(crate) trait Keys: Send + Sync {
    /// Whether there may be more than the first.
    const CAN_REPEAT: bool;
    fn new() -> Self;
    /// It was armed again, with this key. The shard's lock is held.
    fn add(&self, key: wheel::Key);
    /// The key that it has now, if it was armed more than once.
    fn last(&self) -> Option<wheel::Key>;
}

/// It runs once, and has no key but the first.
pub(crate) struct One;

/// It can arm itself again, and remembers the last key.
pub(crate) struct Many(Mutex<Option<wheel::Key>>);

impl Keys for One {
    const CAN_REPEAT: bool = false;

    fn new() -> Self {
        One
    }

    fn add(&self, _key: wheel::Key) {
        debug_assert!(false, "it cannot be armed again");
    }

    fn last(&self) -> Option<wheel::Key> {
        None
    }
}

impl Keys for Many {
    const CAN_REPEAT: bool = true;

    fn new() -> Self {
        Many(Mutex::new(None))
    }

    fn add(&self, key: wheel::Key) {
        *lock(&self.0) = Some(key);
    }

    fn last(&self) -> Option<wheel::Key> {
        *lock(&self.0)
    }
}
