//! The peer wheels, which are other people's crates: built with the feature `peers`.

mod delay_queue;
mod hash_wheel;
mod nexus;
mod timer_queue;

use crate::entrant::{Entrant, Of};

/// The peer wheels, in the order of the table.
pub fn all() -> Vec<Box<dyn Entrant>> {
    vec![
        Of::<timer_queue::TimerQueue>::boxed(),
        Of::<nexus::Nexus>::boxed(),
        Of::<delay_queue::DelayQueue>::boxed(),
        Of::<hash_wheel::HashWheel>::boxed(),
    ]
}
