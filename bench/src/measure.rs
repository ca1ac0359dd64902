//! What is measured: the operations one can ask for, the measures each gives, and how a measure reads.

use clap::ValueEnum;

use crate::load::Spread;

/// What a contestant is made to do in one run, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Start every timer, from empty
    Start,
    /// Cancel and start a random timer, and the floor under it
    Random,
    /// Cancel and start the oldest timer, and the floor under it
    InOrder,
    /// Move a random timer later
    Reschedule,
    /// Cancel a random timer, and the floor under it
    Cancel,
    /// Start to fire, stepping ms by ms
    Life,
    /// Advance by 1 ms with nothing due, and ask for a bound of the next
    Poll,
    /// The longest single advance of a whole life
    Longest,
    /// Cancel the earliest and ask for the next, all in one upper slot
    Next,
    /// The longest call with a million in one upper slot
    Pause,
    /// Bytes a timer, filled and after churn
    Memory,
    /// The two tables that explain the family
    Family,
}

/// One figure that a run gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    Start,
    CancelStartRandom,
    CancelStartInOrder,
    RescheduleLater,
    Cancel,
    WholeLife,
    NothingDuePoll,
    Bound,
    LongestAdvance,
    NextExact,
    NextBound,
    PauseAdvance,
    PauseSlice,
    PauseCancel,
    FilledBytes,
    FilledPeak,
    ChurnedBytes,
    ChurnedPeak,
    ChurnedDead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Unit {
    #[serde(rename = "ns")]
    Nanoseconds,
    /// A single longest time: the least of the rounds counts, the others were disturbed.
    #[serde(rename = "ns, longest")]
    Longest,
    #[serde(rename = "bytes a timer")]
    Bytes,
    #[serde(rename = "entries a timer")]
    Entries,
}

impl Measure {
    pub const ALL: [Measure; 19] = [
        Measure::Start,
        Measure::CancelStartRandom,
        Measure::CancelStartInOrder,
        Measure::RescheduleLater,
        Measure::Cancel,
        Measure::WholeLife,
        Measure::NothingDuePoll,
        Measure::Bound,
        Measure::LongestAdvance,
        Measure::NextExact,
        Measure::NextBound,
        Measure::PauseAdvance,
        Measure::PauseSlice,
        Measure::PauseCancel,
        Measure::FilledBytes,
        Measure::FilledPeak,
        Measure::ChurnedBytes,
        Measure::ChurnedPeak,
        Measure::ChurnedDead,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Measure::Start => "start: ns a timer, from empty, no capacity hint",
            Measure::CancelStartRandom => "cancel+start of a random timer: ns for the pair",
            Measure::CancelStartInOrder => {
                "cancel+start in arrival order, the oldest first: ns for the pair"
            }
            Measure::RescheduleLater => "reschedule a random timer later: ns",
            Measure::Cancel => "cancel a random timer, the keys streamed: ns",
            Measure::WholeLife => {
                "whole life, start to fire: ns a timer (ms by ms for 60 s, then from deadline to deadline)"
            }
            Measure::NothingDuePoll => "nothing-due poll: ns to advance by 1 ms",
            Measure::Bound => "a lower bound of the next due time, asked after that: ns",
            Measure::LongestAdvance => "longest single advance of a whole life: µs",
            Measure::NextExact => {
                "cancel the earliest, then the exact next due time: ns for the pair"
            }
            Measure::NextBound => {
                "cancel the earliest, then a lower bound of the next due time: ns for the pair"
            }
            Measure::PauseAdvance => "pause: longest advance, no budget: µs",
            Measure::PauseSlice => {
                "pause: longest call with a budget of 1000, its pops included: µs"
            }
            Measure::PauseCancel => {
                "pause: longest single cancel while nine of ten are cancelled: µs"
            }
            Measure::FilledBytes => "memory: bytes a timer when filled",
            Measure::FilledPeak => "memory: bytes a timer at the peak while filling",
            Measure::ChurnedBytes => {
                "memory: bytes a timer after 10 operations a timer, moves both ways, time at rest"
            }
            Measure::ChurnedPeak => "memory: bytes a timer at the peak of that churn",
            Measure::ChurnedDead => "memory: dead entries a timer after that churn, where known",
        }
    }

    /// What is measured under it, if anything is: no contestant can be much quicker.
    pub fn floor(self) -> Option<&'static str> {
        match self {
            Measure::CancelStartRandom | Measure::CancelStartInOrder => {
                Some("the memory of the hierarchical one, no wheel")
            }
            Measure::Cancel => Some("one random cache line, independent"),
            _ => None,
        }
    }

    pub fn unit(self) -> Unit {
        match self {
            Measure::LongestAdvance
            | Measure::PauseAdvance
            | Measure::PauseSlice
            | Measure::PauseCancel => Unit::Longest,
            Measure::FilledBytes
            | Measure::FilledPeak
            | Measure::ChurnedBytes
            | Measure::ChurnedPeak => Unit::Bytes,
            Measure::ChurnedDead => Unit::Entries,
            _ => Unit::Nanoseconds,
        }
    }
}

impl Op {
    /// The spreads of deadlines under which it is run.
    pub fn spreads(self) -> &'static [Spread] {
        match self {
            Op::Poll | Op::Memory => &[Spread::Uniform],
            Op::Next | Op::Pause => &[Spread::Crowd],
            Op::Family => &[],
            _ => &[Spread::Uniform, Spread::Log],
        }
    }

    /// How many rounds of so many it takes part in: bytes do not vary, and of the longest times only the least
    /// counts.
    pub fn rounds(self, rounds: usize, population: usize) -> usize {
        match self {
            Op::Memory => 1,
            Op::Longest | Op::Pause if population >= 1_000_000 => rounds.div_ceil(2),
            _ => rounds,
        }
    }
}
