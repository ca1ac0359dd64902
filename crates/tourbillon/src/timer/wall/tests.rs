//! Internals of wall-clock timers: timers leave nothing behind, and the watch reaches every timer.
//!
//! The tests do not set the system's clock. Instead, they make a deadline wrong, as a setting would, and trigger the
//! watch.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::clock::watch;
use crate::{Timer, VirtualClock};

const HOUR: Duration = Duration::from_secs(3600);

/// The watch is shared by the process: tests that use it take turns.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn size(timer: &Timer) -> (usize, usize) {
    timer.core().delivery.wall.size()
}

#[test]
fn a_million_leave_nothing_behind() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let at = clock.wall_now() + HOUR;
    for _ in 0..1_000_000 {
        assert!(timer.schedule_wall(at, |_| ()).unwrap().cancel());
    }
    assert_eq!(size(&timer).0, 0);
    let all: Vec<_> = (0..100_000).map(|_| timer.schedule_wall(at, |_| ()).unwrap()).collect();
    assert_eq!(size(&timer).0, 100_000);
    // A handle that outlives its timer occupies no place in the registry.
    assert!(all.iter().all(|timeout| timeout.cancel()));
    let (len, capacity) = size(&timer);
    assert!(len == 0 && capacity < 1000, "room for {capacity}");
}

/// However a timer ends, it leaves the registry.
#[test]
fn every_end_is_an_end() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(2).build().unwrap();
    let at = clock.wall_now() + HOUR;
    let fires = timer.schedule_wall(at, |_| ()).unwrap();
    let panics = timer.schedule_wall(at, |_| std::panic::resume_unwind(Box::new(()))).unwrap();
    assert!(timer.schedule_wall(at, |_| ()).is_err(), "full");
    assert_eq!(size(&timer).0, 2, "what was refused has gone");
    clock.set_wall(at).unwrap();
    assert!(!fires.is_pending() && !panics.is_pending());
    assert_eq!(size(&timer).0, 0);
    let moved = timer.schedule_wall(at + HOUR, |_| ()).unwrap();
    moved.reschedule(HOUR).unwrap();
    clock.advance(HOUR).unwrap();
    assert_eq!(size(&timer).0, 0);
    let stopped = timer.schedule_wall(at + HOUR * 9, |_| ()).unwrap();
    drop(timer.stop());
    assert!(timer.schedule_wall(at, |_| ()).is_err(), "stopped");
    assert_eq!((size(&timer).0, stopped.wall_deadline()), (0, None));
}

/// Real time: a deadline an hour too late, as after a clock is set forward, is corrected when the watch is triggered.
/// The timer then fires within a second.
#[test]
fn the_watch_reaches_every_timer() {
    let _alone = ALONE.lock();
    let timers: Vec<Timer> = (0..3).map(|_| Timer::new()).collect();
    let (sender, receiver) = mpsc::channel();
    for timer in &timers {
        let sender = sender.clone();
        let at = SystemTime::now() + Duration::from_millis(20);
        let callback = move |_: &crate::Context<'_>| sender.send(SystemTime::now() >= at).unwrap();
        let timeout = timer.schedule_wall(at, callback).unwrap();
        let (core, key) = (timer.core(), timeout.key());
        let wrong = core.context.clock.now() + HOUR.as_nanos() as u64;
        core.shards[key.shard()].reschedule_if(key.inner(), || Some(wrong));
    }
    assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err(), "it waits for the hour");
    assert!(watch::pretend());
    for _ in &timers {
        assert_eq!(receiver.recv_timeout(Duration::from_secs(1)), Ok(true));
    }
}

/// Real time, milliseconds: the watch reaches all engines that exist, in whatever order engines are created and
/// dropped.
#[test]
fn the_watch_knows_engines_apart() {
    struct Looks(AtomicUsize);
    impl watch::Follows for Looks {
        fn look_again(&self) {
            self.0.fetch_add(1, SeqCst);
        }
        fn is_waiting(&self) -> bool {
            true
        }
    }
    let _alone = ALONE.lock();
    let (mut random, mut engines) = (fastrand::Rng::with_seed(7), Vec::new());
    for step in 0..200 {
        if random.usize(0..6) >= engines.len() {
            let engine: Arc<Looks> = Arc::new(Looks(AtomicUsize::new(0)));
            let follows: Arc<dyn watch::Follows> = engine.clone();
            engines.push((engine, watch::attach(Arc::downgrade(&follows)).unwrap()));
        } else {
            engines.swap_remove(random.usize(0..engines.len()));
        }
        let looks = || engines.iter().map(|(engine, _)| engine.0.load(SeqCst));
        let before: Vec<usize> = looks().collect();
        assert!(engines.is_empty() || watch::pretend());
        let began = Instant::now();
        while !looks().zip(&before).all(|(now, before)| now > *before) {
            assert!(began.elapsed() < Duration::from_secs(10), "step {step}: one is not reached");
            thread::yield_now();
        }
    }
}

/// Real time: the thread starts with the first timer that needs it, ends with the last such engine, and can start
/// again.
#[test]
fn the_watch_ends_with_the_last_engine() {
    let _alone = ALONE.lock();
    let gone = || {
        let began = Instant::now();
        while watch::pretend() {
            assert!(began.elapsed() < Duration::from_secs(10), "it never ends");
            thread::sleep(Duration::from_millis(1));
        }
    };
    gone();
    for _ in 0..20 {
        let (first, second) = (Timer::new(), Timer::new());
        first.schedule(HOUR, |_| ()).unwrap();
        assert!(!watch::pretend(), "no timer of the wall clock");
        let soon = first.schedule_wall(SystemTime::now(), |_| ()).unwrap();
        second.schedule_wall(SystemTime::now() + HOUR, |_| ()).unwrap();
        while soon.is_pending() {
            thread::yield_now();
        }
        drop(first);
        assert!(watch::pretend());
        drop(second);
        gone();
    }
}

/// The clock is set after a run was planned and before it is armed again.
/// The registry skips the timer, and the thread that arms it looks again.
#[test]
fn a_setting_between_the_plan_and_the_arming_is_not_lost() {
    use crate::timer::{Callback, Context};

    /// A callback that plans its next run like a cron job; before that run is armed, it sets the clock once and
    /// triggers the watch.
    struct Raced(VirtualClock, mpsc::Sender<()>, Option<SystemTime>);
    impl Callback for Raced {
        fn call(&mut self, context: &Context<'_>) {
            let plan = context.plan.unwrap();
            self.1.send(()).unwrap();
            let Some(next) = plan.next(&context.core.context.clock) else { return };
            context.set_again(next);
            if let Some(to) = self.2.take() {
                self.0.poke_wall(to);
                context.core.delivery.wall.look_again(context.core);
            }
        }
    }
    // Nine hourly runs, in two cases. In the first, the first run is punctual, and the clock is then set to a minute
    // past the second run. In the second, the first run is late, because the clock was set past the last run, and the
    // clock is then set to a minute before the fifth run.
    let (minute, second, late) = (HOUR / 60, HOUR / 3600, HOUR * 99);
    for (set, to, wait) in [(HOUR, HOUR * 2 + minute, second), (late, HOUR * 5 - minute, minute)] {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).build().unwrap();
        let registry = timer.core().delivery.wall.clone();
        registry.attach(timer.core()).unwrap();
        let begin = clock.wall_now();
        let rule = move |after: SystemTime| {
            let hours = after.duration_since(begin).ok()?.as_secs() / 3600;
            (hours < 9).then(|| begin + HOUR * (hours as u32 + 1))
        };
        let (sender, ran) = mpsc::channel();
        let raced = Raced(clock.clone(), sender, Some(begin + to));
        let rule = Some(Box::new(rule) as Box<super::Rule>);
        timer.schedule_plan(begin + HOUR, rule, registry.epoch(), raced).unwrap();
        clock.set_wall(begin + set).unwrap();
        clock.advance(wait).unwrap();
        assert_eq!(ran.try_iter().count(), 2, "set to {to:?}");
    }
}

/// A wall-clock timer on a stopped engine starts no watch thread.
#[test]
fn a_stopped_engine_starts_no_thread() {
    let _alone = ALONE.lock();
    let timer = Timer::new();
    drop(timer.stop());
    while watch::pretend() {
        thread::yield_now();
    }
    for _ in 0..50 {
        assert!(timer.schedule_wall(SystemTime::now(), |_| ()).is_err());
        assert!(!watch::pretend());
    }
}
