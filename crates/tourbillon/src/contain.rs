//! Contains panics of user code: a panic is counted and reported, and affects nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The panic hook: called with the payload of every panic that [`contain`] catches.
pub(crate) type OnPanic = Arc<dyn Fn(&(dyn Any + Send)) + Send + Sync>;

/// The counter of user code's panics, and the panic hook.
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

/// Runs user code; returns `None` if it panicked. The panic is counted and reported.
///
/// The caller holds no lock.
#[inline]
pub(crate) fn contain<R>(shard: &impl Panics, foreign: impl FnOnce() -> R) -> Option<R> {
    // Unwind safety: all state that the panic can leave half-changed belongs to the user, and is consumed here or
    // remains the user's responsibility. No engine state is involved.
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
            report(planted!(
                "fourth.panic-hook-gets-the-box",
                &payload as &(dyn Any + Send),
                &*payload
            ));
        }
    };
    let reported = planted!(
        "engine.panic-of-the-report-not-contained",
        Ok(report()),
        catch_unwind(AssertUnwindSafe(report))
    );
    // A panic of the panic hook leaves a second payload.
    let left = [Some(payload), reported.err()].into_iter().flatten();
    left.for_each(planted!("engine.panic-payload-leaked", std::mem::forget, drop_payload));
}

/// Drops a value. A panic of the drop is contained, but neither counted nor reported. The caller holds no lock.
pub(crate) fn drop_quietly<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        planted!("blind.payload-of-a-quiet-drop-panics-out", drop(payload), drop_payload(payload));
    }
}

/// Drops the payload of a panic.
/// If that drop panics too, the new payload is leaked: dropping it could repeat without end.
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

/// A user's closure that an engine owns. A panic of its drop is contained, because it may be dropped anywhere: with the
/// last reference to the engine, for example with a user's handle or at the end of a thread.
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
