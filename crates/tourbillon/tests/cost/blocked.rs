//! A due timer that cannot run, or a thread that waits for a running callback: whatever waits sleeps until it can
//! continue.
//!
//! In real time: the kernel counts the wake-ups of threads, and a virtual clock has none.

use std::thread;
use std::time::Duration;

use crate::common::jumping::JumpingClock;
use crate::common::{HOUR, MS, PLACES, eventually, running_on};
use crate::meter::{End, Gate, Row, stand};
use tourbillon::{Backoff, BootClock, Builder, Purgatory, Timer, VirtualClock};

const WAKES: u64 = 30;
const TIME: Duration = Duration::from_millis(80);

/// Every thread has a callback that blocks at the gate, and a hundred more are due.
fn all_busy(builder: Builder, threads: usize) -> End {
    let (timer, gate) = (builder.build().unwrap(), Gate::default());
    for _ in 0..threads {
        let gate = gate.clone();
        timer.arm(MS, move |_| gate.pass()).unwrap();
    }
    gate.await_standing(threads);
    (0..100).for_each(|_| _ = timer.arm(MS, |_| ()).unwrap());
    Box::new(move || {
        gate.open();
        eventually(|| timer.counts().fired == 100 + threads as u64);
    })
}

#[test]
fn callbacks_that_block_while_more_are_due() {
    let rows = [
        Row::new("pool of one", WAKES, || all_busy(Timer::builder().pool(1), 1)),
        Row::new("pool of four", WAKES, || all_busy(Timer::builder().pool(4), 4)),
        Row::new("pool of four, eight shards", WAKES, || {
            all_busy(Timer::builder().pool(4).shards(8), 4)
        }),
        Row::new("pool of two, boot clock", WAKES, || {
            all_busy(Timer::builder().pool(2).clock(BootClock), 2)
        }),
        Row::new("pool of two, a clock of the user's", WAKES, || {
            all_busy(Timer::builder().pool(2).clock(JumpingClock::new()), 2)
        }),
        Row::new("driver", WAKES, || all_busy(Timer::builder().on_driver(), 1)),
        Row::new("own executor", WAKES, || all_busy(running_on("own executor"), 1)),
        Row::new("pool of one, and one more is due every 10 ms", WAKES, || {
            let timer = Timer::builder().pool(1).build().unwrap();
            let gate = Gate::default();
            let stand = gate.clone();
            timer.arm(MS, move |_| stand.pass()).unwrap();
            (1..20).for_each(|n| _ = timer.arm(10 * MS * n, |_| ()).unwrap());
            Box::new(move || {
                gate.open();
                drop(timer);
            })
        }),
        Row::new("handler of an engine", WAKES, || {
            let gate = Gate::default();
            let stand = gate.clone();
            let engine = Timer::builder().deliver(move |_| stand.pass()).unwrap();
            engine.schedule(MS, 1).unwrap();
            gate.await_standing(1);
            (0..100).for_each(|n| _ = engine.schedule(MS, n).unwrap());
            Box::new(move || {
                gate.open();
                drop(engine.stop());
            })
        }),
        #[cfg(feature = "tasks")]
        Row::new("waker of a task", WAKES, waker_that_blocks),
    ];
    stand(&rows, TIME);
}

/// The driver for tasks is blocked in a waker, and more sleeps are over.
#[cfg(feature = "tasks")]
fn waker_that_blocks() -> End {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Wake, Waker};
    struct Stands(Gate);
    impl Wake for Stands {
        fn wake(self: Arc<Self>) {
            self.0.pass();
        }
    }
    let (timer, gate) = (Timer::new(), Gate::default());
    let waker = Waker::from(Arc::new(Stands(gate.clone())));
    let mut sleeps: Vec<_> = (0..20).map(|n| timer.sleep(MS * n)).collect();
    for sleep in &mut sleeps {
        _ = Future::poll(Pin::new(sleep), &mut Context::from_waker(&waker));
    }
    gate.await_standing(1);
    Box::new(move || {
        gate.open();
        drop((sleeps, timer));
    })
}

/// A thread waits until the gate is opened.
fn waits(gate: Gate, wait: impl FnOnce() + Send + 'static) -> End {
    let waiting = thread::spawn(wait);
    Box::new(move || {
        gate.open();
        waiting.join().unwrap();
    })
}

/// A callback is blocked at the gate, and another thread stops its timer.
fn stops(builder: Builder, stop: fn(&Timer)) -> End {
    let (timer, gate) = (builder.build().unwrap(), Gate::default());
    let stand = gate.clone();
    timer.arm(MS, move |_| stand.pass()).unwrap();
    gate.await_standing(1);
    waits(gate, move || stop(&timer))
}

/// A condition is blocked at the gate during a check, and another thread ends its operation.
fn ends_what_is_tried(end: fn(&Purgatory<u64>)) -> End {
    let (purgatory, gate) = (Purgatory::new(&Timer::new()), Gate::default());
    let (stand, mut tried) = (gate.clone(), 0);
    let condition = move || {
        // The first two trials are made by the thread that adds it.
        tried += 1;
        if tried == 3 {
            stand.pass();
        }
        None::<()>
    };
    assert!(purgatory.when([1], HOUR, condition, |_| ()).is_ok());
    let checks = purgatory.clone();
    thread::spawn(move || checks.check(&1));
    gate.await_standing(1);
    waits(gate, move || end(&purgatory))
}

#[test]
fn those_who_wait_for_what_runs() {
    let mut rows: Vec<Row> = PLACES
        .iter()
        .flat_map(|place| {
            let stop = |timer: &Timer| drop(timer.stop());
            let stop_within = |timer: &Timer| assert!(timer.stop_within(HOUR).finished);
            [
                Row::new(&format!("stop, {place}"), WAKES, move || stops(running_on(place), stop)),
                Row::new(&format!("stop_within, {place}"), WAKES, move || {
                    stops(running_on(place), stop_within)
                }),
            ]
        })
        .collect();
    rows.extend([
        Row::new("stop of an engine", WAKES, || {
            let gate = Gate::default();
            let stand = gate.clone();
            let engine = Timer::builder().deliver(move |_| stand.pass()).unwrap();
            engine.schedule(MS, ()).unwrap();
            gate.await_standing(1);
            waits(gate, move || drop(engine.stop()))
        }),
        Row::new("cancel_key of a purgatory", WAKES, || {
            ends_what_is_tried(|purgatory| drop(purgatory.cancel_key(&1)))
        }),
        Row::new("stop of a purgatory", WAKES, || {
            ends_what_is_tried(|purgatory| drop(purgatory.stop()))
        }),
        Row::new("wait of a retry", WAKES, || {
            let timer = Timer::new();
            let job = |_: &tourbillon::Attempt| Err::<(), ()>(());
            let retry = timer.retry(Backoff::new(HOUR), job).unwrap();
            let waiting = thread::spawn(move || _ = retry.wait());
            Box::new(move || {
                drop(timer.stop());
                waiting.join().unwrap();
            })
        }),
        // The advance polls every millisecond whether an executor that refused a job accepts it now.
        Row::new("advance of a virtual clock", 2 * TIME.as_millis() as u64, || {
            let (clock, gate) = (VirtualClock::new(), Gate::default());
            let timer = Timer::builder().clock(&clock).build().unwrap();
            let stand = gate.clone();
            timer.arm(MS, move |_| stand.pass()).unwrap();
            waits(gate, move || {
                clock.advance(MS).unwrap();
                drop(timer);
            })
        }),
    ]);
    stand(&rows, TIME);
}

/// A task waits for a thread, on a clock with nothing to advance to: the thread that moves the clock sleeps too.
#[cfg(feature = "tasks")]
fn waits_for_a_thread(sleeps: bool, run: fn(&VirtualClock, Task)) -> End {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let task = async move {
        if sleeps {
            // No clock reaches this deadline.
            let sleep = timer.sleep(Duration::MAX);
            futures_lite::future::or(async { _ = sleep.await }, async { _ = receiver.await }).await;
        } else {
            _ = receiver.await;
        }
    };
    let waiting = thread::spawn(move || run(&clock, Box::pin(task)));
    Box::new(move || {
        sender.send(()).unwrap();
        waiting.join().unwrap();
    })
}

#[cfg(feature = "tasks")]
type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

#[cfg(feature = "tasks")]
#[test]
fn tasks_that_wait_for_a_thread_under_virtual_time() {
    use tourbillon::tasks;
    type Run = fn(&VirtualClock, Task);
    let runs: &[(&str, Run)] = &[
        ("block_on", |clock, task| tasks::block_on(clock, task).unwrap()),
        #[cfg(feature = "tokio")]
        ("virtual_runtime", |clock, task| tasks::virtual_runtime(clock).unwrap().block_on(task)),
        #[cfg(feature = "tokio")]
        ("virtual_runtime, a task of its own", |clock, task| {
            let runtime = tasks::virtual_runtime(clock).unwrap();
            let other = runtime.spawn(task);
            runtime.block_on(other).unwrap();
        }),
    ];
    let rows = runs.iter().flat_map(|&(name, run)| {
        [false, true].map(|sleeps| {
            let name = format!("{name}, something waits for ever: {sleeps}");
            Row::new(&name, WAKES, move || waits_for_a_thread(sleeps, run))
        })
    });
    stand(&rows.collect::<Vec<_>>(), TIME);
}
