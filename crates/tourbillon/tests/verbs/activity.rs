//! What a timer reports about its callbacks: a callback is running from its start to its end, however it ends, and
//! nothing else counts.

use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Waker};

use tourbillon::{Attempt, Backoff, KeyedTimer, Purgatory, Repeat, Timer, WaitError};

use crate::common::{HOUR, PLACES, SECOND, accounted, case, eventually, panic_quietly, virtual_on};

/// An action on a timer within an hour, and the number of callbacks that have ended by then.
type Row = (&'static str, u64, fn(&Timer));

const ROWS: &[Row] = &[
    ("nothing", 0, |_| ()),
    ("schedule", 1, |timer| drop(timer.schedule(SECOND, |_| ()).unwrap())),
    ("arm", 1, |timer| _ = timer.arm(SECOND, |_| ()).unwrap()),
    ("one that panics", 1, |timer| _ = timer.arm(SECOND, |_| panic_quietly()).unwrap()),
    ("one that is cancelled", 0, |timer| {
        assert!(timer.schedule(SECOND, |_| ()).unwrap().cancel());
    }),
    ("one that is not due", 0, |timer| drop(timer.schedule(2 * HOUR, |_| ()).unwrap())),
    ("repeat", 60, |timer| drop(timer.repeat(Repeat::every(60 * SECOND), |_| ()).unwrap())),
    ("repeat, cancelled in its second run", 2, |timer| {
        let mut runs = 0;
        let run = move |context: &tourbillon::Context<'_>| {
            runs += 1;
            if runs == 2 {
                assert!(context.timeout().unwrap().cancel());
            }
        };
        drop(timer.repeat(Repeat::every(60 * SECOND), run).unwrap());
    }),
    ("schedule_wall_every", 61, |timer| {
        drop(timer.schedule_wall_every(timer.wall_now(), 60 * SECOND, |_| ()).unwrap());
    }),
    ("compute", 1, |timer| drop(timer.compute(SECOND, |_| 7).unwrap())),
    ("retry", 3, |timer| {
        let fails = |_: &Attempt| Err::<(), ()>(());
        drop(timer.retry(Backoff::new(SECOND).tries(3), fails).unwrap());
    }),
    ("KeyedTimer", 2, |timer| {
        let timers = KeyedTimer::new(timer);
        (0..3).for_each(|key| _ = timers.schedule(key, SECOND, |_| ()).unwrap());
        assert!(timers.cancel(&1));
        std::mem::forget(timers);
    }),
    ("Purgatory", 1, |timer| {
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        let then = |_: Result<(), WaitError>| ();
        (0..2).for_each(|key| _ = purgatory.when([key], SECOND, || None, then).unwrap());
        purgatory.cancel_key(&0);
        std::mem::forget(purgatory);
    }),
    ("tasks that sleep, and a callback", 1, |timer| {
        timer.arm(SECOND, |_| ()).unwrap();
        for _ in 0..5 {
            let mut sleep = Box::pin(timer.sleep(SECOND));
            let context = &mut Context::from_waker(Waker::noop());
            assert!(Future::poll(Pin::new(&mut sleep), context).is_pending());
            // Dropping it would cancel it.
            std::mem::forget(sleep);
        }
    }),
];

#[test]
fn callbacks_that_have_ended_are_completed_and_nothing_else() {
    for place in PLACES {
        for &(name, expected, arm) in ROWS {
            case(format!("{name}, on the {place}"), move || {
                let (timer, clock) = virtual_on(place);
                arm(&timer);
                assert_eq!((timer.activity().running, timer.activity().completed), (0, 0));
                clock.advance(HOUR).unwrap();
                // A worker counts as running until it sleeps.
                eventually(|| timer.activity().running == 0);
                assert_eq!(timer.activity().completed, expected);
                timer.stop();
                assert_eq!(timer.activity().completed, expected, "a stop runs nothing");
                accounted(&timer);
            });
        }
    }
}

/// Whatever else comes and goes, a callback that blocks counts as running and not as completed.
#[test]
fn what_runs_is_not_completed() {
    for place in PLACES {
        case(place, move || {
            let (timer, clock) = virtual_on(place);
            let ((began, begun), (release, released)) = (mpsc::channel(), mpsc::channel());
            timer.arm(SECOND, |_| ()).unwrap();
            let stands = move |_: &tourbillon::Context<'_>| {
                began.send(()).unwrap();
                released.recv().unwrap();
            };
            timer.arm(2 * SECOND, stands).unwrap();
            let time = std::thread::spawn(move || clock.advance(2 * SECOND).unwrap());
            begun.recv().unwrap();
            eventually(|| timer.activity().running == 1);
            assert_eq!(timer.activity().completed, 1);
            release.send(()).unwrap();
            time.join().unwrap();
            eventually(|| timer.activity().running == 0);
            assert_eq!(timer.activity().completed, 2);
        });
    }
}
