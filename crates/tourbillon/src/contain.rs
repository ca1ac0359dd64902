//! Panics of foreign code end here: they are counted and reported, and nothing else notices.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::hub::Hub;

/// Runs foreign code. `Err` if it panicked; the panic was reported.
#[inline]
pub(crate) fn contain<R>(hub: &Hub, foreign: impl FnOnce() -> R) -> Result<R, Panicked> {
    // Unwind safety: what the code was in the middle of belongs to the user, and it is either consumed here or theirs
    // to look after. None of it is ours.
    catch_unwind(AssertUnwindSafe(foreign)).map_err(|payload| {
        report(hub, payload);
        Panicked
    })
}

#[derive(Debug)]
pub(crate) struct Panicked;

#[cold]
fn report(hub: &Hub, payload: Box<dyn Any + Send>) {
    let reported = catch_unwind(AssertUnwindSafe(|| {
        if let Some(report) = &hub.on_panic {
            report(&*payload);
        }
    }));
    // A report that panics leaves a payload too, and the drop of a payload may panic and leave another: to drop that
    // could go on for ever.
    for payload in [Some(payload), reported.err()].into_iter().flatten() {
        if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(another);
        }
    }
}
