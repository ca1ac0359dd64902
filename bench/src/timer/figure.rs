//! What is measured: the rows one can ask for, the figures each gives, and what ours must come to.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::league::{self, Target};

/// One workload, as named on the command line, by name or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Row {
    /// Schedule one, cancel the oldest: one thread
    #[value(alias = "1")]
    Churn,
    /// The same on two threads at once
    #[value(alias = "2")]
    Threads,
    /// Cancel on another thread than the one that scheduled
    #[value(alias = "3")]
    Elsewhere,
    /// Move a random one of a million
    #[value(alias = "4")]
    Reschedule,
    /// Schedule and cancel short timers while the driver sleeps for long
    #[value(alias = "5")]
    Asleep,
    /// A million fire over four seconds
    #[value(alias = "6")]
    Fire,
    /// One timer, an hour away
    #[value(alias = "7")]
    Idle,
    /// A million later timers while the driver sleeps
    #[value(alias = "8")]
    Later,
    /// How late a hundred thousand a second are
    #[value(alias = "9")]
    Lateness,
}

/// One figure that a run gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    Churn100k,
    Churn1m,
    Threads,
    Elsewhere,
    PassedOn,
    MovedLater,
    Moved,
    Awake,
    Asleep,
    FireCpu,
    IdleSwitches,
    IdleCpu,
    LaterSwitches,
    LateP50,
    LateP99,
    LateMax,
    Early,
}

/// Whose it is, and where its callbacks run: the targets depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    OursOnPool,
    OursOnDriver,
    OursTyped,
    /// What ours are compared with.
    Tokio,
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "none takes part"))]
    Peer,
    /// No timer: the memory that one cannot do without.
    Floor,
}

impl league::Kind for Kind {
    fn is_tokio(self) -> bool {
        self == Kind::Tokio
    }
}

impl league::Row for Row {
    type Figure = Figure;

    fn figures(self) -> &'static [Figure] {
        match self {
            Row::Churn => &[Figure::Churn100k, Figure::Churn1m],
            Row::Threads => &[Figure::Threads],
            Row::Elsewhere => &[Figure::Elsewhere, Figure::PassedOn],
            Row::Reschedule => &[Figure::MovedLater, Figure::Moved],
            Row::Asleep => &[Figure::Awake, Figure::Asleep],
            Row::Fire => &[Figure::FireCpu],
            Row::Idle => &[Figure::IdleSwitches, Figure::IdleCpu],
            Row::Later => &[Figure::LaterSwitches],
            Row::Lateness => &[Figure::LateP50, Figure::LateP99, Figure::LateMax, Figure::Early],
        }
    }

    fn rounds(self, quick: bool, asked: Option<u16>) -> usize {
        let default = match (self, quick) {
            // What is counted does not vary.
            (Row::Idle, _) => return 1,
            (Row::Fire | Row::Lateness | Row::Later, true) => 1,
            (Row::Fire | Row::Lateness | Row::Later, false) | (_, true) => 2,
            _ => 3,
        };
        asked.map_or(default, usize::from)
    }

    /// Threads that sleep disturb nobody, and those that do not are counted for their own.
    fn is_for_all_at_once(self) -> bool {
        self == Row::Idle
    }

    /// Where its callbacks run changes nothing where none run.
    fn is_for(self, kind: Kind) -> bool {
        match kind {
            Kind::OursOnDriver => matches!(self, Row::Fire | Row::Lateness),
            Kind::Floor => matches!(self, Row::Reschedule | Row::Fire),
            _ => true,
        }
    }
}

impl league::Figure for Figure {
    type Kind = Kind;

    fn title(self) -> &'static str {
        match self {
            Figure::Churn100k => {
                "schedule one, cancel the oldest of 100 k, one thread: ns for the pair"
            }
            Figure::Churn1m => {
                "schedule one, cancel the oldest of 1 M, one thread: ns for the pair"
            }
            Figure::Threads => {
                "the same, 1 M in all, two threads at once: ns of wall time for a pair of either"
            }
            Figure::Elsewhere => {
                "cancel what another thread scheduled, which rests meanwhile, of 1 M: ns"
            }
            Figure::PassedOn => {
                "schedule here, cancel the oldest of 100 k there, at once: ns of wall time for the pair"
            }
            Figure::MovedLater => "move a random one of 1 M later, as a keep-alive does: ns",
            Figure::Moved => "move a random one of 1 M to a random delay, earlier or later: ns",
            Figure::Awake => {
                "schedule and cancel timers of 10 ms, the driver awake every 2 ms: ns for the pair"
            }
            Figure::Asleep => {
                "schedule and cancel timers of 10 ms, the only other timer an hour away: ns for the pair"
            }
            Figure::FireCpu => {
                "1 M callbacks over 4 s: CPU ns of the whole process a fired timer, after arming"
            }
            Figure::IdleSwitches => {
                "one timer an hour away: wake-ups of all its threads while watched"
            }
            Figure::IdleCpu => "one timer an hour away: CPU ns of all its threads while watched",
            Figure::LaterSwitches => {
                "1 M later timers scheduled while it sleeps: wake-ups of all its threads"
            }
            Figure::LateP50 => "lateness at 100 k a second, half of them: µs at most",
            Figure::LateP99 => "lateness at 100 k a second, 99 of 100: µs at most",
            Figure::LateMax => "lateness at 100 k a second, the latest: µs",
            Figure::Early => "fired before their deadline: timers",
        }
    }

    fn compares(self) -> bool {
        !matches!(
            self,
            Figure::IdleSwitches | Figure::IdleCpu | Figure::LaterSwitches | Figure::Early
        )
    }

    fn targets(self, kind: Kind) -> Vec<Target<Self>> {
        let cpu = match kind {
            Kind::OursOnPool => 400.0,
            Kind::OursOnDriver => 200.0,
            Kind::OursTyped => 80.0,
            Kind::Tokio | Kind::Peer | Kind::Floor => return Vec::new(),
        };
        match self {
            Figure::Churn100k | Figure::Churn1m => vec![Target::OfTokio(0.45)],
            Figure::Threads => {
                vec![Target::OfTokio(0.15), Target::Throughput(Figure::Churn1m, 1.8)]
            }
            Figure::Elsewhere | Figure::PassedOn => vec![Target::OfTokio(0.5)],
            Figure::MovedLater | Figure::Moved => vec![Target::OfTokio(0.2)],
            Figure::Asleep => vec![Target::OfOwn(Figure::Awake, 1.2)],
            Figure::FireCpu => vec![Target::AtMost(cpu), Target::OfTokio(0.3)],
            Figure::IdleSwitches | Figure::IdleCpu | Figure::LaterSwitches | Figure::Early => {
                vec![Target::AtMost(0.0)]
            }
            // The tick, and the tick with what the system takes to wake a thread.
            Figure::LateP50 => vec![Target::AtMost(1000.0)],
            Figure::LateP99 => vec![Target::AtMost(1300.0)],
            Figure::Awake | Figure::LateMax => Vec::new(),
        }
    }
}
