//! The wheel's entry for a key: a number, and where to look it up.

use std::sync::Arc;

use super::KeyedCore;
use super::armed_keys::{Armed, ArmedKey};
use crate::timer::Context;

/// A number, and the shard of keys in which to look it up.
pub(super) struct KeyRef<K> {
    pub(super) core: Arc<KeyedCore<K>>,
    pub(super) hash: u64,
    pub(super) number: u64,
}

impl<K: Eq + Send + 'static> KeyRef<K> {
    /// Takes out the entry with this number, if it was neither replaced nor cancelled. Drops the key.
    pub(super) fn take(&self) -> Option<ArmedKey> {
        let (key, slot) = self.core.keys(self.hash).take_number(self.hash, self.number)?;
        planted!("keyed.key-drop-not-contained", drop(key), {
            self.core.timer.contain(|| drop(key));
        });
        Some(slot)
    }

    /// Whether the entry was neither replaced nor cancelled.
    pub(super) fn holds(&self) -> bool {
        self.core.keys(self.hash).holds(self.hash, self.number)
    }
}

/// The callback in the wheel: at the deadline it runs the key's own callback. It is dropped if the key was cancelled or
/// replaced, or the timer was stopped.
pub(super) struct Alarm<K: Eq + Send + 'static>(pub(super) Option<KeyRef<K>>);

impl<K: Eq + Send + 'static> Alarm<K> {
    pub(super) fn ring(mut self, context: &Context<'_>) {
        let slot = self.0.take().and_then(|place| place.take());
        if let Some(ArmedKey { armed: Armed::Once(_, callback), .. }) = slot {
            callback(context);
        }
    }
}

impl<K: Eq + Send + 'static> Drop for Alarm<K> {
    fn drop(&mut self) {
        let Some(place) = self.0.take() else { return };
        if let Some(slot) = planted!("keyed.handed-back-key-stays", None, place.take()) {
            place.core.timer.contain(|| drop(slot));
        }
    }
}
