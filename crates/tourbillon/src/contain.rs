//! Panics of foreign code end here: they are counted and reported, and nothing else notices.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::hub::Hub;
use crate::engine::shard::Shard;

/// Runs foreign code for a timer of the shard. `None` if it panicked; the panic was counted and reported. No lock is
/// held.
#[inline]
pub(crate) fn contain<T, R>(shard: &Shard<T>, foreign: impl FnOnce() -> R) -> Option<R> {
    // Unwind safety: what the code was in the middle of belongs to the user, and it is either consumed here or theirs
    // to look after. None of it is ours.
    let ran = catch_unwind(AssertUnwindSafe(foreign));
    ran.map_err(|payload| {
        planted!("engine.panic-not-counted", (), shard.count_panic());
        report(&shard.hub, payload);
    })
    .ok()
}

#[cold]
fn report(hub: &Hub, payload: Box<dyn Any + Send>) {
    let report = || {
        if let Some(report) = &hub.on_panic {
            report(&*payload);
        }
    };
    let reported = planted!(
        "engine.panic-of-the-report-not-contained",
        Ok(report()),
        catch_unwind(AssertUnwindSafe(report))
    );
    // A report that panics leaves a payload too.
    let left = [Some(payload), reported.err()].into_iter().flatten();
    left.for_each(planted!("engine.panic-payload-leaked", std::mem::forget, drop_payload));
}

/// Drops what nobody is left to hear of. No lock is held.
pub(crate) fn drop_quietly<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        drop_payload(payload);
    }
}

/// The drop of a payload may panic and leave another: to drop that could go on for ever.
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}
