//! The panic hook hears of every panic of user code, once, with the payload that was thrown; and the panic is counted.
//!
//! A new place where user code runs is a new row.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Waker};

use tourbillon::{
    Attempt, Backoff, Builder, Cron, Job, KeyedTimer, Operation, Purgatory, Repeat, Retried, Timer,
    VirtualClock,
};

use crate::by_hand::{Task, acting, poll};
use crate::common::{HOUR, Log, PLACES, SECOND, accounted, case, running_on};

/// A payload that the user throws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    Str,
    Text,
    Number,
    Own,
}

const PAYLOADS: [Payload; 4] = [Payload::Str, Payload::Text, Payload::Number, Payload::Own];

/// A type of the user's.
struct Own(u64);

impl Payload {
    fn throw(self) -> ! {
        resume_unwind(match self {
            Payload::Str => Box::new("oh no"),
            Payload::Text => Box::new(String::from("oh no")),
            Payload::Number => Box::new(7_u64),
            Payload::Own => Box::new(Own(7)),
        })
    }

    /// What a hook hears.
    fn heard(payload: &(dyn Any + Send)) -> Option<Self> {
        let is_number = |number: &u64| *number == 7;
        if payload.downcast_ref() == Some(&"oh no") {
            Some(Payload::Str)
        } else if payload.downcast_ref::<String>().is_some_and(|text| text == "oh no") {
            Some(Payload::Text)
        } else if payload.downcast_ref().is_some_and(is_number) {
            Some(Payload::Number)
        } else {
            payload.downcast_ref().filter(|Own(number)| is_number(number)).map(|_| Payload::Own)
        }
    }

    /// A value whose drop throws it.
    fn when_dropped(self) -> Bomb {
        Bomb(self)
    }
}

struct Bomb(Payload);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.throw();
    }
}

/// Makes user code of a timer panic once.
type Row = (&'static str, fn(&Timer, &VirtualClock, Payload));

const CALLBACKS: &[Row] = &[
    ("schedule", |timer, clock, payload| {
        timer.schedule(SECOND, move |_| payload.throw()).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("arm", |timer, clock, payload| {
        timer.arm(SECOND, move |_| payload.throw()).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("schedule_wall", |timer, clock, payload| {
        timer.schedule_wall(timer.wall_now() + SECOND, move |_| payload.throw()).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("schedule_cron", |timer, clock, payload| {
        let cron = Cron::parse("* * * * * *", "UTC").unwrap();
        timer.schedule_cron(&cron, move |_| payload.throw()).unwrap();
        clock.advance(2 * SECOND).unwrap();
    }),
    ("schedule_repeating", |timer, clock, payload| {
        let callback = move |context: &tourbillon::Context<'_>| {
            context.again(SECOND);
            payload.throw();
        };
        timer.schedule_repeating(SECOND, callback).unwrap();
        clock.advance(HOUR).unwrap();
    }),
    ("repeat that survives", |timer, clock, payload| {
        let rhythm = Repeat::every(SECOND).survive_panics();
        let repeat = timer.repeat(rhythm, move |_| payload.throw()).unwrap();
        clock.advance(SECOND).unwrap();
        assert!(repeat.cancel());
    }),
    ("repeat that survives, and is handed back", |timer, _, payload| {
        let rhythm = Repeat::every(SECOND).survive_panics();
        timer.repeat(rhythm, move |_| payload.throw()).unwrap();
        timer.stop().into_iter().for_each(|unfired| unfired.run());
    }),
    ("compute", |timer, clock, payload| {
        let result = timer.compute::<(), _>(SECOND, move |_| payload.throw()).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!(result.wait(), Err(tourbillon::NoResult::Panicked));
    }),
    ("a try", |timer, clock, payload| {
        let job = move |_: &Attempt| payload.throw();
        timer.retry::<(), (), _>(Backoff::new(SECOND), job).unwrap();
        clock.advance(HOUR).unwrap();
    }),
    ("the listener of a success", |timer, clock, payload| {
        let then = move |_| payload.throw();
        timer.retry_then(Backoff::new(SECOND), |_| Ok::<_, ()>(()), then).unwrap();
        clock.advance(HOUR).unwrap();
    }),
    ("the listener of a retry that gives up", |timer, clock, payload| {
        let then = move |_| payload.throw();
        timer.retry_then(Backoff::new(SECOND).tries(2), |_| Err::<(), _>(()), then).unwrap();
        clock.advance(HOUR).unwrap();
    }),
    ("the listener of a retry that is cancelled", |timer, clock, payload| {
        let then = move |_| payload.throw();
        let retry = timer.retry_then(Backoff::new(SECOND), |_| Err::<(), _>(()), then).unwrap();
        clock.advance(SECOND).unwrap();
        assert!(retry.cancel());
    }),
    ("the listener of a retry that is stopped", |timer, clock, payload| {
        let then = move |_| payload.throw();
        timer.retry_then(Backoff::new(SECOND), |_| Err::<(), _>(()), then).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!(timer.stop().len(), 1, "it is handed back");
    }),
    ("a callback under a key", |timer, clock, payload| {
        let timers = KeyedTimer::new(timer);
        timers.schedule(1, SECOND, move |_| payload.throw()).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("a try under a key", |timer, clock, payload| {
        let (timers, job) = (KeyedTimer::new(timer), move |_: &Attempt| payload.throw());
        timers.retry::<(), (), _, _>(1, Backoff::new(SECOND), job, |_| ()).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("the listener of a retry under a key", |timer, clock, payload| {
        let (timers, then) = (KeyedTimer::new(timer), move |_| payload.throw());
        timers.retry(1, Backoff::new(SECOND), |_| Ok::<_, ()>(()), then).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("an operation that is completed", |timer, _, payload| {
        let purgatory = Purgatory::new(timer);
        purgatory.try_complete_else_watch(Throws { payload, met: true }, [1], SECOND).unwrap();
    }),
    ("an operation that expires", |timer, clock, payload| {
        let purgatory = Purgatory::new(timer);
        purgatory.try_complete_else_watch(Throws { payload, met: false }, [1], SECOND).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("what is done when a wait expires", |timer, clock, payload| {
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        purgatory.when([1], SECOND, || None::<()>, move |_| payload.throw()).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("what is done when a wait is completed", |timer, _, payload| {
        let (purgatory, met) = (Purgatory::<u32>::new(timer), Arc::new(AtomicBool::new(false)));
        let is_met = met.clone();
        let condition = move || is_met.load(SeqCst).then_some(());
        purgatory.when([1], SECOND, condition, move |_| payload.throw()).unwrap();
        met.store(true, SeqCst);
        assert_eq!(purgatory.check(&1), 1, "it is completed");
    }),
    ("a condition", |timer, _, payload| {
        let (purgatory, throws) = (Purgatory::<u32>::new(timer), Arc::new(AtomicBool::new(false)));
        let now = throws.clone();
        let condition = move || {
            if now.swap(false, SeqCst) {
                payload.throw();
            }
            None::<()>
        };
        purgatory.when([1], SECOND, condition, |_| ()).unwrap();
        throws.store(true, SeqCst);
        assert_eq!(purgatory.check(&1), 0, "it is not met");
    }),
];

/// An operation whose actions panic.
struct Throws {
    payload: Payload,
    met: bool,
}

impl Operation for Throws {
    fn try_complete(&mut self) -> bool {
        self.met
    }

    fn on_complete(self) {
        self.payload.throw();
    }

    fn on_expire(self) {
        self.payload.throw();
    }
}

const DROPS: &[Row] = &[
    ("what a callback holds", |timer, clock, payload| {
        let held = payload.when_dropped();
        timer.arm(SECOND, move |_| drop(held)).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("what a callback that may repeat holds", |timer, clock, payload| {
        let held = payload.when_dropped();
        timer.schedule_repeating(SECOND, move |_| _ = &held).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("what a cancelled callback holds", |timer, _, payload| {
        let held = payload.when_dropped();
        assert!(timer.schedule(SECOND, move |_| drop(held)).unwrap().cancel());
    }),
    ("what a callback holds that is cancelled by key", |timer, _, payload| {
        let held = payload.when_dropped();
        let key = timer.arm(SECOND, move |_| drop(held)).unwrap();
        assert!(timer.cancel(key));
    }),
    ("what a replaced callback holds", |timer, _, payload| {
        let (timers, held) = (KeyedTimer::new(timer), payload.when_dropped());
        timers.schedule(1, SECOND, move |_| drop(held)).unwrap();
        assert!(timers.schedule(1, SECOND, |_| ()).unwrap());
    }),
    ("what a callback holds that is handed back", |timer, _, payload| {
        let held = payload.when_dropped();
        timer.arm(SECOND, move |_| drop(held)).unwrap();
        drop(timer.stop());
    }),
    ("what a job holds", |timer, clock, payload| {
        let held = payload.when_dropped();
        let job = move |_: &Attempt| {
            let _held = &held;
            Ok::<_, ()>(())
        };
        timer.retry(Backoff::new(SECOND), job).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("an error", |timer, clock, payload| {
        let mut error = Some(payload.when_dropped());
        let job = move |_: &Attempt| error.take().map_or(Ok(()), Err);
        let retry = timer.retry(Backoff::new(SECOND), job).unwrap();
        clock.advance(HOUR).unwrap();
        assert!(matches!(retry.wait(), Retried::Success(())), "it is tried again");
    }),
];

const TASKS: &[Row] = &[
    ("a wake of a sleep", |timer, clock, payload| {
        let mut sleep = timer.sleep(SECOND);
        assert!(poll(&mut sleep, &acting(move || payload.throw())).is_pending());
        clock.advance(SECOND).unwrap();
    }),
    ("a wake by a stop", |timer, _, payload| {
        let mut sleep = timer.sleep(SECOND);
        assert!(poll(&mut sleep, &acting(move || payload.throw())).is_pending());
        timer.stop();
    }),
    ("a wake by a move to the past", |timer, clock, payload| {
        let mut sleep = timer.sleep(SECOND);
        assert!(poll(&mut sleep, &acting(move || payload.throw())).is_pending());
        sleep.reset(clock.now());
    }),
    ("a wake of an interval", |timer, clock, payload| {
        let mut interval = timer.interval_at(timer.now() + SECOND, SECOND);
        let waker = acting(move || payload.throw());
        assert!(interval.poll_tick(&mut Context::from_waker(&waker)).is_pending());
        clock.advance(SECOND).unwrap();
    }),
    ("a wake for a result", |timer, clock, payload| {
        let mut result = timer.compute(SECOND, |_| ()).unwrap();
        assert!(poll(&mut result, &acting(move || payload.throw())).is_pending());
        clock.advance(SECOND).unwrap();
    }),
    ("a wake for a result that will not come", |timer, _, payload| {
        let mut result = timer.compute(SECOND, |_| ()).unwrap();
        assert!(poll(&mut result, &acting(move || payload.throw())).is_pending());
        assert!(result.timeout().cancel());
    }),
    ("a wake of a wait", |timer, clock, payload| {
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        let mut wait = Box::pin(purgatory.wait([1], SECOND, || None::<()>));
        assert!(poll(&mut wait, &acting(move || payload.throw())).is_pending());
        clock.advance(SECOND).unwrap();
    }),
    ("a wake of a queue", |timer, clock, payload| {
        let mut queue = timer.delay_queue();
        queue.insert(1, (), SECOND).unwrap();
        let waker = acting(move || payload.throw());
        assert!(queue.poll_expired(&mut Context::from_waker(&waker)).is_pending());
        clock.advance(SECOND).unwrap();
    }),
    ("a value in a queue", |timer, _, payload| {
        let mut queue = timer.delay_queue();
        queue.insert(1, payload.when_dropped(), SECOND).unwrap();
    }),
    ("a drop of a waker that is replaced", |timer, _, payload| {
        let mut sleep = timer.sleep(SECOND);
        assert!(poll(&mut sleep, &holding(payload)).is_pending());
        assert!(Task::new().poll(&mut sleep).is_pending());
    }),
    ("a drop of a waker with its sleep", |timer, _, payload| {
        let mut sleep = timer.sleep(SECOND);
        assert!(poll(&mut sleep, &holding(payload)).is_pending());
    }),
];

/// A waker whose last drop throws the payload, and whose other drops do not.
fn holding(payload: Payload) -> Waker {
    let held = payload.when_dropped();
    acting(move || _ = &held)
}

/// Runs the row on a timer of the builder; the hook must hear the payload once.
fn hears(builder: Builder, row: impl FnOnce(&Timer, &VirtualClock), payload: Payload) {
    let (clock, heard) = (VirtualClock::new(), Log::new());
    let told = heard.clone();
    let builder = builder.clock(&clock).on_panic(move |payload| told.add(Payload::heard(payload)));
    let timer = builder.build().unwrap();
    row(&timer, &clock);
    assert_eq!((heard.take(), timer.counts().panicked), (vec![Some(payload)], 1));
    accounted(&timer);
    drop(timer);
    assert_eq!(heard.len(), 0, "nothing is heard later");
}

#[test]
fn the_hook_hears_each_panic_once_with_what_was_thrown() {
    for place in PLACES {
        for &(name, row) in [CALLBACKS, DROPS, TASKS].into_iter().flatten() {
            for payload in PAYLOADS {
                case(format!("{name}, {payload:?}, {place}"), move || {
                    hears(running_on(place), |timer, clock| row(timer, clock, payload), payload);
                });
            }
        }
    }
}

#[test]
fn the_hook_hears_what_an_executor_throws() {
    for payload in PAYLOADS {
        case(format!("{payload:?}"), move || {
            let first = AtomicBool::new(true);
            let execute = move |job: Job| {
                if first.swap(false, SeqCst) {
                    payload.throw();
                }
                job.run();
                Ok(())
            };
            let row = |timer: &Timer, clock: &VirtualClock| {
                timer.arm(SECOND, |_| ()).unwrap();
                clock.advance(SECOND).unwrap();
                assert_eq!(timer.counts().fired, 1);
            };
            hears(Timer::builder().executor(execute), row, payload);
        });
    }
}

/// The same for a closure that wakes an event loop, and for a handler of values.
#[test]
fn the_hook_hears_what_an_event_loop_and_a_handler_throw() {
    for payload in PAYLOADS {
        case(format!("{payload:?}"), move || {
            let (clock, heard) = (VirtualClock::new(), Log::new());
            let builder = || {
                let told = heard.clone();
                let hook = move |payload: &(dyn Any + Send)| told.add(Payload::heard(payload));
                Timer::builder().clock(&clock).on_panic(hook)
            };
            let (timer, mut driver) = builder().build_driven().unwrap();
            driver.on_wake(move || payload.throw());
            timer.arm(SECOND, |_| ()).unwrap();
            assert_eq!((heard.take(), timer.counts().panicked), (vec![Some(payload)], 1));

            let engine = builder().deliver(move |_| payload.throw()).unwrap();
            engine.schedule(SECOND, 7).unwrap();
            clock.advance(SECOND).unwrap();
            assert_eq!((heard.take(), engine.counts().panicked), (vec![Some(payload)], 1));
        });
    }
}
