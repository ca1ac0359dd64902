//! The timer services that take part.

#[cfg(feature = "peers")]
mod hash_wheel;
mod memory;
mod ours;
#[cfg(feature = "peers")]
mod pool;
mod tokio_time;

use super::figure::Row;
use crate::league::{Entrants, Of};
use ours::{Handles, Keys, Typed};

/// Everybody, in the order of the tables.
pub fn all() -> Entrants<Row> {
    let mut all: Entrants<Row> = vec![
        Of::<Handles<false>>::boxed(),
        Of::<Keys<false>>::boxed(),
        Of::<Handles<true>>::boxed(),
        Of::<Keys<true>>::boxed(),
        Of::<Typed>::boxed(),
        Of::<tokio_time::Tokio>::boxed(),
    ];
    #[cfg(feature = "peers")]
    all.extend([Of::<pool::Pool>::boxed(), Of::<hash_wheel::HashWheel>::boxed()]);
    all.push(Of::<memory::Memory>::boxed());
    all
}
