//! Defects that were found by review, each with the test that shows it. Most need real time, milliseconds of it: they
//! are about the driver's own thread.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    HOUR, Log, MS, PanicsWhenDropped, SECOND, accounted, eventually, panic_quietly, within,
};
use tourbillon::{
    AdvanceError, Builder, Clock, Context, Engine, Fired, Job, Sleeper, State, Timeout, Timer,
    VirtualClock,
};

/// More timers than the driver makes ready in one pass.
const CROWD: u64 = 2000;

/// The real clock; counts how often the driver goes to sleep.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU64>);

impl Clock for Counting {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        self.0.fetch_add(1, SeqCst);
        sleeper.sleep(until.map(|until| until.saturating_duration_since(self.now())));
    }
}

/// By how much a counter grows in a fifth of a second, after a crowd of timers has become ready.
fn grows(counter: &AtomicU64) -> u64 {
    thread::sleep(100 * MS);
    let before = counter.load(SeqCst);
    thread::sleep(200 * MS);
    counter.load(SeqCst) - before
}

#[test]
fn the_driver_sleeps_while_a_crowd_waits_for_a_blocked_worker() {
    let clock = Counting::default();
    let timer = Timer::builder().shards(1).pool(1).clock(clock.clone()).build().unwrap();
    let (open, gate) = mpsc::channel::<()>();
    let blocking = timer.schedule(MS, move |_| _ = gate.recv()).unwrap();
    eventually(|| blocking.state() == State::Running);
    (0..CROWD).for_each(|_| _ = timer.arm(5 * MS, |_| ()).unwrap());
    let rounds = grows(&clock.0);
    assert!(rounds < 20, "nothing is left to do for it, and it went round {rounds} times");
    assert_eq!(timer.len() as u64, CROWD, "they wait");
    drop(open);
    eventually(|| timer.is_empty());
    accounted(&timer);
}

#[test]
fn an_executor_that_always_refuses_is_offered_a_crowd_ever_more_seldom() {
    let (clock, offers) = (Counting::default(), Arc::new(AtomicU64::new(0)));
    let count = offers.clone();
    let execute = move |job: Job| {
        count.fetch_add(1, SeqCst);
        Err(job)
    };
    let builder = Timer::builder().shards(1).clock(clock.clone()).executor(execute);
    let timer = builder.build().unwrap();
    (0..CROWD).for_each(|_| _ = timer.arm(5 * MS, |_| ()).unwrap());
    eventually(|| offers.load(SeqCst) > 0);
    let offered = grows(&offers);
    assert!(offered < 40, "{offered} offers");
    let rounds = grows(&clock.0);
    assert!(rounds < 40, "{rounds} rounds of the driver");
    assert_eq!(timer.stop().len() as u64, CROWD);
}

fn no_thread() -> io::Error {
    io::Error::other("no thread today")
}

/// The driver's thread, which could not start a worker, runs them one after another: a claimed timer runs before the
/// next is claimed.
#[test]
fn what_runs_for_want_of_a_worker_does_not_nest() {
    let clock = VirtualClock::new();
    let builder = Timer::builder().clock(&clock).shards(1).pool(2);
    let timer = builder.spawn(|_, _| Err(no_thread())).build().unwrap();
    let (all, log): (Arc<OnceLock<Vec<Timeout>>>, _) = (Arc::default(), Log::new());
    let five = (0..5).map(|n| {
        let (all, log) = (all.clone(), log.clone());
        let callback = move |_: &Context<'_>| {
            let running = all.get().unwrap().iter().filter(|one| one.state() == State::Running);
            log.add((n, running.count()));
        };
        timer.schedule(SECOND, callback).unwrap()
    });
    let _ = all.set(five.collect());
    clock.advance(SECOND).unwrap();
    let mut ran = log.take();
    ran.sort_unstable();
    assert_eq!(ran, (0..5).map(|n| (n, 1)).collect::<Vec<_>>());
    accounted(&timer);
}

/// A crowd needs no more of the driver's stack than one timer does.
#[test]
fn a_small_stack_is_enough_for_want_of_a_worker() {
    let spawn = |name: String, body: Box<dyn FnOnce() + Send>| {
        if name.ends_with("worker") {
            return Err(no_thread());
        }
        thread::Builder::new().name(name).stack_size(64 << 10).spawn(body).map(drop)
    };
    let timer = Timer::builder().shards(1).pool(2).spawn(spawn).build().unwrap();
    (0..CROWD).for_each(|_| _ = timer.arm(20 * MS, |_| ()).unwrap());
    eventually(|| timer.counts().fired == CROWD);
    accounted(&timer);
}

/// The executor kept one of three jobs; the other two are still offered.
#[test]
fn an_executor_that_takes_a_job_and_then_panics() {
    let (queue, calls) = (Arc::new(Mutex::new(Vec::<Job>::new())), AtomicU64::new(0));
    let jobs = queue.clone();
    let execute = move |job: Job| {
        jobs.lock().unwrap().push(job);
        if calls.fetch_add(1, SeqCst) == 0 {
            panic_quietly();
        }
        Ok(())
    };
    let timer = Timer::builder().shards(1).executor(execute).build().unwrap();
    let at = timer.now() + 20 * MS;
    (0..3).for_each(|_| _ = timer.arm_at(at, |_| ()).unwrap());
    eventually(|| {
        let job = queue.lock().unwrap().pop();
        job.into_iter().for_each(Job::run);
        timer.counts().fired == 3
    });
    assert_eq!(timer.counts().panicked, 1);
    accounted(&timer);
}

/// No thread can have such a name; an error at the first timer would come too late.
#[test]
fn a_name_with_a_zero_byte_cannot_be() {
    let wrong = Timer::builder().name("a\0b").build().map(drop).unwrap_err();
    assert_eq!((wrong.setting(), wrong.value()), ("name", r#""a\0b""#));
    let wrong = Timer::builder().name("\0").deliver(|batch| batch.for_each(|_: Fired<u8>| ()));
    assert_eq!(wrong.map(drop).unwrap_err().setting(), "name");
}

/// The real clock, which panics while a flag is set.
#[derive(Clone, Default)]
struct Faulty {
    panics: Arc<AtomicBool>,
    /// How often the driver has gone to sleep.
    waits: Arc<AtomicU64>,
}

impl Clock for Faulty {
    fn now(&self) -> Instant {
        if self.panics.load(SeqCst) {
            panic_quietly();
        }
        Instant::now()
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        self.waits.fetch_add(1, SeqCst);
        sleeper.sleep(until.map(|until| until.saturating_duration_since(self.now())));
    }
}

#[test]
fn a_clock_that_panics_for_a_while_stands_still_for_a_while() {
    let clock = Faulty::default();
    let timer = Timer::builder().shards(1).clock(clock.clone()).build().unwrap();
    timer.arm(MS, |_| ()).unwrap();
    eventually(|| timer.counts().fired == 1);
    let before = clock.waits.load(SeqCst);
    let far = timer.schedule(HOUR, |_| ()).unwrap();
    eventually(|| clock.waits.load(SeqCst) > before);
    clock.panics.store(true, SeqCst);
    (0..10).for_each(|n| _ = timer.arm(MS * (20 + n), |_| ()).unwrap());
    thread::sleep(60 * MS);
    assert_eq!(timer.counts().fired, 1, "time stands still");
    clock.panics.store(false, SeqCst);
    eventually(|| timer.counts().fired == 11);
    timer.arm(MS, |_| ()).unwrap();
    eventually(|| timer.counts().fired == 12);
    assert!(far.cancel());
    assert!(within(move || timer.stop()).is_empty());
}

/// The driver waits for a thread to take its job. No callback runs, so there is nothing to wait for.
#[test]
fn stop_does_not_wait_for_an_executor_that_blocks() {
    let (jobs, queue) = mpsc::sync_channel::<Job>(0);
    let entered = Arc::new(AtomicBool::new(false));
    let enter = entered.clone();
    let execute = move |job| {
        enter.store(true, SeqCst);
        jobs.send(job).map_err(|back| back.0)
    };
    let timer = Timer::builder().executor(execute).build().unwrap();
    let handle = timer.schedule(MS, |_| ()).unwrap();
    eventually(|| entered.load(SeqCst));
    assert_eq!(within(move || timer.stop()).len(), 1);
    assert_eq!(handle.state(), State::HandedBack);
    drop(queue);
}

#[test]
fn advancing_the_clock_inside_an_executor_is_an_error() {
    let (clock, log) = (VirtualClock::new(), Log::new());
    let (own, told) = (clock.clone(), log.clone());
    let execute = move |job: Job| {
        told.add(own.advance(MS).map_err(|wrong| wrong == AdvanceError::InsideCallback));
        job.run();
        Ok(())
    };
    let timer = Timer::builder().clock(&clock).executor(execute).build().unwrap();
    timer.arm(MS, |_| ()).unwrap();
    within(move || clock.advance(MS)).unwrap();
    assert_eq!((log.take(), timer.counts().fired), (vec![Err(true)], 1));
}

/// A second panic during the first unwind would abort the process.
#[test]
fn a_repeating_callback_that_panics_and_its_capture_when_it_is_dropped() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).shards(1).on_driver().build().unwrap();
    let captured = PanicsWhenDropped;
    let callback = move |_: &Context<'_>| {
        let _mine = &captured;
        panic_quietly();
    };
    let handle = timer.schedule_repeating(SECOND, callback).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!((handle.state(), timer.counts().fired), (State::Fired, 1));
    assert!(timer.counts().panicked >= 1, "{:?}", timer.counts());
    accounted(&timer);
}

/// The hook reports success but has started no thread: the pool does not count one, and the next timer starts another.
#[test]
fn a_spawn_hook_that_drops_a_worker() {
    let workers = Arc::new(AtomicU64::new(0));
    let count = workers.clone();
    let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
        if name.ends_with("worker") && count.fetch_add(1, SeqCst) == 0 {
            return Ok(());
        }
        thread::Builder::new().name(name).spawn(body).map(drop)
    };
    let timer = Timer::builder().shards(1).pool(1).spawn(spawn).build().unwrap();
    let first = timer.schedule(MS, |_| ()).unwrap();
    eventually(|| workers.load(SeqCst) == 1);
    assert_eq!(first.state(), State::Pending);
    let later = timer.schedule(MS, |_| ()).unwrap();
    eventually(|| first.state() == State::Fired && later.state() == State::Fired);
    accounted(&timer);
}

#[test]
fn stop_within_waits_no_longer_for_a_handler_than_its_limit() {
    let (open, gate) = mpsc::channel::<()>();
    let entered = Arc::new(Barrier::new(2));
    let enter = entered.clone();
    let engine: Engine<u32> = Timer::builder()
        .shards(1)
        .deliver(move |_| {
            enter.wait();
            _ = gate.recv();
        })
        .unwrap();
    engine.schedule(HOUR, 7).unwrap();
    engine.schedule(MS, 1).unwrap();
    entered.wait();
    let begin = Instant::now();
    let stopped = engine.stop_within(20 * MS);
    assert!(!stopped.finished && begin.elapsed() >= 20 * MS);
    assert_eq!(stopped.unfired.iter().map(|timer| timer.value).collect::<Vec<_>>(), [7]);
    drop(open);
    let again = engine.stop_within(10 * SECOND);
    assert!(again.finished && again.unfired.is_empty());
}

#[test]
fn the_buckets_of_the_lateness_can_be_read() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    assert_eq!(timer.lateness().buckets().count(), 0);
    // Ticks of a millisecond: on time, and half a tick late.
    for after in [1000, 1500, 2500, 2500] {
        timer.arm(Duration::from_micros(after), |_| ()).unwrap();
    }
    clock.advance(SECOND).unwrap();
    let lateness = timer.lateness();
    let buckets: Vec<_> = lateness.buckets().collect();
    assert_eq!(buckets.iter().map(|&(_, times)| times).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(buckets[0].0, Duration::ZERO);
    let half = Duration::from_micros(500);
    assert!((half..=half * 5 / 4).contains(&buckets[1].0), "{buckets:?}");
}

#[test]
fn the_presets_are_good_for_values_too() {
    for preset in [Builder::kafka, Builder::netty] {
        let (clock, log) = (VirtualClock::new(), Log::new());
        let told = log.clone();
        let engine = preset().clock(&clock).deliver(move |batch| {
            batch.for_each(|Fired { value, .. }| told.add(value));
        });
        let engine = engine.unwrap();
        engine.schedule(SECOND, 7).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!(log.take(), [7]);
    }
}

/// After a stop there is no engine to be armed on.
#[test]
fn again_answers_no_after_a_stop() {
    let (timer, log) = (Timer::new(), Log::new());
    let told = log.clone();
    let callback = move |context: &Context<'_>| {
        told.add((context.again(MS), context.again_at(context.deadline())));
    };
    timer.schedule_repeating(HOUR, callback).unwrap();
    timer.stop().pop().unwrap().run();
    assert_eq!(log.take(), [(false, false)]);
}

/// A stop removed a timer without keeping that it was armed by key, so its callback got a handle.
#[test]
fn a_callback_that_is_handed_back_has_a_handle_only_if_it_had_one() {
    let timer = Timer::new();
    let (tell, heard) = mpsc::channel();
    let other = tell.clone();
    timer.arm(HOUR, move |context| tell.send(context.timeout().is_some()).unwrap()).unwrap();
    let handle =
        timer.schedule(2 * HOUR, move |context| other.send(context.timeout().is_some()).unwrap());
    let mut unfired = timer.stop();
    unfired.sort_by_key(tourbillon::Unfired::deadline);
    unfired.into_iter().for_each(tourbillon::Unfired::run);
    assert_eq!(heard.iter().collect::<Vec<_>>(), [false, true]);
    assert_eq!(handle.unwrap().state(), State::HandedBack);
}
