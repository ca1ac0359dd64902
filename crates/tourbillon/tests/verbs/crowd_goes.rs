//! A crowd of timers comes and goes, and its memory is freed. Other timers, and what the last of the crowd arms, behave
//! as without a crowd.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};
use std::time::{Duration, SystemTime};

use tourbillon::{
    Attempt, Backoff, Batch, Cron, KeyedTimer, Purgatory, Repeat, Timeout, Timer, VirtualClock,
    WaitError,
};

use crate::common::{HOUR, Log, SECOND, case, virtual_on};

/// More timers, and more handles, than an engine keeps memory for.
const CROWD: u32 = 20_000;
const HANDLES: u32 = 9_000;

/// Called when the timer runs.
type Run = Box<dyn FnMut() + Send>;

/// Arms a timer, and keeps no handle.
type Arms = (&'static str, fn(&Timer, Run));

const BESIDE: &[Arms] = &[
    ("arm", |timer, mut run| _ = timer.arm(40 * SECOND, move |_| run()).unwrap()),
    ("schedule", |timer, mut run| drop(timer.schedule(40 * SECOND, move |_| run()).unwrap())),
    ("repeat", |timer, mut run| {
        drop(timer.repeat(Repeat::every(7 * SECOND), move |_| run()).unwrap());
    }),
    ("schedule_repeating", |timer, mut run| {
        let again = move |context: &tourbillon::Context<'_>| {
            run();
            assert!(context.again(7 * SECOND));
        };
        drop(timer.schedule_repeating(SECOND, again).unwrap());
    }),
    ("retry_then", |timer, mut run| {
        let fails = move |_: &Attempt| {
            run();
            Err::<(), ()>(())
        };
        drop(timer.retry_then(Backoff::new(SECOND).most(7 * SECOND), fails, |_| ()).unwrap());
    }),
    ("schedule_wall", |timer, mut run| {
        let at = timer.wall_now() + 40 * SECOND;
        drop(timer.schedule_wall(at, move |_| run()).unwrap());
    }),
    ("schedule_wall_every", |timer, mut run| {
        let first = timer.wall_now() + SECOND;
        drop(timer.schedule_wall_every(first, 7 * SECOND, move |_| run()).unwrap());
    }),
    ("schedule_cron", |timer, mut run| {
        let cron = Cron::parse("*/7 * * * * *", "UTC").unwrap();
        drop(timer.schedule_cron(&cron, move |_| run()).unwrap());
    }),
];

/// How a crowd of handles ends.
type Goes = (&'static str, fn(&VirtualClock, Vec<Timeout>));

const GOES: [Goes; 4] = [
    ("cancelled", |_, all| assert!(all.iter().all(Timeout::cancel))),
    ("dropped, then fired", |clock, all| {
        drop(all);
        clock.advance(3 * SECOND).unwrap();
    }),
    ("fired, then dropped", |clock, all| {
        clock.advance(3 * SECOND).unwrap();
        drop(all);
    }),
    ("cancelled one by one", |_, all| {
        all.into_iter().for_each(|handle| assert!(handle.cancel()));
    }),
];

/// When the timer ran, by both clocks. At the end, the wall clock is set back into the range of past runs.
fn runs(arm: fn(&Timer, Run), crowd: u32, go: fn(&VirtualClock, Vec<Timeout>)) -> Vec<When> {
    let ((timer, clock), log) = (virtual_on("driver"), Log::new());
    clock.set_wall(SystemTime::UNIX_EPOCH + HOUR).unwrap();
    let (own, told) = (clock.clone(), log.clone());
    arm(&timer, Box::new(move || told.add((own.elapsed(), own.wall_now()))));
    clock.advance(5 * SECOND).unwrap();
    let all = (0..crowd).map(|_| timer.schedule(3 * SECOND, |_| ()).unwrap());
    go(&clock, all.collect());
    clock.advance(20 * SECOND - (clock.elapsed() - 5 * SECOND)).unwrap();
    clock.set_wall(clock.wall_now() - 10 * SECOND).unwrap();
    clock.advance(60 * SECOND).unwrap();
    assert_eq!(timer.check(), Ok(()));
    log.take()
}

type When = (Duration, SystemTime);

#[test]
fn what_is_beside_a_crowd_goes_on_as_without_it() {
    for &(verb, arm) in BESIDE {
        for (way, go) in GOES {
            case(format!("{verb}, a crowd is {way}"), move || {
                let (alone, beside) = (runs(arm, 0, |_, _| ()), runs(arm, HANDLES, go));
                assert!(!alone.is_empty());
                assert_eq!(beside, alone);
            });
        }
    }
}

/// Arms a crowd that runs in a second; each of it calls the given function.
type Happen = fn(&Timer, &VirtualClock, Each) -> Box<dyn Send>;

/// Called by each of a crowd, with a function that arms another timer.
type Each = Arc<dyn Fn(&dyn Fn(Run)) + Send + Sync>;

const CROWDS: [(&str, Happen); 6] = [
    ("arm", |timer, _, each| {
        for _ in 0..CROWD {
            let each = each.clone();
            let run = move |context: &tourbillon::Context<'_>| {
                let timer = context.timer();
                each(&|mut next| _ = timer.arm(SECOND, move |_| next()).unwrap());
            };
            timer.arm(SECOND, run).unwrap();
        }
        Box::new(())
    }),
    ("schedule", |timer, _, each| {
        let all = (0..CROWD).map(|_| {
            let each = each.clone();
            let run = move |context: &tourbillon::Context<'_>| {
                let timer = context.timer();
                each(&|mut next| drop(timer.schedule(SECOND, move |_| next()).unwrap()));
            };
            timer.schedule(SECOND, run).unwrap()
        });
        Box::new(all.collect::<Vec<_>>())
    }),
    ("KeyedTimer", |timer, _, each| {
        let timers = KeyedTimer::new(timer);
        for key in 0..CROWD {
            let (each, own) = (each.clone(), timers.clone());
            let run = move |_: &tourbillon::Context<'_>| {
                each(&|mut next| _ = own.schedule(key, SECOND, move |_| next()).unwrap());
            };
            timers.schedule(key, SECOND, run).unwrap();
        }
        Box::new(timers)
    }),
    ("Purgatory", |timer, _, each| {
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        for key in 0..CROWD {
            let (each, own) = (each.clone(), purgatory.clone());
            let then = move |_: Result<(), WaitError>| {
                each(&|mut next| {
                    let then = move |_: Result<(), WaitError>| next();
                    own.when([key], SECOND, || None, then).unwrap();
                });
            };
            purgatory.when([key], SECOND, || None, then).unwrap();
        }
        Box::new(purgatory)
    }),
    ("Engine", |_, clock, each| {
        let engine: Arc<Mutex<Option<tourbillon::Engine<Option<Run>>>>> = Arc::default();
        let own = engine.clone();
        let handler = move |batch: Batch<'_, Option<Run>>| {
            for fired in batch {
                match fired.value {
                    Some(mut next) => next(),
                    None => each(&|next| {
                        let engine = own.lock().unwrap().clone().unwrap();
                        assert!(engine.schedule(SECOND, Some(next)).is_ok());
                    }),
                }
            }
        };
        let new = Timer::builder().clock(clock).shards(1).deliver(handler).unwrap();
        (0..CROWD).for_each(|_| assert!(new.schedule(SECOND, None).is_ok()));
        *engine.lock().unwrap() = Some(new);
        Box::new(engine)
    }),
    ("sleep", |timer, _, each| {
        /// A waker that arms another sleep, whose waker runs the callback.
        struct Sleeps(Each, Timer, Mutex<Vec<Box<dyn Send>>>);
        impl Wake for Sleeps {
            fn wake(self: Arc<Self>) {
                (self.0)(&|next| {
                    let slept = sleeps(&self.1, Arc::new(Runs(Mutex::new(next))).into());
                    self.2.lock().unwrap().push(slept);
                });
            }
        }
        struct Runs(Mutex<Run>);
        impl Wake for Runs {
            fn wake(self: Arc<Self>) {
                self.0.lock().unwrap()();
            }
        }
        let sleeps_too = Arc::new(Sleeps(each, timer.clone(), Mutex::default()));
        let all = (0..CROWD).map(|_| sleeps(timer, sleeps_too.clone().into()));
        Box::new((all.collect::<Vec<_>>(), sleeps_too))
    }),
];

fn sleeps(timer: &Timer, waker: std::task::Waker) -> Box<dyn Send> {
    let mut sleep = Box::pin(timer.sleep(SECOND));
    assert!(Future::poll(Pin::new(&mut sleep), &mut Context::from_waker(&waker)).is_pending());
    Box::new(sleep)
}

/// The last timer of a crowd in a shard causes its memory to be freed, after it has run.
#[test]
fn what_the_last_of_a_crowd_arms_is_not_lost() {
    for (face, happen) in CROWDS {
        case(face, move || {
            let ((timer, clock), log) = (virtual_on("driver"), Log::new());
            let (own, told, ran) = (clock.clone(), log.clone(), AtomicU32::new(0));
            let each = move |arm: &dyn Fn(Run)| {
                if ran.fetch_add(1, SeqCst) + 1 == CROWD {
                    let (own, told) = (own.clone(), told.clone());
                    arm(Box::new(move || told.add(own.elapsed())));
                }
            };
            let kept = happen(&timer, &clock, Arc::new(each));
            clock.advance(SECOND).unwrap();
            assert_eq!(log.len(), 0);
            clock.advance(SECOND).unwrap();
            assert_eq!(log.take(), [2 * SECOND], "it happens");
            assert_eq!(timer.check(), Ok(()));
            std::mem::forget(kept);
        });
    }
}
