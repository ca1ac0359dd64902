//! Tourbillon: `Timer` by handle and by key, with callbacks on the pool or on the driver, and the typed `Engine`.

use std::time::{Duration, Instant};

use tourbillon::{Engine, Key, Timeout, Timer};

use crate::league::Kind;
use crate::timer::contestant::{Contestant, Seat};
use crate::timer::sink;

/// Timers with handles.
pub struct Handles<const ON_DRIVER: bool>(Timer);
/// Timers with keys.
pub struct Keys<const ON_DRIVER: bool>(Timer);
/// Values, delivered to a handler.
pub struct Typed(Engine<u64>);

const REFUSED: &str = "the timer refused";
const GONE: &str = "a pending timer";

fn timer(on_driver: bool) -> Timer {
    let builder = Timer::builder();
    let builder = if on_driver { builder.on_driver() } else { builder };
    let timer = builder.build().expect("the defaults");
    timer.start().expect("a thread");
    timer
}

const fn settings(on_driver: bool) -> &'static str {
    if on_driver {
        "tick 1 ms, callbacks on the driver"
    } else {
        "tick 1 ms, callbacks on the pool"
    }
}

/// Rows without callbacks do not depend on where callbacks run, so one of the two contestants is enough.
fn absent(on_driver: bool, row: &str) -> Option<&'static str> {
    (on_driver && !matches!(row, "trace" | "fire" | "lateness")).then_some("")
}

impl<const ON_DRIVER: bool> Contestant for Handles<ON_DRIVER> {
    type Seat<'a> = &'a Self;
    type Handle = Timeout;
    const NAME: &'static str =
        if ON_DRIVER { "tourbillon handle, driver" } else { "tourbillon handle" };
    const KIND: Kind = Kind::Ours;
    const SETTINGS: &'static str = settings(ON_DRIVER);

    fn new() -> Self {
        Handles(timer(ON_DRIVER))
    }

    fn sit(&self, _number: usize) -> &Self {
        self
    }

    fn absent(row: &str) -> Option<&'static str> {
        absent(ON_DRIVER, row)
    }
}

impl<const ON_DRIVER: bool> Seat for &Handles<ON_DRIVER> {
    type Handle = Timeout;

    #[inline]
    fn schedule(&mut self, after: Duration, payload: u64) -> Timeout {
        self.0.schedule(after, move |_| sink::fired(payload)).expect(REFUSED)
    }

    #[inline]
    fn cancel(&mut self, handle: Timeout) -> bool {
        handle.cancel()
    }

    #[inline]
    fn reschedule(&mut self, handle: &mut Timeout, after: Duration) {
        handle.reschedule(after).expect(GONE);
    }

    fn fire_at(&mut self, at: Instant, payload: u64) {
        self.0.schedule_at(at, move |_| sink::fired(payload)).expect(REFUSED);
    }
}

impl<const ON_DRIVER: bool> Drop for Handles<ON_DRIVER> {
    /// Waits for its threads, so that none of them runs alongside the next contestant.
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl<const ON_DRIVER: bool> Contestant for Keys<ON_DRIVER> {
    type Seat<'a> = &'a Self;
    type Handle = Key;
    const NAME: &'static str = if ON_DRIVER { "tourbillon key, driver" } else { "tourbillon key" };
    const KIND: Kind = Kind::Ours;
    const SETTINGS: &'static str = settings(ON_DRIVER);

    fn new() -> Self {
        Keys(timer(ON_DRIVER))
    }

    fn sit(&self, _number: usize) -> &Self {
        self
    }

    fn absent(row: &str) -> Option<&'static str> {
        absent(ON_DRIVER, row)
    }
}

impl<const ON_DRIVER: bool> Seat for &Keys<ON_DRIVER> {
    type Handle = Key;

    #[inline]
    fn schedule(&mut self, after: Duration, payload: u64) -> Key {
        self.0.arm(after, move |_| sink::fired(payload)).expect(REFUSED)
    }

    #[inline]
    fn cancel(&mut self, key: Key) -> bool {
        self.0.cancel(key)
    }

    #[inline]
    fn reschedule(&mut self, key: &mut Key, after: Duration) {
        self.0.reschedule(*key, after).expect(GONE);
    }

    fn fire_at(&mut self, at: Instant, payload: u64) {
        self.0.arm_at(at, move |_| sink::fired(payload)).expect(REFUSED);
    }
}

impl<const ON_DRIVER: bool> Drop for Keys<ON_DRIVER> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Contestant for Typed {
    type Seat<'a> = &'a Self;
    type Handle = Key;
    const NAME: &'static str = "tourbillon typed";
    const KIND: Kind = Kind::Ours;
    const SETTINGS: &'static str = "tick 1 ms, values to a handler on the driver";

    fn new() -> Self {
        let engine = Timer::builder()
            .deliver(|batch| batch.for_each(|fired| sink::fired(fired.value)))
            .expect("the defaults");
        engine.start().expect("a thread");
        Typed(engine)
    }

    fn sit(&self, _number: usize) -> &Self {
        self
    }
}

impl Seat for &Typed {
    type Handle = Key;

    #[inline]
    fn schedule(&mut self, after: Duration, payload: u64) -> Key {
        self.0.schedule(after, payload).expect(REFUSED)
    }

    #[inline]
    fn cancel(&mut self, key: Key) -> bool {
        self.0.cancel(key).is_some()
    }

    #[inline]
    fn reschedule(&mut self, key: &mut Key, after: Duration) {
        self.0.reschedule(*key, after).expect(GONE);
    }

    fn fire_at(&mut self, at: Instant, payload: u64) {
        self.0.schedule_at(at, payload).expect(REFUSED);
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        self.0.stop();
    }
}
