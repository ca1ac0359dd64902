//! Panics: of callbacks, of drops of what they captured, of the report, of the executor. Each is contained, counted and
//! reported, and affects nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::common::{
    HOUR, Log, MS, PLACES, PanicsWhenDropped, SECOND, accounted, panic_quietly, running_on, within,
};
use tourbillon::{Context, Job, State, Timer, VirtualClock};

/// A timer that counts its reported panics.
fn watched(place: &str) -> (Timer, VirtualClock, Arc<AtomicU64>) {
    let (clock, reported) = (VirtualClock::new(), Arc::new(AtomicU64::new(0)));
    let count = reported.clone();
    let builder = running_on(place).shards(1).clock(&clock);
    let timer = builder.on_panic(move |_| _ = count.fetch_add(1, SeqCst)).build().unwrap();
    (timer, clock, reported)
}

/// Asserts that this many panics were counted and reported, and that the timer still works.
#[track_caller]
fn survived(timer: &Timer, clock: &VirtualClock, reported: &AtomicU64, panics: u64) {
    assert_eq!((timer.counts().panicked, reported.load(SeqCst)), (panics, panics));
    let next = timer.schedule(SECOND, |_| ()).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(next.state(), State::Fired);
    accounted(timer);
}

#[test]
fn a_callback_that_panics_has_fired() {
    for place in PLACES {
        let (timer, clock, reported) = watched(place);
        let handle = timer.schedule(SECOND, |_| panic_quietly()).unwrap();
        timer.arm(SECOND, |_| panic_quietly()).unwrap();
        let repeating = |context: &Context<'_>| {
            context.again(MS);
            panic_quietly();
        };
        let repeating = timer.schedule_repeating(SECOND, repeating).unwrap();
        clock.advance(HOUR).unwrap();
        assert_eq!(handle.state(), State::Fired, "{place}");
        assert_eq!(repeating.state(), State::Fired, "a panic ends a repeating timer");
        assert_eq!(timer.counts().fired, 3);
        survived(&timer, &clock, &reported, 3);
    }
}

#[test]
fn a_captured_value_whose_drop_panics_at_fire() {
    for place in PLACES {
        let (timer, clock, reported) = watched(place);
        let (a, b) = (PanicsWhenDropped, PanicsWhenDropped);
        let handle = timer.schedule(SECOND, move |_| drop(a)).unwrap();
        timer.arm(SECOND, move |_| _ = &b).unwrap();
        let c = PanicsWhenDropped;
        let repeating = timer.schedule_repeating(SECOND, move |_| _ = &c).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!((handle.state(), repeating.state()), (State::Fired, State::Fired), "{place}");
        survived(&timer, &clock, &reported, 3);
    }
}

#[test]
fn a_captured_value_whose_drop_panics_at_cancel() {
    for place in PLACES {
        let (timer, clock, reported) = watched(place);
        let (a, b, c) = (PanicsWhenDropped, PanicsWhenDropped, PanicsWhenDropped);
        let handle = timer.schedule(SECOND, move |_| _ = &a).unwrap();
        let key = timer.arm(SECOND, move |_| _ = &b).unwrap();
        let guard = timer.schedule(SECOND, move |_| _ = &c).unwrap().cancel_on_drop();
        assert!(handle.cancel() && timer.cancel(key), "{place}");
        drop(guard);
        assert_eq!(handle.state(), State::Cancelled);
        survived(&timer, &clock, &reported, 3);
    }
}

#[test]
fn a_captured_value_whose_drop_panics_at_stop() {
    let (timer, clock, reported) = watched("pool");
    let (a, b, ran) = (PanicsWhenDropped, PanicsWhenDropped, Log::new());
    timer.schedule(SECOND, move |_| _ = &a).unwrap();
    timer.arm(SECOND, move |_| _ = &b).unwrap();
    let told = ran.clone();
    timer.arm(SECOND, move |_| told.add(())).unwrap();
    let unfired = timer.stop();
    assert_eq!((unfired.len(), reported.load(SeqCst)), (3, 0), "they are whole");
    drop(unfired);
    assert_eq!((timer.counts().panicked, reported.load(SeqCst)), (2, 2));
    clock.advance(HOUR).unwrap();
    assert_eq!(ran.len(), 0);
    accounted(&timer);
}

#[test]
fn a_captured_value_whose_drop_panics_at_the_last_drop() {
    let (timer, _clock, reported) = watched("pool");
    let mut handles = Vec::new();
    for _ in 0..10 {
        let value = PanicsWhenDropped;
        handles.push(timer.schedule(SECOND, move |_| _ = &value).unwrap());
    }
    drop(timer);
    assert_eq!(reported.load(SeqCst), 10, "one does not keep the others from being dropped");
    assert!(handles.iter().all(|handle| handle.state() == State::HandedBack));
}

/// If a report panics while it holds a payload whose drop panics too, the process aborts: nothing can prevent that.
#[test]
fn a_report_that_panics_and_a_payload_that_panics() {
    for place in PLACES {
        let clock = VirtualClock::new();
        let build = || running_on(place).clock(&clock).shards(1);
        let panics = build().on_panic(|_| panic_quietly()).build().unwrap();
        let drops = build().on_panic(|_| ()).build().unwrap();
        let plain = build().build().unwrap();
        panics.schedule(SECOND, |_| panic_quietly()).unwrap();
        panics.arm(SECOND, |_| panic_quietly()).unwrap();
        for timer in [&drops, &plain] {
            let payload = || std::panic::resume_unwind(Box::new(PanicsWhenDropped));
            timer.schedule(SECOND, move |_| payload()).unwrap();
            timer.arm(SECOND, move |_| payload()).unwrap();
        }
        clock.advance(SECOND).unwrap();
        for timer in [&panics, &drops, &plain] {
            assert_eq!(timer.counts().panicked, 2, "{place}");
            let next = timer.schedule(SECOND, |_| ()).unwrap();
            clock.advance(SECOND).unwrap();
            assert_eq!(next.state(), State::Fired);
            accounted(timer);
        }
    }
}

#[test]
fn an_executor_that_panics_loses_nothing() {
    let (clock, calls) = (VirtualClock::new(), AtomicU64::new(0));
    let execute = move |job: Job| {
        if calls.fetch_add(1, SeqCst) % 3 == 0 {
            panic_quietly();
        }
        job.run();
        Ok(())
    };
    let timer = Timer::builder().clock(&clock).shards(1).executor(execute).build().unwrap();
    for _ in 0..20 {
        timer.arm(SECOND, |_| ()).unwrap();
    }
    let counts = within(move || {
        clock.advance(SECOND).unwrap();
        accounted(&timer);
        timer.counts()
    });
    assert_eq!((counts.fired, counts.pending), (20, 0));
    assert!(counts.panicked >= 7, "{counts:?}");
}

/// A panic of the hook that starts the pool's threads counts as a failure to start one: the driver survives.
#[test]
fn a_spawn_hook_that_panics_for_a_worker() {
    type Hook = fn(String, Box<dyn FnOnce() + Send>) -> std::io::Result<()>;
    let hooks: [Hook; 2] =
        [|_, _| panic_quietly(), |_, _| std::panic::resume_unwind(Box::new(PanicsWhenDropped))];
    for hook in hooks {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).pool(2).spawn(hook).build().unwrap();
        let handle = timer.schedule(SECOND, |_| ()).unwrap();
        within(move || {
            let advanced = std::panic::catch_unwind(|| clock.advance(SECOND));
            assert!(advanced.is_ok(), "the panic reached who drives the engine");
            assert_eq!(handle.state(), State::Fired, "nothing is lost");
            assert_eq!(timer.stop().len(), 0);
        });
    }
}

/// The same for the driver: the caller may get the panic or an error, but a stop must not wait for a thread that was
/// never started.
#[test]
fn a_spawn_hook_that_panics_for_the_driver() {
    within(|| {
        let timer = Timer::builder().spawn(|_, _| panic_quietly()).build().unwrap();
        let scheduled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            timer.arm(MS, |_| ()).is_err()
        }));
        assert!(scheduled.unwrap_or(true));
        assert!(timer.stop().is_empty());
    });
}

/// A hook that drops the body of a thread has started none.
#[test]
fn a_spawn_hook_that_forgets_the_thread_does_not_hang_stop() {
    within(|| {
        let timer = Timer::builder().spawn(|_, _| Ok(())).build().unwrap();
        timer.arm(MS, |_| ()).unwrap();
        assert_eq!(timer.stop().len(), 1);
    });
}

#[test]
fn ten_thousand_that_panic_make_no_other_late() {
    for place in PLACES {
        let (timer, clock, reported) = watched(place);
        let log = Log::new();
        for n in 0..10_000_u64 {
            let after = Duration::from_millis(n % 50);
            timer.arm(after, |_| panic_quietly()).unwrap();
            let (log, read) = (log.clone(), clock.clone());
            let begin = clock.elapsed();
            timer.arm(after, move |_| log.add(read.elapsed() - begin - after)).unwrap();
        }
        clock.advance(SECOND).unwrap();
        let late = log.take();
        assert_eq!(late.len(), 10_000, "{place}");
        assert!(late.iter().all(|late| late.is_zero()), "{place}: all others on time");
        survived(&timer, &clock, &reported, 10_000);
    }
}
