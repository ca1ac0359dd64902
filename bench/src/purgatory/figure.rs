//! What is measured: rows, the figures that each gives, and what ours is held to.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Row {
    /// One comes, the oldest of ten thousand is completed
    #[value(alias = "1")]
    Stream,
    /// A million at once; half completed, half expiring, in the order in which they came
    #[value(alias = "2")]
    Million,
    /// The same in a random order, with random timeouts
    #[value(alias = "3")]
    Random,
    /// A check with one, a hundred and ten thousand waiting
    #[value(alias = "4")]
    Check,
    /// Two threads add, two check
    #[value(alias = "5")]
    Threads,
    /// Millions come and go beside one that stays
    #[value(alias = "6")]
    Growth,
}

/// One figure that a run gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    StreamRate,
    Rate,
    Watch,
    Complete,
    Expire,
    PeakBytes,
    LeftBytes,
    RandomRate,
    RandomWatch,
    RandomComplete,
    RandomExpire,
    RandomPeakBytes,
    RandomLeftBytes,
    CheckOne,
    CheckHundred,
    CheckTenThousand,
    CompleteTenThousand,
    ThreadsRate,
    GrowthTime,
    GrowthBytes,
}

pub type Readings = BTreeMap<Figure, f64>;

/// What a figure of ours is held to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
        }
    }
}

impl Row {
    pub fn figures(self) -> &'static [Figure] {
        match self {
            Row::Stream => &[Figure::StreamRate],
            Row::Million => &[
                Figure::Rate,
                Figure::Watch,
                Figure::Complete,
                Figure::Expire,
                Figure::PeakBytes,
                Figure::LeftBytes,
            ],
            Row::Random => &[
                Figure::RandomRate,
                Figure::RandomWatch,
                Figure::RandomComplete,
                Figure::RandomExpire,
                Figure::RandomPeakBytes,
                Figure::RandomLeftBytes,
            ],
            Row::Check => &[
                Figure::CheckOne,
                Figure::CheckHundred,
                Figure::CheckTenThousand,
                Figure::CompleteTenThousand,
            ],
            Row::Threads => &[Figure::ThreadsRate],
            Row::Growth => &[Figure::GrowthTime, Figure::GrowthBytes],
        }
    }
}

impl Figure {
    pub fn title(self) -> &'static str {
        match self {
            Figure::StreamRate => {
                "watch one on three keys, complete the oldest of 10 k, one thread: operations a second"
            }
            Figure::Rate => {
                "1 M at once on three keys each, half completed, half expiring, in order: operations a second"
            }
            Figure::Watch => "  of these, to watch one: ns",
            Figure::Complete => "  to complete one by a check: ns",
            Figure::Expire => "  to expire one: ns",
            Figure::PeakBytes => "  bytes an operation, at the peak",
            Figure::LeftBytes => "  bytes that are left in all, after the last",
            Figure::RandomRate => {
                "the same in a random order, random timeouts: operations a second"
            }
            Figure::RandomWatch => "  of these, to watch one: ns",
            Figure::RandomComplete => "  to complete one by a check: ns",
            Figure::RandomExpire => "  to expire one: ns",
            Figure::RandomPeakBytes => "  bytes an operation, at the peak",
            Figure::RandomLeftBytes => "  bytes that are left in all, after the last",
            Figure::CheckOne => "check a key with one waiting, not ready: ns",
            Figure::CheckHundred => "check a key with 100 waiting, none ready: ns",
            Figure::CheckTenThousand => "check a key with 10 k waiting, none ready: ns",
            Figure::CompleteTenThousand => {
                "check a key with 10 k waiting, all ready: ns for each that is completed"
            }
            Figure::ThreadsRate => "two threads add, two check: operations a second, of wall time",
            Figure::GrowthTime => {
                "watch + complete after 2 M completions, beside one that stays: times that of the first 100 k"
            }
            Figure::GrowthBytes => "  bytes that are left beside the one that stays",
        }
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Figure::StreamRate | Figure::Rate | Figure::RandomRate | Figure::ThreadsRate)
    }

    pub fn target(self) -> Option<Target> {
        match self {
            Figure::StreamRate => Some(Target::AtLeast(1e6)),
            // A few buffers that every thread or engine keeps.
            Figure::LeftBytes | Figure::RandomLeftBytes | Figure::GrowthBytes => {
                Some(Target::AtMost(65_536.0))
            }
            Figure::GrowthTime => Some(Target::AtMost(1.25)),
            _ => None,
        }
    }
}
