//! Shutdowns and stops of one timer at the same time: in callbacks, in wakers and outside. None waits for a callback or
//! a waker that waits for it in turn.
//!
//! In real time, because a callback and a waker never run at the same time under a virtual clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Wake};
use std::thread;
use std::time::Duration;

use tourbillon::{Job, Stopped, Timer, Unfired};

use crate::common::{HOUR, MS, case, within};

/// A verb that ends a timer, with a limit that is far off.
type Verb = (&'static str, fn(&Timer) -> Stopped<Unfired>);

const VERBS: [Verb; 3] = [
    ("shutdown_within(HOUR)", |timer| timer.shutdown_within(HOUR)),
    ("shutdown_within(MAX)", |timer| timer.shutdown_within(Duration::MAX)),
    ("stop_within(HOUR)", |timer| timer.stop_within(HOUR)),
];

type Act = Box<dyn FnOnce() + Send>;

/// Where a verb is called.
type Place = (&'static str, fn(&Timer, Act));

const CALLBACK: Place =
    ("callback", |timer, act| drop(timer.schedule(MS, move |_| act()).unwrap()));

const WAKER: Place = ("waker", |timer, act| {
    let mut sleep = timer.sleep(MS);
    let waker = Arc::new(Acts(Mutex::new(Some(act)))).into();
    assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
    // Its drop would disarm the waker.
    std::mem::forget(sleep);
});

const THREAD: Place = ("thread", |_, act| drop(thread::spawn(act)));

/// A waker that acts when it is woken.
struct Acts(Mutex<Option<Act>>);

impl Wake for Acts {
    fn wake(self: Arc<Self>) {
        let act = self.0.lock().unwrap().take();
        act.into_iter().for_each(|act| act());
    }
}

/// One waker at most: they run one after another.
const TOGETHER: [&[Place]; 6] = [
    &[CALLBACK, CALLBACK],
    &[CALLBACK, WAKER],
    &[CALLBACK, THREAD],
    &[WAKER, THREAD],
    &[CALLBACK, CALLBACK, CALLBACK],
    &[CALLBACK, CALLBACK, WAKER, THREAD],
];

#[test]
fn none_waits_for_another_that_waits_for_it() {
    for places in TOGETHER {
        for first in VERBS {
            for others in VERBS {
                let names: Vec<&str> = places.iter().map(|place| place.0).collect();
                case(format!("{}, then {}, in {names:?}", first.0, others.0), move || {
                    end_together(places, first, others);
                });
            }
        }
    }
}

/// Calls `first` in the first of the places and `others` in the others, all at the same time.
fn end_together(places: &'static [Place], first: Verb, others: Verb) {
    let timer = Timer::builder().pool(places.len()).build().unwrap();
    let (all, (done, is_done)) = (Arc::new(Barrier::new(places.len())), mpsc::channel());
    for (number, (place, act_in)) in places.iter().enumerate() {
        let (own, all, done) = (timer.clone(), all.clone(), done.clone());
        let verb = if number == 0 { first } else { others };
        let act = move || {
            all.wait();
            let ended = verb.1(&own);
            done.send((*place, ended.unfired.len(), ended.finished, own.is_stopped())).unwrap();
        };
        act_in(&timer, Box::new(act));
    }
    let ended: Vec<_> = is_done.iter().take(places.len()).collect();
    assert!(ended.iter().all(|&(_, unfired, _, stopped)| unfired == 0 && stopped), "{ended:?}");
    // A call outside waits for the callbacks, however the timer is ended.
    assert!(
        ended.iter().all(|&(place, _, finished, _)| finished || place != THREAD.0),
        "{ended:?}"
    );
}

/// Two callbacks shut down: what is pending still runs first, on the third thread of the pool.
#[test]
fn together_they_wait_for_what_is_pending() {
    within(|| {
        let timer = Timer::builder().pool(3).build().unwrap();
        let (both, (done, is_done)) = (Arc::new(Barrier::new(2)), mpsc::channel());
        let late = timer.schedule(50 * MS, |_| ()).unwrap();
        for _ in 0..2 {
            let (both, done) = (both.clone(), done.clone());
            let shut_down = move |timer: &Timer| {
                both.wait();
                done.send(timer.shutdown_within(HOUR).unfired.len()).unwrap();
            };
            timer.schedule(MS, move |context| shut_down(&context.timer())).unwrap();
        }
        assert_eq!([is_done.recv(), is_done.recv()], [Ok(0), Ok(0)]);
        assert!(late.has_started());
    });
}

/// A callback that shuts down inside another callback, whose thread runs the jobs of an executor. Both wait.
#[test]
fn a_shutdown_in_a_nested_callback_counts_for_both() {
    within(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        let jobs = Mutex::new(jobs);
        let executor = move |job| jobs.lock().unwrap().send(job).map_err(|back| back.0);
        let timer = Timer::builder().shards(1).executor(executor).build().unwrap();
        let queue = Arc::new(Mutex::new(queue));
        let run_next = move || {
            let job = queue.lock().unwrap().recv().unwrap();
            job.run();
        };
        let (outer, both) = (Arc::new(Mutex::new(true)), Arc::new(Barrier::new(2)));
        let (done, is_done) = mpsc::channel();
        for _ in 0..3 {
            let (run_next, outer, both) = (run_next.clone(), outer.clone(), both.clone());
            let done = done.clone();
            let act = move |timer: &Timer| {
                if std::mem::take(&mut *outer.lock().unwrap()) {
                    return run_next();
                }
                both.wait();
                done.send(timer.shutdown_within(HOUR).unfired.len()).unwrap();
            };
            timer.schedule(MS, move |context| act(&context.timer())).unwrap();
        }
        (0..2).for_each(|_| drop(thread::spawn(run_next.clone())));
        assert_eq!([is_done.recv(), is_done.recv()], [Ok(0), Ok(0)]);
    });
}
