//! tokio's timers: a boxed `Sleep`, polled once to register it; for timers that fire, a task that awaits a `Sleep`.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::{Sleep, sleep, sleep_until};

use crate::league::Kind;
use crate::timer::contestant::{Contestant, Seat};
use crate::timer::sink;

pub struct Tokio(Runtime);

pub struct Inside<'a> {
    runtime: &'a Runtime,
    /// Enters the runtime without a task: tokio would make a task yield and leave some `Sleep`s unregistered.
    _guard: EnterGuard<'a>,
    /// The value of [`POLLED`] once all tasks wait.
    expected: u64,
}

/// The number of tasks that have been polled once.
static POLLED: AtomicU64 = AtomicU64::new(0);

impl Contestant for Tokio {
    type Seat<'a> = Inside<'a>;
    type Handle = Pin<Box<Sleep>>;
    const NAME: &'static str = "tokio";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str =
        "multi-thread runtime, with parking_lot; a Sleep polled once, or a task";
    const LEAD: Duration = Duration::from_millis(2500);

    fn new() -> Self {
        Tokio(Builder::new_multi_thread().enable_time().build().expect("a runtime"))
    }

    fn sit(&self, _number: usize) -> Inside<'_> {
        Inside { runtime: &self.0, _guard: self.0.enter(), expected: POLLED.load(Relaxed) }
    }
}

#[inline]
fn register(sleep: Pin<&mut Sleep>) {
    // A short sleep may already be over, if the thread had to wait for a core.
    black_box(sleep.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

impl Seat for Inside<'_> {
    type Handle = Pin<Box<Sleep>>;

    #[inline]
    fn schedule(&mut self, after: Duration, _payload: u64) -> Pin<Box<Sleep>> {
        let mut sleep = Box::pin(sleep(after));
        register(sleep.as_mut());
        sleep
    }

    #[inline]
    fn cancel(&mut self, handle: Pin<Box<Sleep>>) -> bool {
        drop(handle);
        true
    }

    #[inline]
    fn reschedule(&mut self, handle: &mut Pin<Box<Sleep>>, after: Duration) {
        handle.as_mut().reset(tokio::time::Instant::now() + after);
        register(handle.as_mut());
    }

    fn fire_at(&mut self, at: Instant, payload: u64) {
        self.expected += 1;
        self.runtime.spawn(async move {
            POLLED.fetch_add(1, Relaxed);
            sleep_until(at.into()).await;
            sink::fired(payload);
        });
    }

    fn settle(&mut self) {
        while POLLED.load(Relaxed) < self.expected {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
