//! Looking at what is in a queue.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::Instant;

use super::{DelayQueue, Item};
use crate::tasks::host::Home;

/// Looking.
impl<K: Hash + Eq + Clone, V, H: Home> DelayQueue<K, V, H> {
    /// The item that expires next: the one with the earliest deadline, and of those with the same the first that was
    /// inserted. If none is due it may walk all items.
    pub fn peek(&self) -> Option<(&K, &V)> {
        self.wheel.first().map(|(item, _)| (&item.key, &item.value))
    }

    /// The value of a key, if it is there.
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.item(key).map(|item| &item.value)
    }

    /// When a key expires, if it is there.
    pub fn deadline<Q>(&self, key: &Q) -> Option<Instant>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.wheel.deadline(*self.keys.get(key)?).map(|deadline| self.sleep.instant(deadline))
    }

    fn item<Q>(&self, key: &Q) -> Option<&Item<K, V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.wheel.get(*self.keys.get(key)?)
    }

    /// How many items are in it, those included whose time has come and that were not given yet.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether an item has that key. One that has come out or was removed has none.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.get(key).is_some()
    }
}
