//! What handles and the engine report about a running callback: it is not pending; one that runs once cannot be
//! cancelled, and one that repeats ends with this run.

use std::sync::{Arc, OnceLock};

use tourbillon::{Attempt, Backoff, Context, Cron, Key, KeyedTimer, Repeat, State, Timeout, Timer};

use crate::common::{HOUR, Log, PLACES, SECOND, accounted, case, panic_quietly, virtual_on};

type Run = Box<dyn FnMut(&Context<'_>) + Send>;

/// A verb that returns a handle, whether its callback repeats, and a call that runs it within an hour.
type Verb = (&'static str, bool, fn(&Timer, Run) -> Timeout);

const VERBS: [Verb; 7] = [
    ("schedule", false, |timer, mut run| {
        timer.schedule(SECOND, move |context| run(context)).unwrap()
    }),
    ("schedule_at", false, |timer, mut run| {
        timer.schedule_at(timer.now() + SECOND, move |context| run(context)).unwrap()
    }),
    ("schedule_wall", false, |timer, mut run| {
        timer.schedule_wall(timer.wall_now() + SECOND, move |context| run(context)).unwrap()
    }),
    ("schedule_repeating", true, |timer, mut run| {
        let again = move |context: &Context<'_>| {
            run(context);
            context.again(SECOND);
        };
        timer.schedule_repeating(SECOND, again).unwrap()
    }),
    ("repeat", true, |timer, mut run| {
        timer.repeat(Repeat::every(SECOND), move |context| run(context)).unwrap()
    }),
    ("schedule_wall_every", true, |timer, mut run| {
        let first = timer.wall_now() + SECOND;
        timer.schedule_wall_every(first, SECOND, move |context| run(context)).unwrap()
    }),
    ("schedule_cron", true, |timer, mut run| {
        let cron = Cron::parse("* * * * *", "UTC").unwrap();
        timer.schedule_cron(&cron, move |context| run(context)).unwrap()
    }),
];

/// How the callback cancels itself: with the handle that was returned, with one from its context, or by its key.
const HANDLES: [&str; 5] = [
    "its handle",
    "a clone of it",
    "a handle of the run",
    "a handle of the run, and no other",
    "its key",
];

/// What a handle reports, and whether it can be moved.
fn asked(handle: &Timeout) -> (State, bool, bool) {
    let moved = handle.reschedule(HOUR).is_ok();
    (handle.state(), handle.is_pending(), moved)
}

#[test]
fn a_cancel_by_the_callback_itself() {
    for (verb, repeats, schedule) in VERBS {
        for (place, which) in PLACES.iter().flat_map(|place| HANDLES.map(|which| (place, which))) {
            case(format!("{verb}, {place}, {which}"), move || {
                let (timer, clock) = virtual_on(place);
                let (own, log): (Arc<OnceLock<Timeout>>, _) = (Arc::default(), Log::new());
                let (inner, told) = (own.clone(), log.clone());
                let run = move |context: &Context<'_>| {
                    let of_the_run = || context.timeout().unwrap();
                    let handle = match which {
                        "its handle" => inner.get().unwrap(),
                        "a clone of it" => &inner.get().unwrap().clone(),
                        _ => &of_the_run(),
                    };
                    let before = asked(handle);
                    let cancel = || match which {
                        "its key" => context.timer().cancel(context.key()),
                        _ => handle.cancel(),
                    };
                    let answers = (cancel(), cancel());
                    // A handle taken now reports the cancel, as all others do.
                    let late = of_the_run();
                    let during = (asked(handle), asked(&late), late.cancel());
                    told.add((before, answers, during, [handle.clone(), late, of_the_run()]));
                };
                let handle = schedule(&timer, Box::new(run));
                if which == HANDLES[3] {
                    drop(handle);
                } else {
                    let _ = own.set(handle);
                }
                clock.advance(HOUR).unwrap();
                let (runs, ends) = match repeats {
                    true => ((true, false), State::Cancelled),
                    false => ((false, false), State::Fired),
                };
                let during =
                    (if repeats { State::Cancelled } else { State::Running }, false, false);
                let [(before, answers, after, handles)] = log.take().try_into().ok().unwrap();
                assert_eq!((before, answers), ((State::Running, false, false), runs));
                assert_eq!(after, (during, during, false));
                for handle in handles.iter().chain(own.get()) {
                    assert_eq!((asked(handle), handle.cancel()), ((ends, false, false), false));
                }
                assert_eq!((timer.len(), timer.counts().panicked, timer.counts().fired), (0, 0, 1));
                drop(handles);
                accounted(&timer);
            });
        }
    }
}

/// Logs the state that a handle reports while this is dropped.
struct Asks(Arc<OnceLock<Timeout>>, Log<State>);

impl Drop for Asks {
    fn drop(&mut self) {
        self.1.add(self.0.get().unwrap().state());
    }
}

/// How a timer ends, and what its handle reports while its captured values are dropped.
const ENDS: [(&str, State); 4] = [
    ("its last run returns", State::Running),
    ("it panics", State::Running),
    ("it is cancelled in its run", State::Cancelled),
    ("what a stop hands back is dropped", State::HandedBack),
];

/// Once a handle reports that a timer has fired, nothing of its callback is left.
#[test]
fn captured_values_are_dropped_before_a_handle_tells_of_the_end() {
    let last: Verb = ("schedule_repeating, and not again", false, |timer, run| {
        timer.schedule_repeating(SECOND, run).unwrap()
    });
    for (verb, repeats, schedule) in VERBS.into_iter().chain([last]) {
        for (place, (end, says)) in PLACES.iter().flat_map(|place| ENDS.map(|end| (place, end))) {
            // A repeating timer has no last run; a timer that runs once cannot be cancelled during its run.
            let returns = end == ENDS[0].0;
            let cancelled = says == State::Cancelled;
            if (repeats && returns) || (!repeats && cancelled) {
                continue;
            }
            case(format!("{verb}, {place}, {end}"), move || {
                let (timer, clock) = virtual_on(place);
                let (own, log): (Arc<OnceLock<Timeout>>, _) = (Arc::default(), Log::new());
                let asks = Asks(own.clone(), log.clone());
                let run = move |_: &Context<'_>| match end {
                    "it panics" => panic_quietly(),
                    "it is cancelled in its run" => assert!(asks.0.get().unwrap().cancel()),
                    _ => _ = &asks,
                };
                let handle = schedule(&timer, Box::new(run));
                let _ = own.set(handle.clone());
                if says == State::HandedBack {
                    drop(timer.stop());
                } else {
                    clock.advance(60 * SECOND).unwrap();
                }
                assert_eq!(log.take(), [says]);
                let ended = if says == State::Running { State::Fired } else { says };
                assert_eq!(handle.state(), ended);
                accounted(&timer);
            });
        }
    }
}

/// A query to make while a callback runs.
type Ask = Box<dyn FnMut() + Send>;

/// Makes the engine run a callback within an hour, which makes the query.
type Arms = fn(&Timer, Ask);

/// Verbs that return no handle, or another kind.
const OTHERS: [(&str, Arms); 5] = [
    ("arm", |timer, mut ask| _ = timer.arm(SECOND, move |_| ask()).unwrap()),
    ("compute", |timer, mut ask| drop(timer.compute(SECOND, move |_| ask()).unwrap())),
    ("retry", |timer, ask| drop(timer.retry(Backoff::new(SECOND), tries(ask)).unwrap())),
    ("KeyedTimer::schedule", |timer, mut ask| {
        let timers = KeyedTimer::new(timer);
        timers.schedule(1, SECOND, move |_| ask()).unwrap();
        // Its drop would cancel the timer.
        std::mem::forget(timers);
    }),
    ("KeyedTimer::retry", |timer, ask| {
        let timers = KeyedTimer::new(timer);
        timers.retry(1, Backoff::new(SECOND), tries(ask), |_| ()).unwrap();
        std::mem::forget(timers);
    }),
];

/// A job that succeeds the second time.
fn tries(mut ask: Ask) -> impl FnMut(&Attempt) -> Result<(), ()> + Send + 'static {
    move |attempt| {
        ask();
        if attempt.number() == 2 { Ok(()) } else { Err(()) }
    }
}

/// Logs the listed keys and the counts, each time it is called.
fn is_listed(timer: &Timer, told: &Log<(Vec<Key>, usize, u64)>) -> Ask {
    let (timer, told) = (timer.clone(), told.clone());
    Box::new(move || {
        let keys = timer.pending().iter().map(|pending| pending.key).collect();
        told.add((keys, timer.len(), timer.counts().pending));
    })
}

#[test]
fn what_runs_is_not_among_what_is_pending() {
    let lists = |place: &'static str, arm: &dyn Fn(&Timer, Ask)| {
        let ((timer, clock), log) = (virtual_on(place), Log::new());
        let other = timer.arm(2 * HOUR, |_| ()).unwrap();
        arm(&timer, is_listed(&timer, &log));
        assert_eq!(timer.len(), 2);
        clock.advance(65 * SECOND).unwrap();
        let all = log.take();
        assert!(!all.is_empty() && all.iter().all(|listed| *listed == (vec![other], 1, 1)));
        timer.stop();
    };
    for place in PLACES {
        for (verb, _, schedule) in VERBS {
            case(format!("{verb}, {place}"), move || {
                lists(place, &|timer, mut ask| {
                    drop(schedule(timer, Box::new(move |_| ask())));
                });
            });
        }
        for (verb, arm) in OTHERS {
            case(format!("{verb}, {place}"), move || lists(place, &arm));
        }
    }
}
