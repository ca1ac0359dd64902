//! One shard of the keys that have a timer, under its own lock.
//!
//! Under the lock keys are compared, and timers are armed and moved, to a time that was read before; nothing else of
//! the user's runs. What leaves is returned, to be dropped or run elsewhere.

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
    /// The last number that was given away.
    number: u64,
}

/// What lies under a key.
pub(super) struct ArmedKey {
    number: u64,
    pub(super) armed: Armed,
}

pub(super) enum Armed {
    Once(Key, Callback),
    Retry(Timeout),
}

pub(super) type Callback = Box<dyn FnOnce(&Context<'_>) + Send>;

/// What has become of a key that was inserted. Keys and timers in it are for the caller to drop.
pub(super) enum Put<K> {
    /// It is there, in place of another or of none. The key, if it was not needed.
    Done(Option<ArmedKey>, Option<K>),
    /// The key is taken.
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

    /// Puts what `arm` makes of a new number under the key. If the key is taken: in place of what is there, or not at
    /// all. If `arm` fails nothing has changed.
    pub(super) fn put<E>(
        &self,
        hash: u64,
        key: K,
        replace: bool,
        arm: impl FnOnce(u64) -> Result<Armed, E>,
    ) -> Result<Put<K>, (E, K)> {
        // The key is older than the lock: if a comparison panics it is dropped after it.
        let mut state = lock(&self.state);
        let ArmedState { keys, count, number } = &mut *state;
        let spot = keys.spot(hash, &key);
        let taken = matches!(spot, Spot::Taken(_));
        if planted!("keyed.scheduled-anew-though-present", false, taken && !replace) {
            return Ok(Put::Taken(key));
        }
        *number += planted!("third.replacement-has-the-old-number", u64::from(!taken), 1);
        let number = *number;
        // Under the lock: a timer that fires at once waits for it, and finds its number.
        let armed = match arm(number) {
            Ok(armed) => armed,
            Err(error) => return Err((error, key)),
        };
        let new = ArmedKey { number, armed };
        Ok(match spot {
            Spot::Taken(slot) => Put::Done(Some(std::mem::replace(slot, new)), Some(key)),
            Spot::Free(free) => {
                free.put(key, new);
                *count += 1;
                Put::Done(None, None)
            }
        })
    }

    /// Takes out what lies under the key.
    pub(super) fn take<Q>(&self, hash: u64, key: &Q) -> Option<(K, ArmedKey)>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let mut state = lock(&self.state);
        let number = state.keys.get_mut(hash, key)?.number;
        state.remove(hash, number)
    }

    /// Takes out what has that number, if it is there still.
    pub(super) fn take_number(&self, hash: u64, number: u64) -> Option<(K, ArmedKey)> {
        lock(&self.state).remove(hash, number)
    }

    /// Whether what has that number is there still.
    pub(super) fn holds(&self, hash: u64, number: u64) -> bool {
        let is = |slot: &mut ArmedKey| (slot.number == number).then_some(());
        lock(&self.state).keys.find(hash, is).is_some()
    }

    /// Looks at what lies under the key, or moves it.
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
