//! What a timer says of how much is in it: with callbacks, with sleeping tasks, with a callback that runs and will run
//! again, with all of them, and with none.
//!
//! Every question is asked at every step, so a new question is a new field of [`Said`].

use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use tourbillon::{Repeat, Timer, VirtualClock, tasks};

use crate::common::{HOUR, PLACES, SECOND, YEAR, accounted, case, running_on};

/// The answers of a timer.
#[derive(Debug, PartialEq)]
struct Said {
    len: usize,
    is_empty: bool,
    counted: u64,
    listed: usize,
    filed: usize,
    /// The slots that are shown with nothing in them.
    bare: usize,
    debug: bool,
}

impl Said {
    #[track_caller]
    fn by(timer: &Timer) -> Self {
        accounted(timer);
        let (counted, snapshot) = (timer.counts().pending, timer.snapshot());
        Said {
            len: timer.len(),
            is_empty: timer.is_empty(),
            counted,
            listed: timer.pending().len(),
            filed: snapshot.slots().map(|slot| slot.timers).sum(),
            bare: snapshot.slots().filter(|slot| slot.timers == 0).count(),
            debug: format!("{timer:?}").contains(&format!("pending: {counted},")),
        }
    }

    /// With so many callbacks and tasks that wait.
    fn expected(callbacks: usize, tasks: usize) -> Self {
        let all = callbacks + tasks;
        Said {
            len: all,
            is_empty: all == 0,
            counted: all as u64,
            // Tasks have no keys.
            listed: callbacks,
            filed: all,
            bare: 0,
            debug: true,
        }
    }
}

/// A callback that runs for the first time in a second, until it is told to end, and then waits for a year.
struct Runner {
    begun: mpsc::Receiver<()>,
    end: mpsc::Sender<()>,
}

impl Runner {
    fn new(timer: &Timer) -> Self {
        let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel());
        let run = move |_: &tourbillon::Context<'_>| {
            begins.send(()).unwrap();
            // An error if the test has failed.
            let _ = ends.recv();
        };
        timer.repeat(Repeat::every(YEAR).first(SECOND), run).unwrap();
        Runner { begun, end }
    }

    /// Runs it, and makes the assertion during the run.
    fn run(&self, clock: &VirtualClock, during: impl FnOnce()) {
        let own = clock.clone();
        let time = thread::spawn(move || own.advance(SECOND).unwrap());
        self.begun.recv().unwrap();
        during();
        self.end.send(()).unwrap();
        time.join().unwrap();
    }
}

/// A deadline for the callback or task of this number: each is in a slot of its own, and none is due within an hour.
fn after(number: usize) -> Duration {
    HOUR * (2 + number as u32)
}

fn asleep(timer: &Timer, number: usize) -> tasks::Sleep<tasks::Given> {
    let mut sleep = timer.sleep(after(number));
    let polled =
        Future::poll(std::pin::Pin::new(&mut sleep), &mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Pending);
    sleep
}

fn lives(place: &str, shards: usize, [callbacks, tasks, runners]: [usize; 3]) {
    let clock = VirtualClock::new();
    let timer = running_on(place).shards(shards).clock(&clock).build().unwrap();
    let says = |callbacks, tasks, when: &str| {
        assert_eq!(Said::by(&timer), Said::expected(callbacks, tasks), "{when}");
        timer.shrink();
        assert_eq!(Said::by(&timer), Said::expected(callbacks, tasks), "{when}, after a shrink");
    };
    says(0, 0, "as it is made");
    let keys: Vec<_> = (0..callbacks).map(|n| timer.arm(after(n), |_| ()).unwrap()).collect();
    says(callbacks, 0, "the callbacks are armed");
    let mut sleeps: Vec<_> = (0..tasks).map(|n| asleep(&timer, n)).collect();
    says(callbacks, tasks, "the tasks sleep");
    for ran in 0..runners {
        let runner = Runner::new(&timer);
        says(callbacks + ran + 1, tasks, "one will run");
        runner.run(&clock, || says(callbacks + ran, tasks, "it runs"));
        says(callbacks + ran + 1, tasks, "it has run");
    }
    let waiting = callbacks.saturating_sub(1) + runners;
    keys.first().into_iter().for_each(|&key| assert!(timer.cancel(key)));
    says(waiting, tasks, "a callback is cancelled");
    drop(sleeps.pop());
    let asleep = tasks.saturating_sub(1);
    says(waiting, asleep, "a task sleeps no more");
    // The last callback comes first of those that are left, and the first task.
    keys.last().into_iter().skip(usize::from(callbacks < 2)).for_each(|&key| {
        timer.reschedule(key, SECOND).unwrap();
    });
    let waiting = callbacks.saturating_sub(2) + runners;
    clock.advance(HOUR).unwrap();
    says(waiting, asleep, "a callback has run");
    clock.advance(24 * HOUR).unwrap();
    says(runners, 0, "all but those that repeat have ended");
    timer.stop();
    says(0, 0, "it is stopped");
    drop(sleeps);
    says(0, 0, "no task is left");
}

#[test]
fn a_timer_counts_its_callbacks_and_its_tasks() {
    for place in PLACES {
        for shards in [1, 4] {
            for number in 0..27 {
                let population = [number % 3, number / 3 % 3, number / 9];
                let name =
                    format!("{place}, {shards} shards, callbacks, tasks, runners: {population:?}");
                case(name, move || lives(place, shards, population));
            }
        }
    }
}
