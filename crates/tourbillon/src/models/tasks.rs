//! A task registers its waker, replaces it, or drops or reschedules its sleep, while time passes or the engine stops.
//!
//! After a lost wake the task waits forever, and loom reports the deadlock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::thread;

use super::{ModelClock, TICK, check, check_to};
use crate::Timer;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::tasks::{Given, Sleep, SleepError};

/// A timer whose time a thread of the model advances.
#[derive(Clone)]
struct Model {
    clock: ModelClock,
    timer: Timer,
}

impl Model {
    fn new() -> Self {
        Model::with_budget(1024)
    }

    fn with_budget(timers: usize) -> Self {
        Model::with(ModelClock::new(), timers)
    }

    fn with(clock: ModelClock, timers: usize) -> Self {
        let builder = Timer::builder().clock(clock.clone()).shards(1).budget(timers).on_driver();
        let builder = builder.spawn(|_, body| {
            thread::spawn(body);
            Ok(())
        });
        Model { clock, timer: builder.build().unwrap() }
    }

    fn sleep(&self, ticks: u32) -> Sleep<Given> {
        self.timer.sleep(TICK * ticks)
    }

    /// Lets time pass: sets the clock and wakes the sleeper.
    fn pass(&self, ticks: u64) {
        self.clock.ticks.store(ticks, SeqCst);
        crate::tasks::Given::on(&self.timer).context().signal.sleeper().wake();
    }

    /// As `pass`, on a thread of its own.
    fn time(&self, ticks: u64) -> thread::JoinHandle<()> {
        let model = self.clone();
        thread::spawn(move || model.pass(ticks))
    }

    /// Whether the engine has seen that `ticks` have passed. Another thread may have told it, while loom still lets
    /// this thread read the clock's old value.
    fn has_passed(&self, ticks: u32) -> bool {
        self.timer.now() >= self.clock.begin + TICK * ticks
    }

    /// Asserts that every sleep has ended in exactly one way.
    fn accounted(&self) {
        let counts = self.timer.counts();
        assert_eq!(counts.armed, counts.fired + counts.cancelled + counts.handed_back);
    }
}

/// A task that waits until it is woken.
#[derive(Clone)]
struct Task(Arc<Notifier>);

struct Notifier {
    notified: Mutex<bool>,
    condvar: Condvar,
}

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        *lock(&self.notified) = true;
        self.condvar.notify_all();
    }
}

impl Task {
    fn new() -> Self {
        Task(Arc::new(Notifier { notified: Mutex::new(false), condvar: Condvar::new() }))
    }

    fn poll(&self, sleep: &mut Sleep<Given>) -> Poll<Result<(), SleepError>> {
        let waker = Waker::from(self.0.clone());
        Pin::new(sleep).poll(&mut Context::from_waker(&waker))
    }

    /// Polls whenever it is woken, as an executor does.
    fn run(&self, sleep: &mut Sleep<Given>) -> Result<(), SleepError> {
        loop {
            if let Poll::Ready(outcome) = self.poll(sleep) {
                return outcome;
            }
            let mut notified = lock(&self.0.notified);
            while !*notified {
                notified = wait(&self.0.condvar, notified, None);
            }
            *notified = false;
        }
    }
}

/// The deadline passes while the task registers.
#[test]
fn a_task_that_registers_is_woken() {
    check_to(2, || {
        let model = Model::new();
        let mut sleep = model.sleep(1);
        let time = model.time(1);
        assert_eq!(Task::new().run(&mut sleep), Ok(()));
        assert!(model.has_passed(1), "never early");
        time.join().unwrap();
        model.timer.stop();
        model.accounted();
    });
}

/// The deadline passes while another task takes over the sleep: the other task is woken.
#[test]
fn a_task_that_takes_over_is_woken() {
    check(|| {
        let model = Model::new();
        let mut sleep = model.sleep(1);
        assert!(Task::new().poll(&mut sleep).is_pending());
        let time = model.time(1);
        assert_eq!(Task::new().run(&mut sleep), Ok(()));
        time.join().unwrap();
        model.timer.stop();
    });
}

/// The deadline passes while the sleep is dropped: it was cancelled or fired, and nothing is left of it.
#[test]
fn a_dropped_sleep_leaves_nothing_behind() {
    check(|| {
        let model = Model::new();
        let task = Task::new();
        let mut sleep = model.sleep(1);
        assert!(task.poll(&mut sleep).is_pending());
        let time = model.time(1);
        drop(sleep);
        assert_eq!(model.timer.counts().pending, 0);
        time.join().unwrap();
        model.timer.stop();
        assert_eq!(model.timer.counts().handed_back, 0);
        model.accounted();
        assert_eq!(Arc::strong_count(&task.0), 1, "no waker is left");
    });
}

/// The deadline passes while the sleep is rescheduled to later: the sleep is not ready early, and wakes its task in
/// time.
#[test]
fn a_moved_sleep_is_never_early() {
    check_to(2, || {
        let model = Model::new();
        let task = Task::new();
        let mut sleep = model.sleep(1);
        assert!(task.poll(&mut sleep).is_pending());
        let time = model.time(1);
        sleep.reset(model.clock.begin + TICK * 2);
        if task.poll(&mut sleep).is_ready() {
            assert!(model.has_passed(2), "never early");
        }
        time.join().unwrap();
        model.pass(2);
        assert_eq!(task.run(&mut sleep), Ok(()));
        model.timer.stop();
        model.accounted();
    });
}

/// The hand advances while a sleep is inserted behind it: when the sleep is over, it has left the wheel.
#[test]
fn a_sleep_that_is_over_is_out_of_the_wheel() {
    check_to(2, || {
        let model = Model::new();
        let mut other = model.sleep(1);
        assert!(Task::new().poll(&mut other).is_pending());
        let time = model.time(1);
        let task = Task::new();
        let mut sleep = model.timer.sleep_until(model.clock.begin + TICK);
        let over = (0..3).any(|_| task.poll(&mut sleep).is_ready());
        time.join().unwrap();
        drop(other);
        if over {
            assert_eq!(model.timer.counts().pending, 0);
        }
        drop(sleep);
        model.timer.stop();
        assert_eq!(model.timer.counts().handed_back, 0);
        model.accounted();
    });
}

/// A sleep is inserted behind the hand during a pass that does not claim it. When the sleep is over, it has left the
/// wheel, and does not wake its task needlessly.
#[test]
fn a_sleep_filed_during_a_pass_is_out_of_the_wheel() {
    check_to(2, || {
        let clock = ModelClock { gives_way: true, ..ModelClock::new() };
        let model = Model::with(clock, 1024);
        let mut other = model.sleep(1);
        assert!(Task::new().poll(&mut other).is_pending());
        let time = model.time(1);
        let task = Task::new();
        let mut sleep = model.timer.sleep_until(model.clock.begin + TICK);
        let over = (0..3).any(|_| {
            thread::yield_now();
            task.poll(&mut sleep).is_ready()
        });
        drop(other);
        if over {
            assert_eq!(model.timer.counts().pending, 0);
        }
        drop(sleep);
        time.join().unwrap();
        model.timer.stop();
        model.accounted();
    });
}

/// More timers are due than one pass may claim, and a task that was woken polls between two passes.
#[test]
fn a_task_of_a_pass_that_was_cut_is_not_forgotten() {
    // The first pass may claim either of the two sleeps, so try both.
    for swapped in [false, true] {
        check_to(2, move || {
            let model = Model::with_budget(1);
            let mut pair = [0, 1].map(|_| (Task::new(), model.sleep(1)));
            assert!(pair.iter_mut().all(|(task, sleep)| task.poll(sleep).is_pending()));
            if swapped {
                pair.reverse();
            }
            let [(first, one), (second, two)] = &mut pair;
            model.pass(1);
            assert_eq!(first.run(one), Ok(()));
            let over = second.poll(two).is_ready();
            assert!(!over || model.timer.counts().pending == 0, "what is over is out of the wheel");
            assert_eq!(second.run(two), Ok(()));
            model.timer.stop();
            model.accounted();
        });
    }
}

/// The engine stops while a task registers: the task gets an error, not the end of its sleep.
#[test]
fn a_stop_is_an_error_and_no_hang() {
    check(|| {
        let model = Model::new();
        let mut sleep = model.sleep(1);
        let stop = {
            let model = model.clone();
            thread::spawn(move || drop(model.timer.stop()))
        };
        assert_eq!(Task::new().run(&mut sleep), Err(SleepError::Stopped));
        stop.join().unwrap();
        model.accounted();
    });
}

/// The engine stops during a pass: a task that is not due yet is woken too and gets the error.
#[test]
fn a_stop_during_a_pass_is_told() {
    check_to(2, || {
        let model = Model::new();
        let (mut due, mut later) = (model.sleep(1), model.sleep(9));
        let task = Task::new();
        assert!(task.poll(&mut due).is_pending() && task.poll(&mut later).is_pending());
        model.pass(1);
        model.timer.stop();
        assert_eq!(task.run(&mut later), Err(SleepError::Stopped));
        model.accounted();
    });
}
