//! What a callback is told of its own run: late, once or again and again, and by hand. And what a handle says when
//! there is no engine any more.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use tourbillon::State::{Cancelled, Fired, HandedBack, Pending, Running};
use tourbillon::{Builder, Context, Key, KeyedTimer, State, Timeout, Timer, VirtualClock};

use super::{Run, STAGES, VERBS, Verb, clock_at_an_hour, once, since};
use crate::common::{HOUR, PLACES, SECOND, case, running_on};

/// What a context tells. Instants are times since the beginning of the clock.
#[derive(Debug, PartialEq)]
struct Seen {
    key: Key,
    deadline: Duration,
    wall_deadline: Option<Duration>,
    lateness: Duration,
    handle: Option<(Key, State)>,
    may_run_again: bool,
    now: Duration,
    debug: String,
}

impl Seen {
    fn of(context: &Context<'_>, clock: &VirtualClock, wall_begin: SystemTime) -> Self {
        let handle = context.timeout();
        Seen {
            key: context.key(),
            deadline: since(clock, context.deadline()),
            wall_deadline: context.wall_deadline().map(|at| at.duration_since(wall_begin).unwrap()),
            lateness: context.lateness(),
            handle: handle.map(|handle| (handle.key(), handle.state())),
            // The last call counts: the verb's own, if it repeats.
            may_run_again: context.again(SECOND),
            now: since(clock, context.timer().now()),
            debug: format!("{context:?}"),
        }
    }
}

/// Those that give no handle, or none to the callback.
const BY_KEY: [Verb; 2] = [
    once("arm", |timer, mut run| {
        let key = timer.arm(SECOND, move |it| run(Some(it))).unwrap();
        assert!(timer.is_pending(key));
        // A handle of the verbs that have one: not asked for.
        timer.schedule(HOUR, |_| ()).unwrap()
    }),
    once("KeyedTimer", |timer, mut run| {
        let timers = KeyedTimer::new(timer);
        timers.schedule(1, SECOND, move |it| run(Some(it))).unwrap();
        // Its drop would cancel the timer.
        std::mem::forget(timers);
        timer.schedule(HOUR, |_| ()).unwrap()
    }),
];

/// An engine whose tick is so long that timers are late.
fn slow(builder: Builder) -> Builder {
    builder.tick(Duration::from_millis(700))
}

fn late(due: Duration) -> Duration {
    let tick = 700;
    let ticks = due.as_millis().div_ceil(tick);
    Duration::from_millis((ticks * tick) as u64) - due
}

#[test]
fn a_callback_is_told_of_its_run() {
    for place in PLACES {
        for (by_key, verbs) in [(false, VERBS), (true, &BY_KEY)] {
            // The jobs of a retry have no context.
            for verb in verbs.iter().filter(|verb| !verb.name.starts_with("retry")) {
                for by_hand in [false, true] {
                    let how = if by_hand { "by hand" } else { "when it is due" };
                    case(format!("{}, {how}, {place}", verb.name), move || {
                        let clock = clock_at_an_hour();
                        let wall_begin = clock.wall_now() - clock.elapsed();
                        let timer = slow(running_on(place)).clock(&clock).build().unwrap();
                        let (tell, told) = mpsc::channel();
                        let own = clock.clone();
                        let run: Run = Box::new(move |context| {
                            tell.send(Seen::of(context.unwrap(), &own, wall_begin)).unwrap();
                        });
                        let handle = (verb.schedule)(&timer, run);
                        let due = clock.elapsed() + verb.first;
                        let listed = timer.pending();
                        let is_it = |key| key != handle.key();
                        let other = listed.iter().map(|one| one.key).find(|&key| is_it(key));
                        let key = if by_key { other.unwrap() } else { handle.key() };
                        if by_hand {
                            let unfired = timer.stop();
                            clock.advance(HOUR).unwrap();
                            unfired.into_iter().for_each(|unfired| unfired.run());
                        } else {
                            clock.advance(late(due) + verb.first).unwrap();
                        }
                        let now = clock.elapsed();
                        let lateness = now - due;
                        assert!(lateness > Duration::ZERO);
                        let state = if by_hand { HandedBack } else { Running };
                        let expected = Seen {
                            key,
                            deadline: due,
                            wall_deadline: Some(due).filter(|_| verb.wall),
                            lateness,
                            handle: Some((key, state)).filter(|_| !by_key),
                            may_run_again: verb.period.is_some() && !by_hand,
                            now,
                            debug: format!(
                                "Context {{ key: {key:?}, lateness: {lateness:?}, .. }}"
                            ),
                        };
                        // By hand, whoever repeats runs once.
                        assert_eq!(told.try_iter().collect::<Vec<_>>(), [expected]);
                    });
                }
            }
        }
    }
}

/// Everything that a handle says without its engine.
#[track_caller]
fn says(handle: &Timeout, when: &str, state: State) {
    let clone = handle.clone();
    for handle in [handle, &clone] {
        let (deadline, remaining) = (handle.deadline(), handle.remaining());
        let none = [deadline.is_none(), remaining.is_none(), handle.wall_deadline().is_none()];
        assert_eq!((handle.state(), none), (state, [true; 3]), "{when}");
        let started = matches!(state, Running | Fired);
        assert_eq!((handle.is_pending(), handle.has_started()), (false, started), "{when}");
        let debug = format!("Timeout {{ key: {:?}, state: {state:?} }}", handle.key());
        assert_eq!(format!("{handle:?}"), debug, "{when}");
        assert!(!handle.cancel() && handle.reschedule(HOUR).is_err(), "{when}");
    }
}

/// The last clone of the engine, or its driver, is dropped before or while a timer runs.
#[test]
fn a_handle_outlives_its_engine() {
    for (place, shards) in STAGES {
        for verb in VERBS {
            for runs in [false, true] {
                let when = if runs { "while it runs" } else { "before it runs" };
                case(format!("{}, {when}, {place}", verb.name), move || {
                    let clock = clock_at_an_hour();
                    let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
                    let run: Run = Box::new(move |_| {
                        begins.send(()).unwrap();
                        let _ = ends.recv();
                    });
                    let is_driven = !PLACES.contains(&place);
                    let builder = if is_driven { Timer::builder() } else { running_on(place) };
                    let builder = builder.shards(shards).clock(&clock);
                    let (timer, driver) = super::build(builder, place);
                    let handle = (verb.schedule)(&timer, run);
                    let (first, own, turned) = (verb.first, clock.clone(), driver.clone());
                    if !runs {
                        drop((timer, driver, turned));
                        says(&handle, "dropped", HandedBack);
                        return;
                    }
                    let time = thread::spawn(move || {
                        own.advance(first).unwrap();
                        turned.iter().for_each(|driver| _ = driver.lock().unwrap().turn());
                    });
                    begun.recv().unwrap();
                    drop(timer);
                    // One that runs cannot be cancelled any more, or ends with this run.
                    assert_eq!((handle.state(), handle.deadline()), (Running, None));
                    end.send(()).unwrap();
                    time.join().unwrap();
                    drop(driver);
                    says(&handle, "it has run", Fired);
                });
            }
        }
    }
}

/// A guard says what its handle says, and so does the handle that it becomes.
#[test]
fn a_guard_says_what_its_handle_says() {
    let clock = clock_at_an_hour();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let handle = timer.schedule(SECOND, |_| ()).unwrap();
    let guard = handle.clone().cancel_on_drop();
    let says = |state| {
        let told = (guard.state(), guard.key(), guard.deadline(), guard.remaining());
        assert_eq!(told, (handle.state(), handle.key(), handle.deadline(), handle.remaining()));
        assert_eq!(
            (guard.state(), format!("{guard:?}")),
            (state, format!("CancelOnDrop(Some({handle:?}))"))
        );
    };
    says(Pending);
    guard.reschedule(HOUR).unwrap();
    says(Pending);
    clock.advance(HOUR).unwrap();
    says(Fired);
    let kept = guard.keep();
    assert_eq!((kept.state(), kept.key()), (Fired, handle.key()));
    let handle = timer.schedule(SECOND, |_| ()).unwrap();
    drop(handle.clone().cancel_on_drop());
    assert_eq!((handle.state(), handle.has_started()), (Cancelled, false));
}
