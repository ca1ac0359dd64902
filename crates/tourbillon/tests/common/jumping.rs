//! A clock as users write them: the system's plus an offset, which jumps.
//!
//! It sleeps until the requested time. With [`HandClock`](super::HandClock) the driver reads the clock every half
//! millisecond; with this one nothing reads it in between, so a reading from before a jump stays in use.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::YEAR;
use tourbillon::{Clock, Sleeper};

#[derive(Clone)]
pub(crate) struct JumpingClock(Arc<Inside>);

struct Inside {
    /// A year after the system's clock, so that it can go back.
    begin: Instant,
    /// Nanoseconds.
    offset: AtomicI64,
    /// The sleepers registered since the last jump.
    sleepers: Mutex<Vec<Sleeper>>,
}

impl JumpingClock {
    pub(crate) fn new() -> Self {
        let (offset, sleepers) = (AtomicI64::new(0), Mutex::new(Vec::new()));
        JumpingClock(Arc::new(Inside { begin: Instant::now(), offset, sleepers }))
    }

    /// Jumps, and wakes all sleepers, as [`Clock::wait`] requires.
    pub(crate) fn jump(&self, by: Duration) {
        self.jump_silently(by);
        let sleepers = std::mem::take(&mut *self.0.sleepers.lock().unwrap());
        sleepers.iter().for_each(Sleeper::wake);
    }

    /// Jumps without waking a sleeper, as after a suspend.
    pub(crate) fn jump_silently(&self, by: Duration) {
        self.0.offset.fetch_add(by.as_nanos() as i64, SeqCst);
    }

    /// Goes back without waking a sleeper.
    pub(crate) fn back(&self, by: Duration) {
        self.0.offset.fetch_sub(by.as_nanos() as i64, SeqCst);
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Instant {
        let begin = self.0.begin + YEAR + self.0.begin.elapsed();
        let offset = self.0.offset.load(SeqCst);
        let by = Duration::from_nanos(offset.unsigned_abs());
        if offset < 0 { begin - by } else { begin + by }
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        // Registered before it reads the time: a jump that it does not see wakes it.
        self.0.sleepers.lock().unwrap().push(sleeper.clone());
        sleeper.sleep(until.map(|until| until.saturating_duration_since(self.now())));
    }
}
