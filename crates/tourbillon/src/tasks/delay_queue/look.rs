//! Inspecting a delay queue.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::Instant;

use super::{DelayQueue, Item};
use crate::tasks::host::Home;

/// Inspection.
impl<K: Hash + Eq + Clone, V, H: Home> DelayQueue<K, V, H> {
    /// The item that expires next: the earliest deadline, and among equals the first inserted or moved.
    ///
    /// This walks all items, unless the last poll found several items of one tick and some of them are still here.
    pub fn peek(&self) -> Option<(&K, &V)> {
        self.wheel.first().map(|(item, _)| (&item.key, &item.value))
    }

    /// The value of a key, if the key is present.
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.item(key).map(|item| &item.value)
    }

    /// The deadline of a key as it was given, if the key is present. The item expires at the first tick not before it.
    pub fn deadline<Q>(&self, key: &Q) -> Option<Instant>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let key = *self.keys.get(key)?;
        let deadline = planted!(
            "sixth.item-shows-its-tick-as-its-deadline",
            self.wheel.due(key),
            self.wheel.deadline(key)
        );
        deadline.map(|deadline| self.sleep.instant(deadline))
    }

    fn item<Q>(&self, key: &Q) -> Option<&Item<K, V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.wheel.get(*self.keys.get(key)?)
    }

    /// The number of items, including those that are due but not yet returned.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the key is present. The key of an item that expired or was removed is not.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.get(key).is_some()
    }
}
