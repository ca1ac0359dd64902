//! One shard of the keys that have a timer, with its own lock.
//!
//! Under the lock, keys are compared, and timers are armed and rescheduled to a time that was read before; no other
//! user code runs. Removed entries are returned to the caller, which drops or runs them without the lock.

use std::borrow::Borrow;

use crate::key::Key;
use crate::key_table::{KeyTable, Spot, Stays};
use crate::sync::{Mutex, lock};
use crate::timer::{Context, Timeout};

#[repr(align(128))]
pub(super) struct ArmedKeys<K> {
    state: Mutex<ArmedState<K>>,
}

struct ArmedState<K> {
    keys: KeyTable<K, ArmedKey>,
    count: usize,
    /// The last number assigned.
    number: u64,
}

/// The timer of a key.
pub(super) struct ArmedKey {
    number: u64,
    pub(super) armed: Armed,
}

pub(super) enum Armed {
    Once(Key, Callback),
    Retry(Timeout),
}

pub(super) type Callback = Box<dyn FnOnce(&Context<'_>) + Send>;

/// The result of an insertion. The caller drops the keys and timers in it.
pub(super) enum Put<K> {
    /// Inserted. Contains the entry that was replaced, and the key if it was not needed.
    Done(Option<ArmedKey>, Option<K>),
    /// The key already has a timer.
    Taken(K),
}

impl<K: Eq> ArmedKeys<K> {
    pub(super) fn new() -> Self {
        let state = ArmedState { keys: KeyTable::new(), count: 0, number: 0 };
        ArmedKeys { state: Mutex::new(state) }
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.state).count
    }

    /// Calls `arm` with a new number and inserts the result under `key`. If `arm` fails, nothing changes. If the key
    /// already has a timer, `replace` says whether to replace it or to do nothing.
    pub(super) fn put<E>(
        &self,
        hash: u64,
        key: K,
        replace: bool,
        arm: impl FnOnce(u64) -> Result<Armed, E>,
    ) -> Result<Put<K>, (E, K)> {
        // The key outlives the lock: if a comparison panics, it is dropped after unlocking.
        let mut state = lock(&self.state);
        let ArmedState { keys, count, number } = &mut *state;
        let spot = keys.spot(hash, &key);
        let taken = matches!(spot, Spot::Taken(_));
        if planted!("keyed.scheduled-anew-though-present", false, taken && !replace) {
            return Ok(Put::Taken(key));
        }
        *number += planted!("third.replacement-has-the-old-number", u64::from(!taken), 1);
        let number = *number;
        // Called under the lock: a timer that fires at once waits for the lock, and then finds its number.
        let armed = match arm(number) {
            Ok(armed) => armed,
            Err(error) => {
                planted!(
                    "fourth.refused-replacement-silences-the-old",
                    if let Spot::Taken(slot) = spot {
                        slot.number = number;
                    },
                    ()
                );
                return Err((error, key));
            }
        };
        let new = ArmedKey { number, armed };
        Ok(match spot {
            Spot::Taken(slot) => {
                planted!("sixth.replacement-counts-as-another-key", *count += 1, ());
                Put::Done(Some(std::mem::replace(slot, new)), Some(key))
            }
            Spot::Free(free) => {
                free.put(key, new);
                *count += 1;
                Put::Done(None, None)
            }
        })
    }

    /// Takes out the timer of the key.
    pub(super) fn take<Q>(&self, hash: u64, key: &Q) -> Option<(K, ArmedKey)>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let mut state = lock(&self.state);
        let number = state.keys.get_mut(hash, key)?.number;
        state.remove(hash, number)
    }

    /// Takes out the entry with this number, if it is still there.
    pub(super) fn take_number(&self, hash: u64, number: u64) -> Option<(K, ArmedKey)> {
        lock(&self.state).remove(hash, number)
    }

    /// Whether the entry with this number is still there.
    pub(super) fn holds(&self, hash: u64, number: u64) -> bool {
        let is = |slot: &mut ArmedKey| (slot.number == number).then_some(());
        lock(&self.state).keys.find(hash, is).is_some()
    }

    /// Reads or reschedules the timer of the key.
    pub(super) fn with<Q, R>(&self, hash: u64, key: &Q, look: impl FnOnce(&Armed) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        lock(&self.state).keys.get_mut(hash, key).map(|slot| look(&slot.armed))
    }

    pub(super) fn take_all(&self) -> impl Iterator<Item = (K, ArmedKey)> + use<K> {
        let mut state = lock(&self.state);
        state.count = planted!("keyed.clear-keeps-the-count", state.count, 0);
        state.keys.take_all()
    }
}

impl<K> ArmedState<K> {
    fn remove(&mut self, hash: u64, number: u64) -> Option<(K, ArmedKey)> {
        let is = |slot: &mut ArmedKey| (slot.number == number).then_some(((), Stays(false)));
        let (_, taken) = self.keys.take(hash, is)?;
        self.count -= 1;
        taken
    }
}
