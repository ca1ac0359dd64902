//! The contestants, one small file each, and the order in which the table lists them.

mod btree;
mod delay_queue;
mod hash_wheel;
mod heap;
mod list;
mod nexus;
mod ours;
mod timer_queue;

pub use ours::{HashedRing, Levels, Ours};

use crate::entrant::{Entrant, Of};

/// Everybody, ours first, then the peer wheels, then the baselines.
pub fn all() -> Vec<Box<dyn Entrant>> {
    vec![
        Of::<Ours<Levels>>::boxed(),
        Of::<Ours<HashedRing>>::boxed(),
        Of::<timer_queue::TimerQueue>::boxed(),
        Of::<nexus::Nexus>::boxed(),
        Of::<delay_queue::DelayQueue>::boxed(),
        Of::<hash_wheel::HashWheel>::boxed(),
        Of::<heap::Heap>::boxed(),
        Of::<btree::Tree>::boxed(),
        Of::<list::List>::boxed(),
    ]
}
