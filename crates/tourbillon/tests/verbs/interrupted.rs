//! A timer ends while a try of a retry runs: the outcome is there when the stop returns, whatever happens to the timers
//! that the stop hands back.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use tourbillon::{Attempt, Backoff, KeyedTimer, Retried, Retry, Timer, Unfired};

use crate::common::{HOUR, PLACES, accounted, case, eventually, running_on};

type Job = Box<dyn FnMut(&Attempt) -> Result<(), ()> + Send>;
/// Returns the outcome, if there is one.
type Ask = Box<dyn FnMut() -> Option<Retried<(), ()>>>;

/// Retries a job, and returns a query for its outcome. Keeps no timer alive.
type Row = (&'static str, fn(&Timer, Job) -> Ask);

const RETRIES: [Row; 4] = [
    ("Retry::try_wait", |timer, job| asks(timer.retry(backoff(), job).ok(), Retry::try_wait)),
    ("Retry::wait_within", |timer, job| {
        asks(timer.retry(backoff(), job).ok(), |retry| retry.wait_within(Duration::ZERO))
    }),
    ("Timer::retry_then", |timer, job| {
        let (told, outcome) = mpsc::channel();
        timer.retry_then(backoff(), job, move |outcome| told.send(outcome).unwrap()).ok().unwrap();
        Box::new(move || outcome.try_recv().ok())
    }),
    ("KeyedTimer::retry", |timer, job| {
        let (told, outcome) = mpsc::channel();
        let timers = KeyedTimer::new(timer);
        let then = move |outcome| told.send(outcome).unwrap();
        timers.retry(1, backoff(), job, then).ok().unwrap();
        // Its drop would cancel the retry.
        std::mem::forget(timers);
        Box::new(move || outcome.try_recv().ok())
    }),
];

fn backoff() -> Backoff {
    Backoff::new(HOUR)
}

type Outcome = Result<Retried<(), ()>, Retry<(), ()>>;

fn asks(mut retry: Option<Retry<(), ()>>, ask: fn(Retry<(), ()>) -> Outcome) -> Ask {
    assert!(retry.is_some(), "it was taken");
    Box::new(move || match ask(retry.take()?) {
        Ok(outcome) => Some(outcome),
        Err(back) => {
            retry = Some(back);
            None
        }
    })
}

/// Ends the timer, releases the try, and returns what was handed back.
type End = fn(&Timer, Sender<()>) -> Vec<Unfired>;

/// The ways in which a timer ends, each with the number of timers that it hands back.
const ENDS: [(&str, usize, End); 4] = [
    ("stop", 1, |timer, release| ends(timer, release, |timer| timer.stop())),
    ("stop_within", 1, |timer, release| {
        ends(timer, release, |timer| timer.stop_within(HOUR).unfired)
    }),
    ("stop_within, too short, and stop", 1, |timer, release| {
        let first = timer.stop_within(Duration::ZERO);
        assert!(!first.finished && first.unfired.is_empty());
        release.send(()).unwrap();
        timer.stop()
    }),
    // The try is the last: there is no next one to hand back.
    ("shutdown_within", 0, |timer, release| {
        let own = timer.clone();
        let thread = thread::spawn(move || own.shutdown_within(HOUR).unfired);
        eventually(|| timer.arm(HOUR, |_| ()).map(|key| timer.cancel(key)).is_err());
        release.send(()).unwrap();
        thread.join().unwrap()
    }),
];

fn ends(timer: &Timer, release: Sender<()>, stop: fn(&Timer) -> Vec<Unfired>) -> Vec<Unfired> {
    let own = timer.clone();
    let thread = thread::spawn(move || stop(&own));
    eventually(|| timer.is_stopped());
    release.send(()).unwrap();
    thread.join().unwrap()
}

/// A job that reports when it is tried, and then blocks.
fn blocks() -> (Job, Receiver<()>, Sender<()>) {
    let ((began, begun), (release, released)) = (mpsc::channel(), mpsc::channel());
    let job = move |_: &Attempt| {
        began.send(()).unwrap();
        released.recv().unwrap();
        Err(())
    };
    (Box::new(job), begun, release)
}

#[test]
fn a_try_that_a_stop_interrupts_has_an_outcome() {
    for place in PLACES {
        for (verb, retry) in RETRIES {
            for (way, handed_back, end) in ENDS {
                case(format!("{verb}, {way}, on the {place}"), move || {
                    let (timer, (job, begun, release)) = (running_on(place).build(), blocks());
                    let timer = timer.unwrap();
                    let mut ask = retry(&timer, job);
                    begun.recv().unwrap();
                    assert_eq!(ask(), None, "it is tried");
                    let unfired = end(&timer, release);
                    assert_eq!(unfired.len(), handed_back);
                    assert_eq!(ask(), Some(Retried::Stopped), "while that is kept");
                    // It has nothing left to run.
                    unfired.into_iter().for_each(Unfired::run);
                    assert_eq!((ask(), begun.try_iter().count()), (None, 0));
                    accounted(&timer);
                });
            }
        }
    }
}
