//! The timer services that take part.

#[cfg(feature = "peers")]
mod hash_wheel;
mod memory;
mod ours;
#[cfg(feature = "peers")]
mod pool;
mod tokio_time;

use super::of;
use crate::league::Contestant;
use ours::{Handles, Keys, Typed};

/// All contestants, in the order of the tables.
pub fn all() -> Vec<Contestant> {
    let mut all = vec![
        of::<Handles<false>>(),
        of::<Keys<false>>(),
        of::<Handles<true>>(),
        of::<Keys<true>>(),
        of::<Typed>(),
        of::<tokio_time::Tokio>(),
    ];
    #[cfg(feature = "peers")]
    all.extend([of::<pool::Pool>(), of::<hash_wheel::HashWheel>()]);
    all.push(of::<memory::Memory>());
    all
}
