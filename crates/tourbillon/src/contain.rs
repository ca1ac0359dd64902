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
    let reported = catch_unwind(AssertUnwindSafe(|| match &hub.on_panic {
        Some(report) => report(payload),
        None => drop(payload),
    }));
    // A report that panics, or a payload whose drop does, leaves a second payload. To drop that could go on for ever.
    if let Err(payload) = reported {
        std::mem::forget(payload);
    }
}
