//! What the drop of a guard, a future or a collection cancels, however it is dropped: by a return or by a panic,
//! outside or inside a callback.
//!
//! A new guard is a new row of `GUARDS`, a new way to drop one is a new row of `DROPS`.

use std::any::Any;
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Waker};
use std::thread;

use tourbillon::{Attempt, Backoff, KeyedTimer, Purgatory, Repeat, State, Timer, VirtualClock};

use crate::common::{Drops, HOUR, Log, PLACES, SECOND, accounted, case, panic_quietly, running_on};

/// Dropped, it cancels what was made with it.
type Guard = Box<dyn Any + Send>;

type Run = Box<dyn FnMut() + Send>;

/// Arms something that is due in an hour and then runs the closure.
type Make = (&'static str, fn(&Timer, Run) -> Guard);

const GUARDS: &[Make] = &[
    ("CancelOnDrop of schedule", |timer, mut run| {
        Box::new(timer.schedule(HOUR, move |_| run()).unwrap().cancel_on_drop())
    }),
    ("CancelOnDrop of repeat", |timer, mut run| {
        let repeat = timer.repeat(Repeat::every(HOUR), move |_| run());
        Box::new(repeat.unwrap().cancel_on_drop())
    }),
    ("CancelOnDrop of schedule_wall", |timer, mut run| {
        let at = timer.wall_now() + HOUR;
        Box::new(timer.schedule_wall(at, move |_| run()).unwrap().cancel_on_drop())
    }),
    ("CancelOnDrop of compute", |timer, mut run| {
        let result = timer.compute(HOUR, move |_| run()).unwrap();
        Box::new(result.timeout().clone().cancel_on_drop())
    }),
    ("CancelOnDrop of retry", |timer, mut run| {
        let job = move |_: &Attempt| {
            run();
            Ok::<_, ()>(())
        };
        let retry = timer.retry(Backoff::new(SECOND), job).unwrap().timeout();
        retry.reschedule(HOUR).unwrap();
        Box::new(retry.cancel_on_drop())
    }),
    ("KeyedTimer", |timer, mut run| {
        let timers = KeyedTimer::new(timer);
        timers.schedule(1, HOUR, move |_| run()).unwrap();
        Box::new(timers)
    }),
    ("Purgatory::wait", |timer, mut run| {
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        // Tried when it begins; if it expires, it would be tried once more.
        let mut tried = 0;
        let condition = move || {
            tried += 1;
            (tried > 2).then(&mut run)
        };
        let wait = asleep(purgatory.wait([1], HOUR, condition));
        // Its drop would end the wait.
        std::mem::forget(purgatory);
        wait
    }),
    ("sleep", |timer, run| then(timer.sleep(HOUR), run)),
    ("timeout", |timer, run| then(timer.timeout(HOUR, pending::<()>()), run)),
    ("interval", |timer, run| {
        let mut interval = timer.interval_at(timer.now() + HOUR, HOUR);
        then(async move { interval.tick().await }, run)
    }),
    ("delay_queue", |timer, run| {
        let mut queue = timer.delay_queue();
        queue.insert(1, 7, HOUR).unwrap();
        then(async move { queue.next().await }, run)
    }),
];

/// A task that sleeps in the future, and runs the closure afterwards.
fn then(future: impl Future + Send + 'static, mut run: Run) -> Guard {
    asleep(async move {
        future.await;
        run();
    })
}

fn asleep(future: impl Future + Send + 'static) -> Guard {
    let mut future = Box::pin(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    Box::new(future)
}

struct Scene {
    clock: VirtualClock,
    timer: Timer,
    other: Timer,
}

impl Scene {
    fn advance(&self) {
        self.clock.advance(SECOND).unwrap();
    }
}

/// A way in which a guard is dropped.
type Way = (&'static str, fn(&Scene, Guard));

const DROPS: &[Way] = &[
    ("a return", |_, guard| drop(guard)),
    ("a panic", |_, guard| panics_with(guard)),
    ("a return of another thread", |_, guard| thread::spawn(|| drop(guard)).join().unwrap()),
    ("a panic of another thread", |_, guard| {
        thread::spawn(|| panics_with(guard)).join().unwrap();
    }),
    ("the drop of what holds it, which panics", |_, guard| {
        struct Holds(#[expect(dead_code, reason = "it is dropped")] Guard);
        impl Drop for Holds {
            fn drop(&mut self) {
                panic_quietly();
            }
        }
        assert!(catch_unwind(AssertUnwindSafe(|| drop(Holds(guard)))).is_err());
    }),
    ("a callback that returns", |scene, guard| {
        scene.timer.arm(SECOND, move |_| drop(guard)).unwrap();
        scene.advance();
    }),
    ("a callback that panics", |scene, guard| {
        let callback = move |_: &tourbillon::Context<'_>| {
            let _guard = guard;
            panic_quietly();
        };
        scene.timer.arm(SECOND, callback).unwrap();
        scene.advance();
    }),
    ("a callback that repeats, and panics", |scene, guard| {
        let callback = move |_: &tourbillon::Context<'_>| {
            let _guard = &guard;
            panic_quietly();
        };
        scene.timer.repeat(Repeat::every(SECOND), callback).unwrap();
        scene.advance();
    }),
    ("a try that panics", |scene, guard| {
        let mut guard = Some(guard);
        let job = move |_: &Attempt| {
            let _guard = guard.take();
            panic_quietly()
        };
        scene.timer.retry::<(), (), _>(Backoff::new(SECOND), job).unwrap();
        scene.advance();
    }),
    ("a callback of another timer, which panics", |scene, guard| {
        let callback = move |_: &tourbillon::Context<'_>| {
            let _guard = guard;
            panic_quietly();
        };
        scene.other.arm(SECOND, callback).unwrap();
        scene.advance();
    }),
    ("a callback that is cancelled", |scene, guard| {
        let key = scene.timer.arm(SECOND, move |_| drop(guard)).unwrap();
        assert!(scene.timer.cancel(key));
    }),
    ("a task that panics", |_, guard| {
        let task = async move {
            let _guard = guard;
            panic_quietly();
        };
        let mut task = Box::pin(task);
        let poll = || task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(catch_unwind(AssertUnwindSafe(poll)).is_err());
    }),
];

fn panics_with(guard: Guard) {
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _guard = guard;
        panic_quietly();
    }));
    assert!(panicked.is_err());
}

#[test]
fn a_guard_cancels_however_it_is_dropped() {
    for place in PLACES {
        for &(guard, make) in GUARDS {
            for &(way, drops) in DROPS {
                case(format!("{guard}, dropped by {way}, {place}"), move || {
                    let clock = VirtualClock::new();
                    let build = || running_on(place).clock(&clock).build().unwrap();
                    let (timer, other) = (build(), build());
                    let (scene, ran) = (Scene { clock, timer, other }, Log::new());
                    let told = ran.clone();
                    let made = make(&scene.timer, Box::new(move || told.add(())));
                    assert_eq!(scene.timer.len(), 1);
                    drops(&scene, made);
                    assert!(scene.timer.is_empty(), "it is cancelled");
                    scene.clock.advance(2 * HOUR).unwrap();
                    assert_eq!(ran.len(), 0, "it does not run");
                    accounted(&scene.timer);
                });
            }
        }
    }
}

/// A taker that is gone holds up no advance, a driver or a timer that is gone leaves nothing pending.
#[test]
fn what_ends_with_its_drop_ends_however_it_is_dropped() {
    for &(way, drops) in DROPS {
        case(format!("dropped by {way}"), move || {
            let clock = VirtualClock::new();
            let build = || Timer::builder().on_driver().clock(&clock).build().unwrap();
            let (timer, other) = (build(), build());
            let queue = Timer::builder().clock(&clock).queue::<u32>().unwrap();
            let (driven, driver) = Timer::builder().clock(&clock).build_driven().unwrap();
            let last = build();
            let handles = [&last, &driven].map(|timer| timer.schedule(HOUR, |_| ()).unwrap());
            let (held, delivered) = (Drops::new(), Log::new());
            let told = delivered.clone();
            let engine = Timer::builder().clock(&clock).deliver(move |_| told.add(())).unwrap();
            assert!(engine.schedule(HOUR, held.one()).is_ok());
            let scene = Scene { clock, timer, other };
            drops(&scene, Box::new((queue.taker(), driver, last, engine)));
            let states = handles.map(|handle| handle.state());
            assert_eq!(states, [State::HandedBack; 2]);
            assert!(driven.is_stopped());
            assert_eq!(held.count(), 1, "the value is dropped");
            queue.put(SECOND, 7).unwrap();
            scene.clock.advance(HOUR).unwrap();
            assert_eq!((queue.len(), driven.counts().pending, delivered.len()), (1, 0, 0));
        });
    }
}
