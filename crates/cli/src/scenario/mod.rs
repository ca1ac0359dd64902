//! Scenarios: a wheel, a clock, and what happens. One JSON file each.
//!
//! Owns what a scenario may say. A [`Scenario`] that exists is valid: every number is in its range, every step has
//! one verb, every callback holds only what a callback may do. What is wrong with a file is a [`ScenarioError`]
//! that names the place and what would be right.
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

/// The deepest that `then` may be nested.
pub const MOST_NESTED: usize = 50;

/// A valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it shows, in one line.
    pub name: String,
    /// Prose.
    pub about: Option<String>,
    /// The wheel to make.
    pub wheel: WheelSpec,
    /// How time moves inside an `advance`.
    pub drive: Drive,
    /// The most timers pending at once.
    pub limit: Option<NonZeroU64>,
    /// The most timers fired in one pass.
    pub budget: Option<NonZeroU64>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// The names of the timers. An [`Id`] is an index into it.
    pub ids: Vec<String>,
}

/// The wheel of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WheelSpec {
    /// Which of the two.
    pub kind: Kind,
    /// Units a slot of the lowest level covers.
    pub tick: NonZeroU64,
    /// Slots a level, lowest first; exactly one number for a hashed wheel.
    pub slots: Vec<u32>,
    /// The clock when the wheel is made.
    pub start: u64,
}

/// The kinds of wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Levels, each turning slower than the one below.
    Hierarchical,
    /// One ring; rounds tell the turns apart.
    Hashed,
}

/// Where the clock stops on its way through an `advance`. All three fire the same timers at the same times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// At every tick, whether or not anything is there.
    Tick,
    /// Where an occupied slot of any level begins.
    Bucket,
    /// Only where a timer is due.
    Due,
}

impl Drive {
    /// All of them, the most restless first.
    pub const ALL: [Drive; 3] = [Drive::Tick, Drive::Bucket, Drive::Due];

    /// The word for it in a scenario.
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

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// Start a timer.
    Schedule(Arc<Schedule>),
    /// Cancel it.
    Cancel(Id),
    /// Move a pending timer.
    Reschedule(Id, When),
    /// Move the clock, and fire what is due on the way.
    Advance(u64),
    /// Stop the engine.
    Stop,
    /// Check.
    Expect(Box<Expect>),
}

/// A timer to start.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its name.
    pub id: Id,
    /// When it is due.
    pub when: When,
    /// The period, for a timer that repeats.
    pub every: Option<NonZeroU64>,
    /// What its callback does.
    pub then: Option<Box<Callback>>,
}

/// What a timer does each time it fires: schedule, cancel, reschedule and stop only.
#[derive(Clone, Debug)]
pub struct Callback {
    /// Where the list is in the file, as `steps[0].then`.
    pub place: String,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

/// A due time, absolute or from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So much from now, −(2^64−1) to 2^64−1.
    Delay(i128),
    /// At this time.
    At(u64),
}

impl When {
    /// The due time as of `clock`: clamped to the beginning and the end of time, it never wraps.
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
    /// The first thing that is wrong with it.
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
    /// As `steps[3].delay`; empty if it is the whole text.
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
