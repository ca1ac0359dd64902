//! Polling by hand: wakers that count, that run a closure, and that panic in each of their functions.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

use tourbillon::{Timer, VirtualClock};

use crate::common::panic_quietly;

/// A timer of one shard on a virtual clock.
pub(crate) fn timer() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().shards(1).clock(&clock).build().unwrap(), clock)
}

/// A task that counts its wakes.
pub(crate) struct Task {
    wakes: Arc<Wakes>,
    waker: Waker,
}

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Task {
    pub(crate) fn new() -> Self {
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        Task { waker: Waker::from(wakes.clone()), wakes }
    }

    pub(crate) fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        poll(future, &self.waker)
    }

    pub(crate) fn poll_fn<R>(&self, poll: impl FnOnce(&mut Context<'_>) -> R) -> R {
        poll(&mut Context::from_waker(&self.waker))
    }

    /// The number of wakes since the last call.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.swap(0, SeqCst)
    }

    /// How many wakers of this task others hold.
    pub(crate) fn held(&self) -> usize {
        Arc::strong_count(&self.wakes) - 2
    }
}

pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// A waker that runs a closure when it is woken.
pub(crate) fn acting(act: impl Fn() + Send + Sync + 'static) -> Waker {
    struct Act<F>(F);
    impl<F: Fn() + Send + Sync + 'static> Wake for Act<F> {
        fn wake(self: Arc<Self>) {
            (self.0)();
        }
    }
    Waker::from(Arc::new(Act(act)))
}

/// A waker whose drop panics if it is the last clone.
pub(crate) fn panics_when_dropped() -> Waker {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            // Its drop, here, panics.
        }
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            panic_quietly();
        }
    }
    Waker::from(Arc::new(Panics))
}

/// A waker whose clone panics.
pub(crate) fn panics_when_cloned() -> Waker {
    fn clone(_: *const ()) -> RawWaker {
        panic_quietly()
    }
    fn nothing(_: *const ()) {}
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, nothing);
    // SAFETY: the functions do not use the data, which is null, and nothing has to be freed.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) }
}

/// A waker each of whose clones panics when it is dropped. It is never dropped itself.
pub(crate) fn each_panics_when_dropped() -> ManuallyDrop<Waker> {
    fn clone(_: *const ()) -> RawWaker {
        RawWaker::new(std::ptr::null(), &TABLE)
    }
    fn nothing(_: *const ()) {}
    fn panics(_: *const ()) {
        panic_quietly();
    }
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, panics);
    // SAFETY: the functions do not use the data, which is null, and nothing has to be freed.
    ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) })
}
