//! Every verb that schedules reports why it refused, and returns what it was given.

use std::error::Error;
use std::io;

use crate::common::{Dropped, Drops, HOUR, accounted, case};
use tourbillon::{
    Attempt, Backoff, Batch, Builder, Context, KeyedTimer, Operation, Purgatory, Repeat, Timer,
    VirtualClock,
};

type Refused = Result<(), Box<dyn Error>>;

/// Schedules a far timer that holds the value.
type Verb = (&'static str, fn(&Timer, Dropped) -> Refused);

fn holds(held: Dropped) -> impl FnMut(&Context<'_>) + Send + 'static {
    move |_| _ = &held
}

fn fails(held: Dropped) -> impl FnMut(&Attempt) -> Result<(), ()> + Send + 'static {
    move |_| {
        _ = &held;
        Err(())
    }
}

fn done<T, E: Error + 'static>(scheduled: Result<T, E>) -> Refused {
    scheduled.map(drop).map_err(|error| error.into())
}

struct Never(#[expect(dead_code, reason = "held")] Dropped);

impl Operation for Never {
    fn try_complete(&mut self) -> bool {
        false
    }
    fn on_complete(self) {}
    fn on_expire(self) {}
}

const VERBS: &[Verb] = &[
    ("Timer::schedule", |timer, held| done(timer.schedule(HOUR, holds(held)))),
    ("Timer::schedule_at", |timer, held| done(timer.schedule_at(timer.now() + HOUR, holds(held)))),
    ("Timer::schedule_repeating", |timer, held| done(timer.schedule_repeating(HOUR, holds(held)))),
    ("Timer::schedule_repeating_at", |timer, held| {
        done(timer.schedule_repeating_at(timer.now() + HOUR, holds(held)))
    }),
    ("Timer::arm", |timer, held| done(timer.arm(HOUR, holds(held)))),
    ("Timer::arm_at", |timer, held| done(timer.arm_at(timer.now() + HOUR, holds(held)))),
    ("Timer::repeat", |timer, held| done(timer.repeat(Repeat::every(HOUR), holds(held)))),
    ("Timer::retry", |timer, held| done(timer.retry(Backoff::new(HOUR), fails(held)))),
    ("Timer::retry_then", |timer, held| {
        done(timer.retry_then(Backoff::new(HOUR), fails(held), |_| ()))
    }),
    ("Timer::schedule_wall", |timer, held| {
        done(timer.schedule_wall(timer.wall_now() + HOUR, holds(held)))
    }),
    ("Timer::schedule_wall_every", |timer, held| {
        done(timer.schedule_wall_every(timer.wall_now() + HOUR, HOUR, holds(held)))
    }),
    #[cfg(feature = "calendar")]
    ("Timer::schedule_cron", |timer, held| {
        let cron = tourbillon::Cron::parse("0 12 * * *", "UTC").unwrap();
        done(timer.schedule_cron(&cron, holds(held)))
    }),
    ("KeyedTimer::schedule", |timer, held| {
        done(KeyedTimer::new(timer).schedule(1, HOUR, holds(held)))
    }),
    ("KeyedTimer::schedule_if_absent", |timer, held| {
        done(KeyedTimer::new(timer).schedule_if_absent(1, HOUR, holds(held)))
    }),
    ("KeyedTimer::retry", |timer, held| {
        done(KeyedTimer::new(timer).retry(1, Backoff::new(HOUR), fails(held), |_| ()))
    }),
    ("Purgatory, an operation", |timer, held| {
        done(Purgatory::new(timer).try_complete_else_watch(Never(held), [1], HOUR))
    }),
    ("Purgatory, a closure", |timer, held| {
        let condition = move || {
            _ = &held;
            None::<()>
        };
        done(Purgatory::<u64>::new(timer).when([1], HOUR, condition, |_| ()))
    }),
];

/// A reason to refuse, and how to build a timer to which it applies.
struct Reason {
    /// The error begins with this.
    name: &'static str,
    builder: fn() -> Builder,
    stopped: bool,
}

const NO_THREAD: &str = "no thread today";

fn without_threads() -> Builder {
    Timer::builder().spawn(|_, _| Err(io::Error::other(NO_THREAD)))
}

const REASONS: [Reason; 5] = [
    Reason { name: "Thread", builder: without_threads, stopped: false },
    Reason { name: "Stopped", builder: without_threads, stopped: true },
    Reason {
        name: "Stopped",
        builder: || Timer::builder().clock(&VirtualClock::new()),
        stopped: true,
    },
    Reason {
        name: "Stopped",
        builder: || Timer::builder().clock(&VirtualClock::new()).limit(1),
        stopped: true,
    },
    Reason {
        name: "Full",
        builder: || Timer::builder().clock(&VirtualClock::new()).limit(1),
        stopped: false,
    },
];

impl Reason {
    /// The error names the reason, says what to do, and has a source if another error caused it.
    fn is_said_by(&self, error: &dyn Error) {
        assert!(format!("{error:?}").starts_with(self.name), "{error:?}");
        let source = error.source().map(|source| source.to_string());
        let is_thread = self.name == "Thread";
        assert_eq!(source.as_deref(), is_thread.then_some(NO_THREAD), "{error:?}");
        assert_eq!(error.to_string().contains(NO_THREAD), is_thread, "{error}");
        assert!(error.to_string().contains(": "), "what to do: {error}");
    }
}

#[test]
fn every_verb_says_why_it_refuses_and_gives_back_what_it_was_given() {
    for (verb, schedule) in VERBS {
        for reason in &REASONS {
            case(format!("{verb}, {}, stopped: {}", reason.name, reason.stopped), move || {
                let (timer, drops) = ((reason.builder)().build().unwrap(), Drops::new());
                // Room for one, which is taken.
                let _ = timer.arm(HOUR, |_| ());
                if reason.stopped {
                    timer.stop();
                }
                let error = schedule(&timer, drops.one()).unwrap_err();
                reason.is_said_by(&*error);
                assert_eq!(drops.count(), 0, "it is in the error");
                drop(error);
                assert_eq!(drops.count(), 1);
                accounted(&timer);
            });
        }
        case(format!("{verb}, no reason"), move || {
            let timer = Timer::builder().clock(&VirtualClock::new()).limit(2).build().unwrap();
            assert!(schedule(&timer, Drops::new().one()).is_ok());
        });
    }
}

/// The engine of values, and the verb that starts a thread and schedules nothing.
#[test]
fn an_engine_and_a_start_say_why_they_refuse() {
    for reason in &REASONS {
        case(format!("{}, stopped: {}", reason.name, reason.stopped), move || {
            let engine = (reason.builder)().deliver(|_: Batch<'_, Dropped>| ()).unwrap();
            let drops = Drops::new();
            let _ = engine.schedule(HOUR, drops.one());
            if reason.stopped {
                drop(engine.stop());
            }
            let before = drops.count();
            let after = engine.schedule(HOUR, drops.one()).unwrap_err();
            let at = engine.schedule_at(engine.now() + HOUR, drops.one()).unwrap_err();
            reason.is_said_by(&after);
            reason.is_said_by(&at);
            assert_eq!(drops.count(), before, "they are in the errors");
            drop((after, at));
            assert_eq!(drops.count(), before + 2);
            let started = engine.start();
            match reason.name {
                "Full" => started.unwrap(),
                _ => reason.is_said_by(&started.unwrap_err()),
            }
        });
    }
}
