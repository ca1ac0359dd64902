//! What an engine is made of, checked: the builder has seen to it.

use super::context::ContextSettings;
use super::wheels::Geometry;
use crate::spawn::Spawn;

/// The settings of an engine, checked.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) geometry: Geometry,
    /// Nanoseconds.
    pub(crate) tick: u64,
    /// A power of two.
    pub(crate) shards: usize,
    pub(crate) budget: usize,
    pub(crate) spawn: Spawn,
    pub(crate) name: String,
    pub(crate) context: ContextSettings,
}
