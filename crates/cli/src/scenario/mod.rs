//! Scenarios: a wheel, a clock, and steps. One JSON file each.
//!
//! This module defines the format. A [`Scenario`] that exists is valid: every number is in its range, every step has
//! one verb, every callback holds only steps that a callback may take. An invalid file is a [`ScenarioError`], which
//! names the place and what would be right.
//!
//! ```
//! use tourbillon_cli::scenario::Scenario;
//!
//! let text = r#"{"name": "one", "wheel": {"kind": "hashed", "slots": [8]}, "steps": [{"advance": "soon"}]}"#;
//! let error = Scenario::parse(text).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     r#"steps[0].advance: must be an integer 0 to 18446744073709551615, not the string "soon""#
//! );
//! ```

mod expect;
mod file;
mod json;
mod parse;
mod place;
mod read;

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

pub use expect::{Check, Expect};
pub use file::{MOST_BYTES, read};
pub use parse::Further;

/// The deepest nesting of `then`.
pub const MOST_NESTED: usize = 50;

/// A valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it shows, in one line.
    pub name: String,
    /// A description.
    pub about: Option<String>,
    /// The wheel to create.
    pub wheel: WheelSpec,
    /// How time moves inside an `advance`.
    pub drive: Drive,
    /// The maximum number of pending timers.
    pub limit: Option<NonZeroU64>,
    /// The maximum number of timers that one pass fires.
    pub budget: Option<NonZeroU64>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The names of the timers. An [`Id`] is an index into it.
    pub ids: Vec<String>,
}

/// The wheel of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WheelSpec {
    /// The kind of wheel.
    pub kind: Kind,
    /// The number of time units that a slot of the lowest level covers.
    pub tick: NonZeroU64,
    /// The slots of each level, lowest first; exactly one number for a hashed wheel.
    pub slots: Vec<u32>,
    /// The clock when the wheel is created.
    pub start: u64,
}

/// The kinds of wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Levels, each turning more slowly than the one below.
    Hierarchical,
    /// One ring; a count of rounds distinguishes its turns.
    Hashed,
}

/// Where the clock stops on its way through an `advance`. All three fire the same timers at the same times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// At every tick, occupied or not.
    Tick,
    /// Where an occupied slot of any level begins.
    Bucket,
    /// Only where a timer is due.
    Due,
}

impl Drive {
    /// All of them, the one with the most stops first.
    pub const ALL: [Drive; 3] = [Drive::Tick, Drive::Bucket, Drive::Due];

    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Drive::Tick => "tick",
            Drive::Bucket => "bucket",
            Drive::Due => "due",
        }
    }
}

/// A timer of a scenario: the index of its name in [`Scenario::ids`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u32);

/// One step of a scenario.
#[derive(Clone, Debug)]
pub enum Step {
    /// Schedules a timer.
    Schedule(Arc<Schedule>),
    /// Cancels a timer.
    Cancel(Id),
    /// Moves a pending timer.
    Reschedule(Id, When),
    /// Advances the clock, and fires the timers that become due.
    Advance(u64),
    /// Stops the engine.
    Stop,
    /// Checks expectations.
    Expect(Box<Expect>),
}

/// A timer to schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its name.
    pub id: Id,
    /// When it is due.
    pub when: When,
    /// The period, for a repeating timer.
    pub every: Option<NonZeroU64>,
    /// The steps of its callback.
    pub then: Option<Box<Callback>>,
}

/// The steps that a timer runs each time it fires: schedule, cancel, reschedule and stop only.
#[derive(Clone, Debug)]
pub struct Callback {
    /// The place of the list in the file, such as `steps[0].then`.
    pub place: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A deadline, absolute or relative to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// This much from now, −(2^64−1) to 2^64−1.
    Delay(i128),
    /// At this time.
    At(u64),
}

impl When {
    /// The deadline as of `clock`: clamped to the beginning and the end of time, so it never wraps.
    pub fn from(self, clock: u64) -> u64 {
        match self {
            When::At(time) => time,
            When::Delay(delay) => {
                let due = (i128::from(clock) + delay).clamp(0, u64::MAX.into());
                u64::try_from(due).expect("it was clamped")
            }
        }
    }
}

impl Scenario {
    /// Reads a scenario from the text of its file.
    ///
    /// # Errors
    /// The first error in the text.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        parse::scenario(text)
    }

    /// The name of a timer.
    pub fn name_of(&self, id: Id) -> &str {
        &self.ids[id.0 as usize]
    }
}

/// What is wrong with a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The place, such as `steps[3].delay`; empty if it is the whole text.
    pub place: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScenarioError {}
