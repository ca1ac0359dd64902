//! The contestants, one small file each, and the order in which the table lists them.

mod btree;
mod heap;
mod list;
mod ours;
#[cfg(feature = "peers")]
mod peers;

pub use ours::{HashedRing, Levels, Ours};

use crate::entrant::{Entrant, Of};

/// Everybody, ours first, then the peer wheels, then the baselines.
pub fn all() -> Vec<Box<dyn Entrant>> {
    let mut all = vec![Of::<Ours<Levels>>::boxed(), Of::<Ours<HashedRing>>::boxed()];
    #[cfg(feature = "peers")]
    all.extend(peers::all());
    all.extend([Of::<heap::Heap>::boxed(), Of::<btree::Tree>::boxed(), Of::<list::List>::boxed()]);
    all
}
