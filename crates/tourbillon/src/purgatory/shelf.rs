//! The keys, and who waits under them: a part of the keys on each shelf, under a lock of its own.
//!
//! Nobody holds two shelves. Under the lock of one, keys are compared, and nothing else of the user's runs: what leaves
//! is dropped by the caller, after the lock.

use std::borrow::Borrow;
use std::num::NonZeroU64;
use std::sync::Arc;

use super::list::List;
use super::node::Entry;
use crate::key_table::KeyTable;
use crate::sync::{Mutex, lock};

/// So many are copied under the lock at a time.
const BATCH: usize = 64;

#[repr(align(128))]
pub(super) struct Shelf<K, O> {
    state: Mutex<State<K, O>>,
}

struct State<K, O> {
    keys: KeyTable<K, List<O>>,
    /// The last serial that was given away.
    serial: u64,
    /// Entries under all keys.
    watched: usize,
    /// Operations whose first key is here.
    delayed: usize,
    closed: bool,
}

/// Where an operation is watched: under which hash, and which of those there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) hash: u64,
    serial: NonZeroU64,
}

/// How far a walk over those under a key has come. It meets everybody who was there when it began.
#[derive(Default)]
pub(super) struct Walk {
    after: u64,
    until: Option<u64>,
    done: bool,
}

impl<K: Eq, O> Shelf<K, O> {
    pub(super) fn new() -> Self {
        let state =
            State { keys: KeyTable::new(), serial: 0, watched: 0, delayed: 0, closed: false };
        Shelf { state: Mutex::new(state) }
    }

    /// Watches an entry under a key; `first` of its keys or another. `None` if the shelf is closed.
    #[inline]
    pub(super) fn watch(
        &self,
        hash: u64,
        key: K,
        first: bool,
        entry: Arc<dyn Entry<O>>,
    ) -> Option<Place> {
        let mut state = lock(&self.state);
        if state.closed {
            // Who was refused is dropped after the lock, and so is the key.
            drop(state);
            return None;
        }
        state.serial += 1;
        let serial = state.serial;
        let (list, unused) = state.keys.get_or_make(hash, key, List::new);
        list.push(serial, entry);
        state.watched += 1;
        state.delayed += usize::from(first);
        drop(state);
        drop(unused);
        Some(Place { hash, serial: NonZeroU64::new(serial)? })
    }

    /// Takes an entry away from its place, and the key with the last of them.
    #[inline]
    pub(super) fn unwatch(&self, place: Place, first: bool) {
        let Place { hash, serial } = place;
        let mut state = lock(&self.state);
        let take = |list: &mut List<O>| Some((list.remove(serial.get())?, list.is_empty()));
        let Some((entry, empty)) = state.keys.find(hash, take) else { return };
        state.watched -= 1;
        state.delayed -= usize::from(first);
        let key = if empty { state.keys.remove(hash, List::is_empty) } else { None };
        drop(state);
        drop((entry, key));
    }

    /// Copies the next few who wait under a key. `false` if there are none any more.
    #[inline]
    pub(super) fn walk<Q>(
        &self,
        hash: u64,
        key: &Q,
        walk: &mut Walk,
        batch: &mut Vec<Arc<dyn Entry<O>>>,
    ) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        debug_assert!(batch.is_empty());
        if walk.done {
            return false;
        }
        let mut state = lock(&self.state);
        let until = *walk.until.get_or_insert(state.serial);
        if let Some(list) = state.keys.get_mut(hash, key) {
            walk.after = list.copy(walk.after, until, BATCH, batch);
        }
        walk.done = batch.len() < BATCH;
        !batch.is_empty()
    }

    /// Takes nobody in from now on, and gives out all who are here.
    pub(super) fn close(&self) -> impl Iterator<Item = (K, List<O>)> + use<K, O> {
        let mut state = lock(&self.state);
        state.closed = true;
        state.watched = 0;
        state.delayed = 0;
        state.keys.take_all()
    }

    /// Entries under keys, and operations.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.watched, state.delayed)
    }
}
