//! Timing wheels.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bitmap;
mod check;
mod chunks;
mod shared;
mod due;
mod error;
mod hashed;
mod hierarchical;
mod key;
mod levels;
mod nodes;
mod place;
mod segments;
mod tick;
mod wheel;

pub use error::{Full, GeometryError, OutOfMemory, RescheduleError};
pub use hashed::Hashed;
pub use hierarchical::Hierarchical;
pub use key::Key;
pub use place::{LevelView, Place, SlotView};
pub use tick::Time;
pub use wheel::{Expired, HashedWheel, HierarchicalWheel, Kind, MAX_SLOTS, Moved, Progress, Wheel};
