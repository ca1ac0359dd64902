//! The delay queue with several producers and consumers: flat out or paced, alone or with many values that are not due.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::{DelayQueue, TakeError, Timer};

use super::heap::Heap;
use crate::league::{Readings, Turn};
use crate::rng::Rng;
use crate::{counting, system};

/// Delays are uniform from zero to this.
const DELAYS: Duration = Duration::from_millis(10);
const NO_CPU: &str = "this system does not tell the CPU time";
const HOUR: Duration = Duration::from_secs(3600);
/// The interval between the values of a paced producer.
const PACE: Duration = Duration::from_micros(50);

trait Queue: Sync {
    fn put_at(&self, at: Instant, value: u64);
    /// Waits for a due value; `None` once the queue is closed.
    fn take(&self) -> Option<u64>;
    fn close(&self);
}

impl Queue for DelayQueue<u64> {
    fn put_at(&self, at: Instant, value: u64) {
        self.put_at(at, value).expect("it is open");
    }
    fn take(&self) -> Option<u64> {
        self.take().map_err(|wrong| assert_eq!(wrong, TakeError::Closed)).ok()
    }
    fn close(&self) {
        drop(self.close());
    }
}

impl Queue for Heap {
    fn put_at(&self, at: Instant, value: u64) {
        self.put_at(at, value);
    }
    fn take(&self) -> Option<u64> {
        self.take()
    }
    fn close(&self) {
        self.close();
    }
}

#[derive(Clone, Copy)]
struct Load {
    /// The number of producers, and of consumers.
    threads: u64,
    values: u64,
    /// Values that are not due for an hour.
    crowd: u64,
    paced: bool,
}

impl Load {
    fn of(turn: &Turn) -> Self {
        let (threads, paced) = (turn.column.threads as u64, turn.row == "paced");
        let values = match (paced, turn.quick) {
            (true, true) => threads * 20_000,
            (true, false) => threads * 40_000,
            (false, true) => 200_000,
            (false, false) => 1_000_000,
        };
        Load { threads, values, crowd: turn.column.timers as u64, paced }
    }
}

pub fn heap(turn: &Turn) -> Result<Readings, String> {
    measure(&Heap::new(), Load::of(turn))
}

pub fn ours(turn: &Turn) -> Result<Readings, String> {
    measure(&DelayQueue::new(), Load::of(turn))
}

pub fn finer(turn: &Turn) -> Result<Readings, String> {
    let queue = Timer::builder().tick(Duration::from_micros(100)).queue();
    measure(&queue.map_err(|wrong| wrong.to_string())?, Load::of(turn))
}

/// The state that all consumers share: the number of values taken, and the times at the end.
struct Taken {
    taken: AtomicU64,
    end: OnceLock<(Duration, Option<Duration>)>,
    began: Instant,
}

fn measure<Q: Queue>(queue: &Q, load: Load) -> Result<Readings, String> {
    counting::stop();
    let mut rng = Rng::new(9);
    let far = Instant::now() + HOUR;
    for n in 0..load.crowd {
        queue.put_at(far + Duration::from_nanos(rng.below(HOUR.as_nanos() as u64)), n);
    }
    let before = system::process_cpu().ok_or(NO_CPU)?;
    let began = Instant::now();
    let all = Taken { taken: AtomicU64::new(0), end: OnceLock::new(), began };
    let mut late: Vec<u64> = thread::scope(|scope| {
        for number in 0..load.threads {
            scope.spawn(move || produce(queue, load, number, began));
        }
        let consumers: Vec<_> =
            (0..load.threads).map(|_| scope.spawn(|| consume(queue, load, &all))).collect();
        consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect()
    });
    let (wall, end) = *all.end.get().ok_or("a value was lost")?;
    let spent = end.ok_or(NO_CPU)? - before;
    let each = |time: Duration| time.as_nanos() as f64 / load.values as f64;
    late.sort_unstable();
    let half = late.get(late.len() / 2).map_or(0.0, |&late| late as f64 / 1000.0);
    Ok(if load.paced {
        vec![("paced-cpu", each(spent)), ("paced-late", half)]
    } else {
        vec![("flat-out-cpu", each(spent)), ("flat-out", each(wall))]
    })
}

/// Puts values. A value is its own deadline, in nanoseconds since the run began.
fn produce(queue: &impl Queue, load: Load, number: u64, began: Instant) {
    let mut rng = Rng::new(number);
    for n in 0..load.values / load.threads {
        if load.paced {
            thread::sleep((began + PACE * n as u32).saturating_duration_since(Instant::now()));
        }
        let at = Instant::now() + Duration::from_nanos(rng.below(DELAYS.as_nanos() as u64));
        queue.put_at(at, (at - began).as_nanos() as u64);
    }
}

/// Takes values. Returns the lateness of each in nanoseconds, if the load is paced.
///
/// The consumer of the last value reads the clocks and closes the queue.
fn consume(queue: &impl Queue, load: Load, all: &Taken) -> Vec<u64> {
    let mut late = Vec::new();
    while let Some(deadline) = queue.take() {
        if load.paced {
            let now = all.began.elapsed().as_nanos() as u64;
            late.push(now.checked_sub(deadline).expect("never early"));
        }
        // Relaxed: this is only a count; the values are synchronized by the queue's lock.
        if all.taken.fetch_add(1, Relaxed) + 1 == load.values {
            let _ = all.end.set((all.began.elapsed(), system::process_cpu()));
            queue.close();
        }
    }
    late
}
