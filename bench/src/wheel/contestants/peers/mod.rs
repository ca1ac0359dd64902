//! The peer wheels, which are third-party crates: built with the feature `peers`.

mod delay_queue;
mod hash_wheel;
mod nexus;
mod timer_queue;

use super::of;
use crate::league::Contestant;

/// The peer wheels, in the order of the table.
pub fn all() -> Vec<Contestant> {
    vec![
        of::<timer_queue::TimerQueue>(),
        of::<nexus::Nexus>(),
        of::<delay_queue::DelayQueue>(),
        of::<hash_wheel::HashWheel>(),
    ]
}
