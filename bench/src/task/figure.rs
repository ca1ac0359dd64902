//! What is measured: the rows one can ask for, the figures each gives, and what ours must come to.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::league::{self, Target};

/// One workload, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Row {
    /// Create one, poll it once, drop the oldest: one thread
    Churn,
    /// The same on two threads at once
    Threads,
    /// A timeout around a future that is ready at once
    Ready,
    /// Move a random one of a million
    Reset,
    /// A million tasks sleep over four seconds, on tokio's executor
    FireOnTokio,
    /// The same on smol's
    FireOnSmol,
    /// A million later sleeps while the driver sleeps
    Later,
}

/// One figure that a run gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    Churn,
    Threads,
    Ready,
    ReadyClocks,
    Reset,
    ResetPolled,
    FireOnTokio,
    FireOnSmol,
    LaterSwitches,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Ours,
    /// What ours are compared with.
    Tokio,
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "none takes part"))]
    Peer,
    /// No timer: what one cannot do without.
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
            Row::Churn => &[Figure::Churn],
            Row::Threads => &[Figure::Threads],
            Row::Ready => &[Figure::Ready, Figure::ReadyClocks],
            Row::Reset => &[Figure::Reset, Figure::ResetPolled],
            Row::FireOnTokio => &[Figure::FireOnTokio],
            Row::FireOnSmol => &[Figure::FireOnSmol],
            Row::Later => &[Figure::LaterSwitches],
        }
    }

    fn rounds(self, quick: bool, asked: Option<u16>) -> usize {
        let default = match (self, quick) {
            (_, true) | (Row::Later, _) => 1,
            (Row::FireOnTokio | Row::FireOnSmol, false) => 2,
            (_, false) => 3,
        };
        asked.map_or(default, usize::from)
    }

    fn is_for(self, kind: Kind) -> bool {
        let floor = matches!(self, Row::Reset | Row::FireOnTokio | Row::FireOnSmol);
        floor || kind != Kind::Floor
    }
}

impl league::Figure for Figure {
    type Kind = Kind;

    fn title(self) -> &'static str {
        match self {
            Figure::Churn => {
                "create a sleep, poll it once, drop the oldest of 1 M, one thread: ns for all three"
            }
            Figure::Threads => {
                "the same, 1 M in all, two threads at once: ns of wall time for one of either"
            }
            Figure::Ready => "a timeout around a future that is ready at once, polled: ns",
            Figure::ReadyClocks => {
                "the same, how much longer than without the timeout: readings of the clock"
            }
            Figure::Reset => "reset a random one of 1 M to later, its task waits on: ns",
            Figure::ResetPolled => "reset a random one of 1 M to later, and poll it: ns",
            Figure::FireOnTokio => {
                "1 M tasks sleep over 4 s, tokio's executor: CPU ns of the process a task, from armed to ended"
            }
            Figure::FireOnSmol => {
                "1 M tasks sleep over 4 s, smol's executor on two threads: CPU ns of the process a task"
            }
            Figure::LaterSwitches => {
                "1 M later sleeps armed while it sleeps: wake-ups of all its threads"
            }
        }
    }

    fn compares(self) -> bool {
        !matches!(self, Figure::LaterSwitches | Figure::ReadyClocks)
    }

    fn targets(self, kind: Kind) -> Vec<Target<Self>> {
        let target = match self {
            Figure::Churn | Figure::Reset | Figure::ResetPolled => Target::OfTokio(0.5),
            Figure::Threads => Target::OfTokio(0.2),
            Figure::Ready => return Vec::new(),
            // One reading, and what it takes to write it down.
            Figure::ReadyClocks => Target::AtMost(1.25),
            Figure::FireOnTokio | Figure::FireOnSmol => Target::OfTokio(0.7),
            Figure::LaterSwitches => Target::AtMost(0.0),
        };
        if kind == Kind::Ours { vec![target] } else { Vec::new() }
    }
}
