//! What each callback does: it increments a count and, while lateness is watched, records how late it is.
//!
//! Callbacks capture only their payload, so all state here is static. A count shared by all threads would cost more
//! than some of the timers, so each thread has its own.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of timers whose lateness is recorded.
const MOST: usize = 200_000;
/// The interval between their deadlines: 100 k per second.
pub const APART: Duration = Duration::from_micros(10);
/// Not fired yet.
const NEVER: i64 = i64::MIN;

/// A thread's own count, alone on its cache line.
#[repr(align(128))]
#[derive(Default)]
struct Own {
    count: AtomicU64,
    sum: AtomicU64,
}

static ALL: Mutex<Vec<&'static Own>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: Cell<Option<&'static Own>> = const { Cell::new(None) };
}

fn register() -> &'static Own {
    // Leaked: threads are few, and their counts must outlive them.
    let own: &'static Own = Box::leak(Box::default());
    ALL.lock().unwrap_or_else(PoisonError::into_inner).push(own);
    OWN.set(Some(own));
    own
}

/// The callback of every timer. Relaxed: a reader of the counts polls until they are complete.
#[inline]
pub fn fired(payload: u64) {
    let own = OWN.get().unwrap_or_else(register);
    own.count.store(own.count.load(Relaxed) + 1, Relaxed);
    own.sum.store(own.sum.load(Relaxed).wrapping_add(payload), Relaxed);
    if WATCHING.load(Relaxed) {
        watch(payload);
    }
}

/// If set, called with every payload instead of recording its lateness.
static LISTENER: OnceLock<fn(u64)> = OnceLock::new();

/// Calls the listener with every payload from now on.
pub fn listen(listener: fn(u64)) {
    let _ = LISTENER.set(listener);
    WATCHING.store(true, Relaxed);
}

/// The number of timers that have fired so far, and the sum of their payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    pub count: u64,
    sum: u64,
}

impl Tally {
    pub fn now() -> Self {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.iter().map(|own| own.count.load(Relaxed)).sum();
        let sum = all.iter().fold(0, |sum: u64, own| sum.wrapping_add(own.sum.load(Relaxed)));
        Tally { count, sum }
    }

    /// Waits until `timers` more timers, with payloads `0..timers`, have fired; gives up after `limit`.
    ///
    /// # Errors
    ///
    /// Some were lost, or fired twice.
    pub fn wait(self, timers: u64, limit: Duration) -> Result<(), &'static str> {
        let end = Instant::now() + limit;
        while Tally::now().count - self.count < timers && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        let now = Tally::now();
        let expected = (timers * (timers - 1) / 2, timers);
        if (now.sum.wrapping_sub(self.sum), now.count - self.count) == expected {
            Ok(())
        } else {
            Err("it lost timers, or fired some twice")
        }
    }
}

static WATCHING: AtomicBool = AtomicBool::new(false);
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// The first deadline, in nanoseconds from the origin.
static FIRST: AtomicI64 = AtomicI64::new(0);
/// How late each timer was, in nanoseconds.
static LATE: OnceLock<Box<[AtomicI64]>> = OnceLock::new();

fn late() -> &'static [AtomicI64] {
    LATE.get_or_init(|| (0..MOST).map(|_| AtomicI64::new(NEVER)).collect())
}

fn since_origin(at: Instant) -> i64 {
    at.saturating_duration_since(*ORIGIN).as_nanos() as i64
}

/// Records the lateness of every timer from now on: timer `i` is due at `first + i * APART`.
pub fn watch_from(first: Instant) {
    late().iter().for_each(|slot| slot.store(NEVER, Relaxed));
    FIRST.store(since_origin(first), Relaxed);
    WATCHING.store(true, Relaxed);
}

#[inline(never)]
fn watch(payload: u64) {
    if let Some(listener) = LISTENER.get() {
        return listener(payload);
    }
    let deadline = FIRST.load(Relaxed) + payload as i64 * APART.as_nanos() as i64;
    if let Some(slot) = late().get(payload as usize) {
        slot.store(since_origin(Instant::now()) - deadline, Relaxed);
    }
}

/// The recorded lateness in nanoseconds, sorted, negative if early. Stops recording.
pub fn watched() -> Vec<i64> {
    WATCHING.store(false, Relaxed);
    let mut all: Vec<i64> =
        late().iter().map(|slot| slot.load(Relaxed)).filter(|&late| late != NEVER).collect();
    all.sort_unstable();
    all
}
