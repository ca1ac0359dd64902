//! A flow of timers: scheduled at a steady rate, delivered and acknowledged.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use tourbillon_durable::codec::encode;
use tourbillon_durable::values::{Payload, QueueName};
use tourbillon_durable::{Conflict, NewTimer};

use super::face::{FAR, Face, text, wall_micros};
use super::line::Lines;
use super::place::Store;
use super::{PAYLOAD, Run, Timer, disk};
use crate::rng::Rng;

/// Timers per second.
const RATE: u64 = 20_000;
/// The interval at which the producer schedules the timers that its rate requires.
const TICK: Duration = Duration::from_millis(5);
/// The number of threads that receive and acknowledge.
const TAKERS: usize = 2;

/// How late deliveries were, in steps of 10 µs.
struct Lateness {
    steps: Vec<u64>,
    early: u64,
}

impl Lateness {
    fn new() -> Self {
        Lateness { steps: vec![0; 1_000_000], early: 0 }
    }

    fn add(&mut self, micros: i64) {
        self.early += u64::from(micros < 0);
        let last = self.steps.len() - 1;
        self.steps[(micros.max(0) as usize / 10).min(last)] += 1;
    }

    /// The quantile in milliseconds.
    fn quantile(&self, share: f64) -> f64 {
        let all: u64 = self.steps.iter().sum();
        let rank = (all as f64 * share) as u64;
        let mut seen = 0;
        let step = self.steps.iter().position(|count| {
            seen += count;
            seen > rank
        });
        step.unwrap_or(0) as f64 / 100.0
    }
}

/// The results of a flow.
struct Flow {
    scheduled: u64,
    delivered: u64,
    /// The producer's delay behind its schedule at the end.
    behind: Duration,
    lateness: Lateness,
}

/// Schedules 20 k timers per second for `length`, with delays in a range of ms; receives and acknowledges them.
fn flow(
    face: &Face,
    length: Duration,
    (shortest, longest): (u64, u64),
    watch: impl Fn(Duration) + Sync,
) -> Result<Flow, String> {
    let (delivered, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let lateness = Mutex::new(Lateness::new());
    let take = || {
        while !stop.load(Relaxed) {
            let received = face.queue.receive(1000, Duration::from_millis(200)).wait();
            let at = wall_micros();
            let received = received.map_err(text)?;
            let mut lateness = lateness.lock().map_err(text)?;
            received.iter().for_each(|one| lateness.add(at - one.due().millis() as i64 * 1000));
            drop(lateness);
            delivered.fetch_add(received.len() as u64, Relaxed);
            // Does not wait for the answers: the next commit contains the acknowledgements.
            received.into_iter().for_each(|one| drop(one.ack()));
        }
        Ok::<(), String>(())
    };
    let produce = || {
        let (begin, mut rng, mut scheduled) = (Instant::now(), Rng::new(3), 0);
        let mut under_way = VecDeque::new();
        let mut second = Duration::ZERO;
        loop {
            let passed = begin.elapsed().min(length);
            let wanted = (passed.as_secs_f64() * RATE as f64) as u64;
            let one = |_| {
                let due = wall_micros() as u64 / 1000 + shortest + rng.below(longest - shortest);
                Timer { generation: 0, due, key: None }.timer()
            };
            let batch: Vec<NewTimer> =
                (scheduled..wanted.min(scheduled + 10_000)).map(one).collect();
            scheduled += batch.len() as u64;
            if !batch.is_empty() {
                under_way.push_back(face.queue.schedule_all(batch, Conflict::Refuse));
            }
            if under_way.len() > 100 {
                under_way
                    .pop_front()
                    .map_or(Ok(()), |first| first.wait().map(drop))
                    .map_err(text)?;
            }
            if scheduled >= (length.as_secs_f64() * RATE as f64) as u64 {
                break;
            }
            if passed >= second {
                watch(passed);
                second += Duration::from_secs(1);
            }
            thread::sleep(TICK);
        }
        for receipt in under_way {
            receipt.wait().map_err(text)?;
        }
        Ok::<_, String>((scheduled, begin.elapsed().saturating_sub(length)))
    };
    let (scheduled, behind) = thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS).map(|_| scope.spawn(take)).collect();
        let produced = produce();
        let end = Instant::now() + Duration::from_millis(longest) + Duration::from_secs(10);
        let all = produced.as_ref().map_or(0, |(scheduled, _)| *scheduled);
        while delivered.load(Relaxed) < all && Instant::now() < end {
            thread::sleep(TICK);
        }
        stop.store(true, Relaxed);
        for taker in takers {
            taker.join().map_err(|_| "a taker panicked")??;
        }
        produced
    })?;
    let lateness = lateness.into_inner().map_err(text)?;
    Ok(Flow { scheduled, delivered: delivered.into_inner(), behind, lateness })
}

impl Flow {
    fn say(&self, lines: &mut Lines) {
        lines.say("scheduled", self.scheduled as f64, "");
        let missing = self.scheduled.abs_diff(self.delivered) as f64;
        lines.at_most("scheduled, not delivered once", missing, "", 0.0);
        lines.at_most("schedules behind at the end", self.behind.as_secs_f64(), "s", 1.0);
        lines.at_most("early", self.lateness.early as f64, "", 0.0);
    }
}

/// Runs for a minute with three million other timers pending.
pub(super) fn steady(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("steady 20 k/s, 3 M others pending");
    let store = run.place.next()?;
    let face = Face::open(store.path())?;
    face.fill(run.scaled(3_000_000), FAR, 10)?;
    face.commit();
    let length = Duration::from_secs(if run.quick { 5 } else { 60 });
    let before = run.place.written();
    let flow = flow(&face, length, (1000, 3000), |_| ())?;
    let after = run.place.written();
    let commit = face.commit();
    flow.say(&mut lines);
    lines.say("median commit", commit, "ms");
    let bound = 1.0 + 2.0 * commit;
    let p50 = flow.lateness.quantile(0.5);
    lines.at_most("lateness p50, at most 1 ms + two commits", p50, "ms", bound);
    let p99 = flow.lateness.quantile(0.99);
    lines.at_most("lateness p99, at most four times that", p99, "ms", 4.0 * bound);
    lines.say("lateness, longest", flow.lateness.quantile(1.0 - 1e-9), "ms");
    if let (Some(before), Some(after)) = (before, after) {
        let each = (after - before) as f64 / flow.scheduled.max(1) as f64;
        lines.say("device bytes written a timer", each, "B");
    }
    Ok(lines)
}

/// One timer after the other, and no other load.
pub(super) fn late(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("idle lateness");
    let store = run.place.next()?;
    let face = Face::open(store.path())?;
    let (mut lateness, mut commits) = (Lateness::new(), Vec::new());
    for nth in 0..if run.quick { 20 } else { 200 } {
        let due = wall_micros() as u64 / 1000 + 20 + nth % 7;
        let timer = Timer { generation: nth, due, key: None }.timer();
        let receive = face.queue.receive(1, Duration::from_secs(5));
        face.schedule(vec![timer])?;
        face.commit();
        for one in receive.wait().map_err(text)? {
            lateness.add(wall_micros() - one.due().millis() as i64 * 1000);
            // The commit that records the delivery.
            commits.push(face.commit());
            one.ack().wait().map_err(text)?;
        }
    }
    let commit = crate::results::Summary::of(&commits).median;
    lines.say("median commit", commit, "ms");
    let p50 = lateness.quantile(0.5);
    lines.at_most("lateness p50, at most 1 ms + one commit", p50, "ms", 1.0 + commit);
    lines.at_most("early", lateness.early as f64, "", 0.0);
    Ok(lines)
}

/// Runs for `--minutes` (10 by default) with a steady million pending: each timer lives 50 s.
pub(super) fn hour(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("20 k/s with 1 M pending");
    let store = run.place.next()?;
    let face = Face::open(store.path())?;
    let length = Duration::from_secs_f64(run.minutes * 60.0);
    let life: u64 = if run.quick { 2000 } else { 50_000 };
    let samples = Mutex::new(Vec::new());
    let look = |store: &Store, passed: Duration| {
        // Before that, the number of pending timers only grows.
        if passed > Duration::from_millis(life)
            && let Ok(mut samples) = samples.lock()
        {
            samples.push(store.bytes());
        }
    };
    let flow = flow(&face, length, (life - life / 10, life + life / 10), |passed| {
        look(&store, passed);
    })?;
    let samples = samples.into_inner().map_err(text)?;
    let (first, second) = samples.split_at(samples.len() / 2);
    let most = |samples: &[f64]| samples.iter().copied().fold(0.0_f64, f64::max);
    let pending = life as f64 / 1000.0 * RATE as f64;
    lines.say("minutes", run.minutes, "");
    flow.say(&mut lines);
    lines.say("lateness p50", flow.lateness.quantile(0.5), "ms");
    lines.say("lateness p99", flow.lateness.quantile(0.99), "ms");
    lines.say("live rows", pending * row_bytes() / 1e6, "MB");
    lines.say("file, at most", most(&samples) / 1e6, "MB");
    lines.at_most("file / live rows, at most", most(&samples) / (pending * row_bytes()), "", 3.0);
    let growth = most(second) / most(first);
    // A short run has not reached a steady state in its first half.
    if run.minutes >= 5.0 {
        lines.at_most("file, second half / first half", growth, "", 1.05);
    } else {
        lines.say("file, second half / first half", growth, "");
    }
    Ok(lines)
}

/// The length of a row with its key in the table, without the overhead of the file's pages.
fn row_bytes() -> f64 {
    let queue = QueueName::new("orders").expect("a name");
    let timer = Timer { generation: 1 << 20, due: super::now(), key: None };
    let record = disk::record(&queue, &Payload::bytes(PAYLOAD), &timer);
    (encode("hour.0", &[0; 8], &record).len() + 8) as f64
}
