//! hierarchical_hash_wheel_timer's thread timer: a wheel on its own thread, which receives every request by message.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::{
    ClosureTimer, OneShotClosureState, PeriodicClosureState, Timer,
};

use crate::league::Kind;
use crate::timer::contestant::{Contestant, Seat};
use crate::timer::sink;

type Core = TimerWithThread<u64, OneShotClosureState<u64>, PeriodicClosureState<u64>>;

/// The core; `None` after the shutdown.
pub struct HashWheel(Option<Core>);

pub struct Sender {
    timer: TimerRef<u64, OneShotClosureState<u64>, PeriodicClosureState<u64>>,
    /// The caller chooses the identifiers: the seat's number in the upper bits, and a count in the lower.
    next: u64,
}

impl Contestant for HashWheel {
    type Seat<'a> = Sender;
    type Handle = u64;
    const NAME: &'static str = "hash-wheel-timer";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str = "its thread timer, fx-hash; timed until its thread has done all";
    const LEAD: Duration = Duration::from_millis(2500);

    fn new() -> Self {
        HashWheel(Some(TimerWithThread::new().expect("a thread")))
    }

    fn sit(&self, number: usize) -> Sender {
        let core = self.0.as_ref().expect("it lives");
        Sender { timer: core.timer_ref(), next: (number as u64) << 48 }
    }

    fn absent(row: &str) -> Option<&'static str> {
        (row == "reschedule").then_some("has no verb that moves a timer")
    }
}

impl Drop for HashWheel {
    fn drop(&mut self) {
        if let Some(core) = self.0.take() {
            // An error means that its thread has already ended.
            let _ = core.shutdown();
        }
    }
}

impl Sender {
    #[inline]
    fn name(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Seat for Sender {
    type Handle = u64;

    #[inline]
    fn schedule(&mut self, after: Duration, payload: u64) -> u64 {
        let name = self.name();
        self.timer.schedule_action_once(name, after, move |_| sink::fired(payload));
        name
    }

    #[inline]
    fn cancel(&mut self, handle: u64) -> bool {
        self.timer.cancel(&handle);
        true
    }

    fn fire_at(&mut self, at: Instant, payload: u64) {
        let after = at.saturating_duration_since(Instant::now());
        self.schedule(after, payload);
    }

    /// Requests are carried out in order, so it waits for one sent last.
    fn settle(&mut self) {
        let (done, all_done) = mpsc::channel();
        let name = self.name();
        self.timer.schedule_action_once(name, Duration::ZERO, move |_| {
            // The receiver is waiting, so this cannot fail.
            let _ = done.send(());
        });
        all_done.recv().expect("its thread lives");
    }
}
