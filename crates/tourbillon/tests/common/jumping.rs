//! A clock as users write them: the system's plus an offset, which jumps.
//!
//! It sleeps until the moment it is asked for. Unlike [`HandClock`](super::HandClock), whose driver looks every half
//! millisecond, it lets nobody look in between: what was read of it before a jump stays as it was.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::YEAR;
use tourbillon::{Clock, Sleeper};

#[derive(Clone)]
pub(crate) struct JumpingClock(Arc<Inside>);

struct Inside {
    /// A year after the system's clock: there is room to go back.
    begin: Instant,
    /// Nanoseconds.
    offset: AtomicI64,
    /// Those that have gone to sleep since the last jump.
    sleepers: Mutex<Vec<Sleeper>>,
}

impl JumpingClock {
    pub(crate) fn new() -> Self {
        let (offset, sleepers) = (AtomicI64::new(0), Mutex::new(Vec::new()));
        JumpingClock(Arc::new(Inside { begin: Instant::now(), offset, sleepers }))
    }

    /// Jumps, and wakes all who sleep, as [`Clock::wait`] asks for.
    pub(crate) fn jump(&self, by: Duration) {
        self.jump_silently(by);
        let sleepers = std::mem::take(&mut *self.0.sleepers.lock().unwrap());
        sleepers.iter().for_each(Sleeper::wake);
    }

    /// Jumps, and tells nobody: as after a suspend.
    pub(crate) fn jump_silently(&self, by: Duration) {
        self.0.offset.fetch_add(by.as_nanos() as i64, SeqCst);
    }

    /// Goes back, and tells nobody.
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
        // Whoever is listed before it reads the time is woken by a jump that it did not see.
        self.0.sleepers.lock().unwrap().push(sleeper.clone());
        sleeper.sleep(until.map(|until| until.saturating_duration_since(self.now())));
    }
}
