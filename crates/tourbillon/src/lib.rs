//! A timer engine: millions of timers, O(1) each, never early, silent while nothing is due.

#![forbid(unsafe_code)]

mod clock;
mod contain;
mod engine;
mod error;
mod inside;
mod key;
mod settings;
mod sync;
mod timer;
mod view;

pub use clock::{AdvanceError, Clock, VirtualClock};
pub use engine::counts::{Counts, Lateness};
pub use engine::typed::{Batch, Engine, Fired};
pub use engine::{Sleeper, StartError};
pub use error::{BuildError, ScheduleError};
pub use key::Key;
pub use settings::{AnyClock, Builder};
pub use timer::{CancelOnDrop, Context, Executor, Job, State, Stopped, Timeout, Timer, Unfired};
pub use tourbillon_wheel as wheel;
pub use tourbillon_wheel::RescheduleError;
pub use view::{Pending, ShardView, Snapshot};

#[cfg(all(loom, test))]
mod models;

#[cfg(all(shuttle, test))]
mod schedules;
