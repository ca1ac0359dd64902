//! Timing wheels.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
mod error;
mod key;
mod place;
mod tick;
mod wheel;
pub use error::{Full, GeometryError, OutOfMemory, RescheduleError};
pub use key::Key;
pub use place::{LevelView, Place, SlotView};
pub use tick::Time;
pub use wheel::{Expired, Hashed, HashedWheel, Hierarchical, HierarchicalWheel, Layout, MAX_SLOTS, Moved, Progress, Wheel};
