//! The validated settings of an engine.

use super::context::ContextSettings;
use super::wheels::Geometry;
use crate::spawn::Spawn;

/// The settings of an engine, validated by the builder.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) geometry: Geometry,
    /// The tick in nanoseconds.
    pub(crate) tick: u64,
    /// A power of two.
    pub(crate) shards: usize,
    pub(crate) budget: usize,
    pub(crate) spawn: Spawn,
    pub(crate) name: String,
    pub(crate) context: ContextSettings,
}
