//! One shard of the keys and of the operations watched under them, with its own lock.
//!
//! No thread holds two of these locks. Under a lock, keys are compared and no other user code runs; the caller drops
//! removed keys and entries after it has released the lock.

use std::borrow::Borrow;
use std::num::NonZeroU64;
use std::sync::Arc;

use super::list::List;
use super::node::Waiter;
use crate::key_table::{KeyTable, Spot, Stays};
use crate::sync::{Mutex, lock};

#[repr(align(128))]
pub(super) struct Watchers<K, O> {
    state: Mutex<WatchersState<K, O>>,
}

struct WatchersState<K, O> {
    keys: KeyTable<K, List<O>>,
    /// The last serial assigned.
    serial: u64,
    /// The number of entries under all keys.
    watched: usize,
    /// The number of operations whose first key is here.
    delayed: usize,
    closed: bool,
}

/// A place where an operation is watched: the hash of the key, and the serial in the key's list.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchPlace {
    pub(super) hash: u64,
    serial: NonZeroU64,
    /// Its position in the list when it was inserted.
    position: u32,
}

/// The progress of a walk over the entries under a key. It visits every entry that was there when it began.
#[derive(Default)]
pub(super) struct Walk {
    after: u64,
    until: Option<u64>,
    pub(super) done: bool,
}

impl<K: Eq, O> Watchers<K, O> {
    pub(super) fn new() -> Self {
        let state = WatchersState {
            keys: KeyTable::new(),
            serial: 0,
            watched: 0,
            delayed: 0,
            closed: false,
        };
        Watchers { state: Mutex::new(state) }
    }

    /// Watches an entry under a key; `None` if closed. `first` says whether this is the operation's first key. A key
    /// that is not needed stays in `key`, even if a comparison panics.
    #[inline]
    pub(super) fn watch(
        &self,
        hash: u64,
        key: &mut Option<K>,
        first: bool,
        entry: Arc<dyn Waiter<O>>,
    ) -> Option<WatchPlace> {
        let mut state = lock(&self.state);
        if state.closed {
            return None;
        }
        let WatchersState { keys, serial, watched, delayed, .. } = &mut *state;
        *serial += 1;
        let position = match keys.spot(hash, key.as_ref()?) {
            Spot::Taken(list) => list.push(*serial, entry),
            Spot::Free(free) => {
                free.put(key.take()?, List::one(*serial, entry));
                0
            }
        };
        *watched += 1;
        *delayed += usize::from(first);
        NonZeroU64::new(*serial).map(|serial| WatchPlace { hash, serial, position })
    }

    /// Removes an entry from its place. Returns the key to be dropped if this was its last entry.
    #[inline]
    pub(super) fn unwatch(&self, place: WatchPlace, first: bool) -> Option<K> {
        let WatchPlace { hash, serial, position } = place;
        let mut state = lock(&self.state);
        let take = |list: &mut List<O>| {
            let entry = list.remove(serial.get(), position)?;
            let stays = planted!("more.key-outlives-its-last", true, !list.is_empty());
            Some((entry, Stays(stays)))
        };
        let (entry, gone) = state.keys.take(hash, take)?;
        state.watched -= 1;
        state.delayed -= planted!("purgatory.delayed-never-lowered", 0, usize::from(first));
        drop(state);
        drop(entry);
        gone.map(|(key, _)| key)
    }

    /// Copies the next entries under a key, as many as fit into `to`. `false` if there are no more.
    #[inline]
    pub(super) fn walk<Q>(
        &self,
        hash: u64,
        key: &Q,
        walk: &mut Walk,
        to: &mut [Option<Arc<dyn Waiter<O>>>],
    ) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        if walk.done {
            return false;
        }
        let mut state = lock(&self.state);
        let until = *walk.until.get_or_insert(state.serial);
        let until = planted!("purgatory.walk-without-a-fixed-end", state.serial, until);
        let Some(list) = state.keys.get_mut(hash, key) else { return false };
        let (last, done) = list.copy(walk.after, until, to);
        let met = last > walk.after;
        (walk.after, walk.done) = (last, done);
        met
    }

    /// Accepts no more entries, and takes out all that are here.
    pub(super) fn close(&self) -> impl Iterator<Item = (K, List<O>)> + use<K, O> {
        let mut state = lock(&self.state);
        state.closed = planted!("purgatory.stopped-watchers-take-in", false, true);
        state.watched = planted!("purgatory.stop-leaves-the-count", state.watched, 0);
        state.delayed = planted!("third.those-stopped-are-delayed-still", state.delayed, 0);
        state.keys.take_all()
    }

    /// The number of entries under keys, and of operations.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.watched, state.delayed)
    }
}
