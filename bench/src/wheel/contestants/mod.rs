//! The contestants, one small file each, and the order in which the table lists them.

mod btree;
mod heap;
mod intrusive;
mod list;
mod ours;
#[cfg(feature = "peers")]
mod peers;

use super::contestant::Contestant;
use crate::league::{self, Column, Kind};
use ours::{HashedRing, Levels, Ours};

/// All contestants: ours, then the peer wheels, then the baselines.
pub fn all() -> Vec<league::Contestant> {
    let mut all =
        vec![of::<Ours<Levels>>(), of::<Ours<HashedRing>>(), of::<intrusive::Intrusive>()];
    #[cfg(feature = "peers")]
    all.extend(peers::all());
    all.extend([of::<heap::Heap>(), of::<btree::Tree>(), of::<list::List>()]);
    all.push(league::Contestant {
        name: "floor: a cache line",
        kind: Kind::Floor,
        settings: "no wheel: one independent cache line for each timer, in the order of the row",
        run: super::floor,
        absent: |_, _| None,
        missing: |_| None,
    });
    all
}

fn of<C: Contestant>() -> league::Contestant {
    league::Contestant {
        name: C::NAME,
        kind: C::KIND,
        settings: C::SETTINGS,
        run: super::run::<C>,
        absent: absent::<C>,
        missing: |_| None,
    }
}

fn absent<C: Contestant>(_row: &str, column: &Column) -> Option<&'static str> {
    (column.timers > C::MOST.0).then_some(C::MOST.1)
}
