//! A repeating timer keeps its place under the limit while it runs. If it is cancelled meanwhile, the place is freed
//! exactly once, however and how often it is cancelled, and wherever it runs.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use crate::common::{HOUR, PLACES, SECOND, YEAR, accounted, running_on, within};
use tourbillon::{Backoff, Context, Repeat, ScheduleError, Timeout, Timer, VirtualClock};

/// Called in each run, with the context if there is one.
type Run = Box<dyn FnMut(Option<&Context<'_>>) + Send>;

/// A timer that runs after a second, repeatedly.
type Kind = (&'static str, fn(&Timer, Run) -> Timeout);

const KINDS: &[Kind] = &[
    ("schedule_repeating", |timer, mut run| {
        let callback = move |context: &Context<'_>| {
            assert!(context.again(SECOND));
            run(Some(context));
        };
        timer.schedule_repeating(SECOND, callback).unwrap()
    }),
    ("schedule_repeating, asks again at the end", |timer, mut run| {
        let callback = move |context: &Context<'_>| {
            run(Some(context));
            assert!(context.again(SECOND));
        };
        timer.schedule_repeating(SECOND, callback).unwrap()
    }),
    ("repeat every", |timer, mut run| {
        timer.repeat(Repeat::every(SECOND), move |context| run(Some(context))).unwrap()
    }),
    ("repeat every, survives panics", |timer, mut run| {
        let repeat = Repeat::every(SECOND).survive_panics();
        timer.repeat(repeat, move |context| run(Some(context))).unwrap()
    }),
    ("repeat after each", |timer, mut run| {
        timer.repeat(Repeat::after_each(SECOND), move |context| run(Some(context))).unwrap()
    }),
    ("retry", |timer, mut run| {
        // The first attempt is made at once.
        let mut attempts = 0;
        let job = move |_: &tourbillon::Attempt| {
            attempts += 1;
            if attempts > 1 {
                run(None);
            }
            Err::<(), ()>(())
        };
        timer.retry(Backoff::new(SECOND), job).unwrap().timeout()
    }),
    #[cfg(feature = "calendar")]
    ("cron", |timer, mut run| {
        let cron = tourbillon::Cron::parse("* * * * * *", "UTC").unwrap();
        timer.schedule_cron(&cron, move |context| run(Some(context))).unwrap()
    }),
];

/// How often it is cancelled during its run: by its context, by its handle on the same thread, and by its handle on
/// another.
const WAYS: [(&str, [usize; 3]); 8] = [
    ("inside, by its context", [1, 0, 0]),
    ("inside, by its handle", [0, 1, 0]),
    ("outside", [0, 0, 1]),
    ("inside, twice", [2, 0, 0]),
    ("inside, by both", [1, 1, 0]),
    ("outside, twice", [0, 0, 2]),
    ("inside and outside", [1, 0, 1]),
    ("everywhere, again and again", [2, 2, 2]),
];

/// Asserts that exactly this many more timers have room.
#[track_caller]
fn has_room_for(timer: &Timer, count: usize, case: &str) {
    let keys: Vec<_> = (0..count)
        .map(|n| timer.arm(YEAR, |_| ()).unwrap_or_else(|_| panic!("{case}: no room for {n}")))
        .collect();
    let more = timer.arm(YEAR, |_| ());
    assert!(matches!(more, Err(ScheduleError::Full(_))), "{case}: room for more than {count}");
    assert!(keys.into_iter().all(|key| timer.cancel(key)));
}

/// A timer with a limit of three, two of which are taken.
fn for_three(place: &str) -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    let timer = running_on(place).shards(1).limit(3).clock(&clock).build().unwrap();
    (0..2).for_each(|_| _ = timer.arm(YEAR, |_| ()).unwrap());
    (timer, clock)
}

fn cancels_in_its_run(place: &'static str, kind: &Kind, way: &str, cancels: [usize; 3]) {
    let case = format!("{}, {way}, {place}", kind.0);
    let (timer, clock) = for_three(place);
    let (runs, said) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let handle: Arc<OnceLock<Timeout>> = Arc::default();
    let (running, is_running) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let (count, inside, own, full) = (runs.clone(), said.clone(), handle.clone(), timer.clone());
    let name = case.clone();
    let run = move |context: Option<&Context<'_>>| {
        count.fetch_add(1, SeqCst);
        has_room_for(&full, 0, &name);
        let say = |cancelled: bool| inside.lock().unwrap().push(cancelled);
        // A callback without a context uses its handle.
        let timeout = context.map(|context| context.timeout().unwrap());
        let timeout = timeout.as_ref().unwrap_or_else(|| own.get().unwrap());
        (0..cancels[0]).for_each(|_| say(timeout.cancel()));
        (0..cancels[1]).for_each(|_| say(own.get().unwrap().cancel()));
        running.send(()).unwrap();
        may_go.recv().unwrap();
    };
    let timeout = (kind.1)(&timer, Box::new(run));
    handle.set(timeout).ok().unwrap();
    let (outside, other) = (said.clone(), handle.clone());
    let canceller = thread::spawn(move || {
        is_running.recv().expect("it runs to the end");
        (0..cancels[2]).for_each(|_| outside.lock().unwrap().push(other.get().unwrap().cancel()));
        go.send(()).unwrap();
    });
    clock.advance(3 * SECOND).unwrap();
    canceller.join().unwrap();
    let said = said.lock().unwrap().clone();
    assert_eq!(said.iter().filter(|said| **said).count(), 1, "{case}: one cancel, {said:?}");
    assert!(said[0], "{case}: the first, {said:?}");
    has_room_for(&timer, 1, &case);
    clock.advance(HOUR).unwrap();
    assert_eq!(runs.load(SeqCst), 1, "{case}: it never starts again");
    assert!(!handle.get().unwrap().cancel(), "{case}: it was cancelled before");
    has_room_for(&timer, 1, &case);
    accounted(&timer);
}

#[test]
fn a_cancel_during_its_run_gives_its_place_back_once() {
    for place in PLACES {
        for kind in KINDS {
            for (way, cancels) in WAYS {
                within(move || cancels_in_its_run(place, kind, way, cancels));
            }
        }
    }
}

/// How a repeating timer ends by itself.
type End = (&'static str, fn(&Context<'_>));

const ENDS: [End; 3] = [
    ("does not ask again", |_| ()),
    ("panics", |_| crate::common::panic_quietly()),
    ("asks again, and panics", |context| {
        context.again(SECOND);
        crate::common::panic_quietly()
    }),
];

#[test]
fn one_that_ends_by_itself_gives_its_place_back_once() {
    for place in PLACES {
        for (name, end) in ENDS {
            within(move || {
                let case = format!("{name}, {place}");
                let (timer, clock) = for_three(place);
                let handle = timer.schedule_repeating(SECOND, end).unwrap();
                has_room_for(&timer, 0, &case);
                clock.advance(HOUR).unwrap();
                assert!(!handle.cancel(), "{case}");
                has_room_for(&timer, 1, &case);
                accounted(&timer);
            });
        }
    }
}

/// The cancel comes at any moment: before, during or after a run, or between the run and the next arming.
#[test]
fn a_cancel_that_races_with_the_run_gives_its_place_back_once() {
    for place in PLACES {
        within(move || {
            let (timer, clock) = for_three(place);
            let mut random = fastrand::Rng::with_seed(7);
            for round in 0..50 {
                let handle = timer.repeat(Repeat::every(Duration::from_millis(1)), |_| ()).unwrap();
                let spins = random.u32(0..20_000);
                let canceller = thread::spawn(move || {
                    (0..spins).for_each(|_| std::hint::spin_loop());
                    handle.cancel()
                });
                while !canceller.is_finished() {
                    clock.advance(Duration::from_millis(1)).unwrap();
                }
                let case = format!("{place}, round {round}");
                assert!(canceller.join().unwrap(), "{case}: it would run for ever");
                has_room_for(&timer, 1, &case);
            }
            accounted(&timer);
        });
    }
}
