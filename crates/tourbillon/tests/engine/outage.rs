//! An executor that accepts no jobs for a while: jobs are offered again, neither too often nor too rarely.
//!
//! The clock is set by hand, and the driver reads it every half millisecond: each offer comes when the clock has
//! reached its time, and these tests wait for it. `tests/cost` measures how often it is offered a job in real time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::faces::FACES;
use crate::common::{HandClock, Log, MS, SECOND, becomes, eventually, panic_quietly};
use tourbillon::{Builder, Job, Timer};

/// The longest and the first delay between two offers.
const MOST: Duration = Duration::from_millis(100);
const LEAST: Duration = MS;

/// A way to refuse a job: what the executor returns.
type Refusal = (&'static str, fn(Job) -> Result<(), Job>);

const REFUSALS: [Refusal; 2] = [("gives back", Err), ("panics", |_| panic_quietly())];

/// An executor that can be told to refuse jobs, and counts the jobs that it is offered.
#[derive(Clone)]
struct Outage {
    refuses: Arc<AtomicBool>,
    offers: Arc<AtomicU64>,
    clock: HandClock,
}

impl Outage {
    fn new(clock: &HandClock) -> Self {
        let (refuses, offers) = (Arc::new(AtomicBool::new(true)), Arc::default());
        Outage { refuses, offers, clock: clock.clone() }
    }

    fn executor(
        &self,
        refuse: fn(Job) -> Result<(), Job>,
    ) -> impl Fn(Job) -> Result<(), Job> + use<> {
        let own = self.clone();
        move |job| {
            let refuses = own.refuses.load(SeqCst);
            own.offers.fetch_add(1, SeqCst);
            if refuses {
                return refuse(job);
            }
            job.run();
            Ok(())
        }
    }

    fn set(&self, refuses: bool) {
        self.refuses.store(refuses, SeqCst);
    }

    fn offers(&self) -> u64 {
        self.offers.load(SeqCst)
    }

    /// Advances the clock by this much after the last offer; returns whether the executor is then offered a job.
    fn is_offered_after(&self, by: Duration) -> bool {
        self.clock.await_driver();
        let before = self.offers();
        self.clock.forward(by);
        becomes(|| self.offers() > before)
    }
}

fn timer(clock: &HandClock, outage: &Outage, refuse: fn(Job) -> Result<(), Job>) -> Builder {
    Timer::builder().shards(1).clock(clock.clone()).executor(outage.executor(refuse))
}

/// However long the outage, the next offer is at most a tenth of a second away; after the outage, the first timer runs
/// with the next offer.
#[test]
fn the_wait_between_two_offers_has_an_end() {
    for (name, refuse) in REFUSALS {
        let clock = HandClock::new();
        let outage = Outage::new(&clock);
        let timer = timer(&clock, &outage, refuse).build().unwrap();
        let ran = Log::new();
        let told = ran.clone();
        timer.schedule(Duration::ZERO, move |_| told.add(())).unwrap();
        eventually(|| outage.offers() > 0);
        for n in 0..30 {
            assert!(outage.is_offered_after(MOST), "{name}: not after {n} refusals");
        }
        outage.set(false);
        assert!(outage.is_offered_after(MOST), "{name}: not after the outage");
        eventually(|| ran.len() == 1);
    }
}

/// The delay grows: during an outage the executor is not offered a job every millisecond.
#[test]
fn the_wait_between_two_offers_grows() {
    for (name, refuse) in REFUSALS {
        let clock = HandClock::new();
        let outage = Outage::new(&clock);
        let timer = timer(&clock, &outage, refuse).build().unwrap();
        timer.schedule(Duration::ZERO, |_| ()).unwrap();
        eventually(|| outage.offers() > 0);
        for _ in 0..10 {
            assert!(outage.is_offered_after(MOST), "{name}");
        }
        clock.await_driver();
        let before = outage.offers();
        clock.forward(MOST - LEAST);
        (0..3).for_each(|_| clock.await_driver());
        assert_eq!(outage.offers(), before, "{name}: before its time");
        assert!(outage.is_offered_after(LEAST), "{name}");
    }
}

/// An accepted job ends the outage: after it, the delay starts small again.
#[test]
fn a_success_ends_the_outage() {
    for (name, refuse) in REFUSALS {
        let clock = HandClock::new();
        let outage = Outage::new(&clock);
        let timer = timer(&clock, &outage, refuse).build().unwrap();
        for outages in 0..3 {
            outage.set(true);
            let before = outage.offers();
            timer.schedule(Duration::ZERO, |_| ()).unwrap();
            eventually(|| outage.offers() > before);
            // A panic counts twice: as a refusal by the executor, and as a drop of the job.
            let first = if name == "panics" { 2 * LEAST } else { LEAST };
            assert!(outage.is_offered_after(first), "{name}: slow after {outages} outages");
            for _ in 0..10 {
                assert!(outage.is_offered_after(MOST), "{name}, {outages}");
            }
            outage.set(false);
            assert!(outage.is_offered_after(MOST), "{name}, {outages}");
            let fired = outages + 1;
            eventually(|| timer.counts().fired == fired);
        }
    }
}

/// Every face that runs callbacks survives an outage: all timers that became due in it fire, each once.
#[test]
fn whatever_face_runs_callbacks() {
    for face in FACES.iter().filter(|face| face.callbacks) {
        let clock = HandClock::new();
        let outage = Outage::new(&clock);
        let arm = (face.open)(timer(&clock, &outage, Err).shards(4));
        let happened = Log::new();
        for n in 0..10 {
            let told = happened.clone();
            arm(MS * n, Box::new(move || told.add(n)));
        }
        clock.forward(10 * MS);
        eventually(|| outage.offers() > 0);
        for _ in 0..12 {
            assert!(outage.is_offered_after(MOST), "{}: it is forgotten", face.name);
        }
        assert_eq!(happened.len(), 0, "{}", face.name);
        clock.await_driver();
        outage.set(false);
        clock.forward(MOST);
        assert!(becomes(|| happened.len() == 10), "{}: lost", face.name);
        let mut all = happened.take();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>(), "{}", face.name);
    }
}

/// An executor that keeps a job and drops it later on another thread is offered another.
#[test]
fn a_job_that_is_dropped_elsewhere_is_offered_again() {
    let clock = HandClock::new();
    let kept: Arc<Mutex<Vec<Job>>> = Arc::default();
    let (keep, offers) = (kept.clone(), Arc::new(AtomicU64::new(0)));
    let count = offers.clone();
    let execute = move |job: Job| {
        if count.fetch_add(1, SeqCst) >= 5 {
            job.run();
        } else {
            keep.lock().unwrap().push(job);
        }
        Ok(())
    };
    let timer = Timer::builder().clock(clock.clone()).executor(execute).build().unwrap();
    timer.schedule(Duration::ZERO, |_| ()).unwrap();
    for n in 1..=5 {
        eventually(|| offers.load(SeqCst) == n);
        clock.forward(SECOND);
        (0..3).for_each(|_| clock.await_driver());
        assert_eq!(offers.load(SeqCst), n, "one is out");
        eventually(|| !kept.lock().unwrap().is_empty());
        drop(std::mem::take(&mut *kept.lock().unwrap()));
        clock.forward(MOST);
    }
    eventually(|| timer.counts().fired == 1);
}
