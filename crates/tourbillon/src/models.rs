//! Models for loom: the hand-over between threads, in every possible interleaving.
//!
//! Each model runs the engine itself, with one or two shards, one or two timers, and few threads. One of the threads is
//! the time: it sets the clock and wakes the sleeper, as a timeout does. After a lost wake the driver sleeps forever,
//! and loom reports the deadlock.
//!
//! `cargo xtask loom` runs the models, and runs them again with planted faults, which must make them fail. One build
//! contains all faults; `planted/loom.txt` lists which models each fault must break.

mod purgatory;
#[cfg(feature = "tasks")]
mod tasks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use loom::thread;

use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::{
    Builder, Clock, DelayQueue, Engine, Key, ScheduleError, Sleeper, TakeError, Timer, VirtualClock,
};

const TICK: Duration = Duration::from_millis(1);

/// A clock that a thread of the model sets.
#[derive(Clone)]
struct ModelClock {
    begin: Instant,
    ticks: Arc<AtomicU64>,
    /// Whether a thread yields after reading the clock, so that it continues with an old reading.
    gives_way: bool,
}

impl ModelClock {
    fn new() -> Self {
        ModelClock { begin: Instant::now(), ticks: Arc::new(AtomicU64::new(0)), gives_way: false }
    }
}

impl Clock for ModelClock {
    fn now(&self) -> Instant {
        let ticks = self.ticks.load(SeqCst) as u32;
        if self.gives_way {
            thread::yield_now();
        }
        self.begin + TICK * ticks
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        if until.is_none_or(|until| until > self.now()) {
            sleeper.sleep(None);
        }
    }
}

/// An engine that counts what it delivers, and asserts that nothing is early.
struct Model {
    clock: ModelClock,
    engine: Engine<u64>,
    delivered: Arc<(Mutex<usize>, Condvar)>,
}

impl Model {
    fn new() -> Arc<Self> {
        Model::with_shards(1)
    }

    fn with_shards(shards: usize) -> Arc<Self> {
        Model::of(Timer::builder().shards(shards))
    }

    fn of(builder: Builder) -> Arc<Self> {
        let clock = ModelClock::new();
        let delivered = Arc::new((Mutex::new(0), Condvar::new()));
        let (seen, count) = (clock.clone(), delivered.clone());
        let builder = builder.clock(clock.clone()).spawn(|_, body| {
            thread::spawn(body);
            Ok(())
        });
        let engine = builder.deliver(move |batch| {
            for timer in batch {
                assert!(seen.ticks.load(SeqCst) >= timer.value, "never early");
                *lock(&count.0) += 1;
                count.1.notify_all();
            }
        });
        Arc::new(Model { clock, engine: engine.unwrap(), delivered })
    }

    fn arm(&self, ticks: u64) -> Result<Key, ScheduleError<u64>> {
        self.engine.schedule(TICK * ticks as u32, ticks)
    }

    /// Arms a timer on a given shard instead of the thread's own shard.
    fn arm_on(&self, shard: usize, ticks: u64) {
        let core = self.engine.core();
        let deadline = core.context.clock.now() + ticks * TICK.as_nanos() as u64;
        assert!(core.arm(&core.shards[shard], deadline, ticks).is_ok());
    }

    /// Lets time pass: sets the clock and wakes the sleeper.
    fn pass(&self, ticks: u64) {
        self.clock.ticks.store(ticks, SeqCst);
        self.engine.core().context.signal.sleeper().wake();
    }

    /// Waits until `count` timers are delivered. If the driver never does, loom reports a deadlock.
    fn expect(&self, count: usize) {
        let mut delivered = lock(&self.delivered.0);
        while *delivered < count {
            delivered = wait(&self.delivered.1, delivered, None);
        }
    }

    fn delivered(&self) -> usize {
        *lock(&self.delivered.0)
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    check_to(3, model);
}

/// Checks with this number of preemptions, unless the environment sets the number.
fn check_to(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(move || model());
}

/// An earlier timer is armed while the driver goes to sleep for a later one.
#[test]
fn an_earlier_timer_wakes_the_driver() {
    check(|| {
        let model = Model::new();
        model.arm(9).unwrap();
        // From here on the timer is due; the driver must notice this without a wake by the time.
        model.clock.ticks.store(1, SeqCst);
        model.arm(0).unwrap();
        model.expect(1);
        assert_eq!(model.engine.stop().len(), 1);
        assert_eq!(model.delivered(), 1);
    });
}

/// Two threads arm the first timers of an engine while its driver starts.
#[test]
fn two_threads_arm_the_first_timers() {
    check(|| {
        let model = Model::new();
        let other = {
            let model = model.clone();
            thread::spawn(move || model.arm(0).map(drop).unwrap())
        };
        model.arm(0).unwrap();
        other.join().unwrap();
        model.expect(2);
        assert!(model.engine.stop().is_empty());
    });
}

/// A delivered timer has freed its place: an engine that reports no pending timer is not full.
#[test]
fn an_empty_engine_has_room() {
    check(|| {
        let model = Model::of(Timer::builder().shards(1).limit(1));
        model.arm(0).unwrap();
        let room = model.engine.is_empty().then(|| model.arm(9).is_ok());
        assert_ne!(room, Some(false));
        model.expect(1);
        assert_eq!(model.engine.stop().len(), usize::from(room.is_some()));
    });
}

/// The driver goes to sleep for one shard while the other gets an earlier timer.
#[test]
fn an_earlier_timer_on_another_shard_wakes_the_driver() {
    check(|| {
        let model = Model::with_shards(2);
        model.arm_on(0, 9);
        model.arm_on(1, 0);
        model.expect(1);
        assert_eq!(model.engine.stop().len(), 1);
        assert_eq!(model.delivered(), 1);
    });
}

/// A timer is rescheduled to earlier while the driver goes to sleep for its old deadline.
#[test]
fn a_timer_moved_to_earlier_wakes_the_driver() {
    check(|| {
        let model = Model::new();
        let key = model.engine.schedule(TICK * 9, 0).unwrap();
        model.engine.reschedule(key, Duration::ZERO).unwrap();
        model.expect(1);
        assert!(model.engine.stop().is_empty());
    });
}

/// Time passes while the driver goes to sleep, and a thread cancels: either the timer fires or the cancel succeeds.
#[test]
fn cancel_and_fire_exclude_each_other() {
    check(|| {
        let model = Model::new();
        let key = model.arm(1).unwrap();
        let time = {
            let model = model.clone();
            thread::spawn(move || model.pass(1))
        };
        let cancelled = model.engine.cancel(key).is_some();
        time.join().unwrap();
        if !cancelled {
            model.expect(1);
        }
        assert!(model.engine.stop().is_empty());
        assert_eq!(model.delivered(), usize::from(!cancelled));
        let counts = model.engine.counts();
        assert_eq!(counts.armed, counts.fired + counts.cancelled + counts.handed_back);
    });
}

/// A stop during an arming and while the driver goes to sleep: the timer is delivered, handed back or refused.
#[test]
fn stop_meets_arm() {
    check(|| {
        let model = Model::new();
        model.engine.start().unwrap();
        let other = {
            let model = model.clone();
            thread::spawn(move || model.arm(0).is_ok())
        };
        let handed_back = model.engine.stop().len();
        let armed = other.join().unwrap();
        assert_eq!(model.delivered() + handed_back, usize::from(armed));
        assert!(model.arm(0).is_err(), "after a stop nothing is taken");
    });
}

/// A stop waits for a running handler.
#[test]
fn stop_waits_for_what_runs() {
    check(|| {
        let model = Model::new();
        model.arm(0).unwrap();
        let handed_back = model.engine.stop().len();
        // A timer that the driver had claimed has been delivered by now.
        assert_eq!(model.delivered() + handed_back, 1);
        assert_eq!(model.engine.counts().fired as usize, model.delivered());
    });
}

/// Two threads wait to take, and two values are put: when the leader leaves with one value, the other thread leads or
/// takes.
#[test]
fn leadership_goes_on_when_who_leads_leaves() {
    check(|| {
        let queue: DelayQueue<u64> = Timer::builder().clock(ModelClock::new()).queue().unwrap();
        let takers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || queue.take().unwrap())
        });
        queue.put(Duration::ZERO, 1).unwrap();
        queue.put(Duration::ZERO, 2).unwrap();
        let taken: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!((taken, queue.counts().fired), (3, 2), "each once");
    });
}

/// One of two waiting threads has a limit, which passes: whichever thread led, the other gets the value.
#[test]
fn leadership_goes_on_when_a_limit_passes() {
    check(|| {
        let clock = ModelClock::new();
        let queue: DelayQueue<u64> = Timer::builder().clock(clock.clone()).queue().unwrap();
        let limited = {
            let queue = queue.clone();
            thread::spawn(move || queue.take_until(TICK))
        };
        let patient = {
            let queue = queue.clone();
            thread::spawn(move || queue.take().unwrap())
        };
        // Time passes for the leader. A real follower would time out by itself; here it is woken when the other thread
        // leaves.
        clock.ticks.store(1, SeqCst);
        queue.pass_time();
        queue.put(Duration::ZERO, 7).unwrap();
        match limited.join().unwrap() {
            Ok(value) => {
                assert_eq!(value, 7);
                queue.put(Duration::ZERO, 8).unwrap();
                assert_eq!(patient.join().unwrap(), 8);
            }
            Err(wrong) => {
                assert_eq!(wrong, TakeError::NothingDue);
                assert_eq!(patient.join().unwrap(), 7);
            }
        }
    });
}

/// A close while threads lead, follow, or begin to: all of them return.
#[test]
fn close_wakes_all_takers() {
    check(|| {
        let queue: DelayQueue<u64> = Timer::builder().clock(ModelClock::new()).queue().unwrap();
        queue.put(TICK, 1).unwrap();
        let takers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || queue.take())
        });
        assert_eq!(queue.close().len(), 1);
        let all = takers.map(|taker| taker.join().unwrap());
        assert_eq!(all, [Err(TakeError::Closed); 2]);
    });
}

/// An event loop turns and then sleeps until it is woken, while another thread arms an earlier timer.
#[test]
fn an_earlier_timer_wakes_the_loop() {
    check(|| {
        let clock = ModelClock::new();
        let builder = Timer::builder().clock(clock.clone()).shards(1);
        let (engine, mut driver) = builder.deliver_driven(|_: crate::Batch<'_, ()>| ()).unwrap();
        let told = Arc::new((Mutex::new(false), Condvar::new()));
        let tell = told.clone();
        driver.on_wake(move || {
            *lock(&tell.0) = true;
            tell.1.notify_one();
        });
        let other = {
            let engine = engine.clone();
            thread::spawn(move || engine.schedule(Duration::ZERO, ()).map(drop).unwrap())
        };
        loop {
            let turn = driver.turn();
            if turn.ran > 0 {
                break;
            }
            if turn.next.is_some_and(|next| next <= clock.now()) {
                continue;
            }
            let mut told_now = lock(&told.0);
            while !*told_now {
                told_now = wait(&told.1, told_now, None);
            }
            *told_now = false;
        }
        other.join().unwrap();
        assert_eq!(engine.counts().fired, 1);
    });
}

/// An event loop polls its descriptor between turns, while another thread arms an earlier timer.
/// The wake is not lost, even at the end of a turn.
#[test]
fn a_wake_at_the_end_of_a_turn_is_not_lost() {
    check(|| {
        let clock = ModelClock::new();
        let builder = Timer::builder().clock(clock.clone()).shards(1);
        let (engine, mut driver) = builder.deliver_driven(|_: crate::Batch<'_, ()>| ()).unwrap();
        let fd = driver.wake_fd().unwrap();
        let other = {
            let engine = engine.clone();
            thread::spawn(move || engine.schedule(Duration::ZERO, ()).map(drop).unwrap())
        };
        loop {
            let turn = driver.turn();
            if turn.ran > 0 {
                break;
            }
            if turn.next.is_none_or(|next| next > clock.now()) {
                fd.wait_until_readable();
            }
        }
        other.join().unwrap();
        assert_eq!(engine.counts().fired, 1);
    });
}

/// A thread begins to wait during the last step of an advance, having read the time before it.
/// Its limit has passed when the advance returns, and nothing else will wake it.
#[test]
fn a_wait_that_begins_during_the_last_step_ends() {
    check(|| {
        let clock = VirtualClock::new();
        let queue: DelayQueue<u64> = Timer::builder().clock(&clock).queue().unwrap();
        let taker = {
            let queue = queue.clone();
            thread::spawn(move || queue.take_until(TICK))
        };
        clock.advance(TICK).unwrap();
        assert_eq!(taker.join().unwrap(), Err(TakeError::NothingDue));
    });
}
