//! Panics of foreign code end here: they are counted and reported, and nothing else notices.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Calls this with the payload of a panic.
pub(crate) type OnPanic = Arc<dyn Fn(&(dyn Any + Send)) + Send + Sync>;

/// Who counts the panics of foreign code, and knows whom to tell.
pub(crate) trait Panics {
    fn count_panic(&self);
    fn on_panic(&self) -> Option<&OnPanic>;
}

impl<P: Panics> Panics for Arc<P> {
    fn count_panic(&self) {
        (**self).count_panic();
    }

    fn on_panic(&self) -> Option<&OnPanic> {
        (**self).on_panic()
    }
}

/// Runs foreign code for a timer of the shard. `None` if it panicked; the panic was counted and reported. No lock is
/// held.
#[inline]
pub(crate) fn contain<R>(shard: &impl Panics, foreign: impl FnOnce() -> R) -> Option<R> {
    // Unwind safety: what the code was in the middle of belongs to the user, and it is either consumed here or theirs
    // to look after. None of it is ours.
    let ran = catch_unwind(AssertUnwindSafe(foreign));
    ran.map_err(|payload| {
        planted!("engine.panic-not-counted", (), shard.count_panic());
        report(shard.on_panic(), payload);
    })
    .ok()
}

#[cold]
fn report(on_panic: Option<&OnPanic>, payload: Box<dyn Any + Send>) {
    let report = || {
        if let Some(report) = on_panic {
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
    let dropped = planted!(
        "later.payload-that-panics-ends-the-driver",
        Ok(drop(payload)),
        catch_unwind(AssertUnwindSafe(|| drop(payload)))
    );
    if let Err(another) = dropped {
        std::mem::forget(another);
    }
}

/// A closure that an engine keeps for itself. Its drop may panic, and happens wherever the last reference to the engine
/// is dropped: in a handle of the user's, or at the end of a thread.
pub(crate) struct Kept<F>(Option<F>);

impl<F> Kept<F> {
    pub(crate) fn new(kept: F) -> Self {
        Kept(Some(kept))
    }

    pub(crate) fn get(&self) -> &F {
        self.0.as_ref().expect("it is there until this is dropped")
    }

    pub(crate) fn get_mut(&mut self) -> &mut F {
        self.0.as_mut().expect("it is there until this is dropped")
    }
}

impl<F> Drop for Kept<F> {
    fn drop(&mut self) {
        planted!("third.kept-closure-panics-out", drop(self.0.take()), drop_quietly(self.0.take()));
    }
}
