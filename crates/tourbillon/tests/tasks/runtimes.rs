//! The same futures on several runtimes, in virtual time, and the few promises that need real time and threads.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use async_executor::{Executor, LocalExecutor};
use futures_lite::future::block_on;
use tourbillon::tasks::{self, Given, Sleep, SleepError};
use tourbillon::{AdvanceError, BootClock, Context, Timer, VirtualClock};

use crate::by_hand::{Task, timer};
use crate::common::asleep::{Tid, await_asleep, spawn_asleep};
use crate::common::{HOUR, Log, MS, SECOND, case, eventually, within};

/// Three tasks with different periods, which log their name and the second.
async fn chorus(
    timer: Timer,
    clock: VirtualClock,
    spawn: impl Fn(std::pin::Pin<Box<dyn Future<Output = ()> + Send>>),
) -> Vec<(u64, u64)> {
    let log = Log::new();
    for voice in [2, 3, 5] {
        let (timer, clock, log) = (timer.clone(), clock.clone(), log.clone());
        spawn(Box::pin(async move {
            for _ in 0..30 / voice {
                timer.sleep(SECOND * voice as u32).await.unwrap();
                log.add((clock.elapsed().as_secs(), voice));
            }
        }));
    }
    timer.sleep(HOUR).await.unwrap();
    let mut all = log.take();
    all.sort_unstable();
    all
}

fn expected() -> Vec<(u64, u64)> {
    let all = (1..=30).flat_map(|second| [2, 3, 5].map(|voice| (second, voice)));
    all.filter(|(second, voice)| second % voice == 0).collect()
}

#[test]
fn auto_advance_on_a_bare_block_on() {
    let (timer, clock) = timer();
    let executor = LocalExecutor::new();
    let spawn = |task| executor.spawn(task).detach();
    let song = executor.run(chorus(timer, clock.clone(), spawn));
    assert_eq!(tasks::block_on(&clock, song).unwrap(), expected());
    assert_eq!(clock.elapsed(), HOUR);
}

#[cfg(feature = "tokio")]
#[test]
fn auto_advance_on_tokio() {
    let (timer, clock) = timer();
    let runtime = tasks::virtual_runtime(&clock).unwrap();
    let song = chorus(timer, clock.clone(), |task| drop(tokio::spawn(task)));
    assert_eq!(runtime.block_on(song), expected());
    assert_eq!(clock.elapsed(), HOUR);
}

/// A step of the clock that wakes no task of the runtime is followed by the next step: before the runtime's own sleep
/// come a callback, the sleep of another thread, and the value of a queue.
#[cfg(feature = "tokio")]
#[test]
fn auto_advance_past_what_is_for_others() {
    within(|| {
        let (timer, clock) = timer();
        let queue = Timer::builder().clock(&clock).queue().unwrap();
        queue.put(SECOND, "a value").unwrap();
        timer.schedule(2 * SECOND, |_| ()).unwrap();
        let elsewhere = timer.sleep(3 * SECOND);
        let thread = thread::spawn(move || block_on(elsewhere));
        eventually(|| timer.len() == 2);
        let runtime = tasks::virtual_runtime(&clock).unwrap();
        runtime.block_on(timer.sleep(4 * SECOND)).unwrap();
        assert_eq!(clock.elapsed(), 4 * SECOND);
        thread.join().unwrap().unwrap();
        // Again, on the same runtime, with only a callback before it.
        timer.schedule(SECOND, |_| ()).unwrap();
        runtime.block_on(timer.sleep(2 * SECOND)).unwrap();
        assert_eq!(clock.elapsed(), 6 * SECOND);
    });
}

/// Tasks on several threads; the test advances, and the wakers were called when the advance returns.
fn on_threads(spawn: impl Fn(std::pin::Pin<Box<dyn Future<Output = ()> + Send>>)) {
    const TASKS: usize = 200;
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    for n in 0..TASKS {
        let (timer, done) = (timer.clone(), done.clone());
        spawn(Box::pin(async move {
            timer.sleep(SECOND + MS * (n % 10) as u32).await.unwrap();
            done.fetch_add(1, SeqCst);
        }));
    }
    eventually(|| timer.len() == TASKS);
    clock.advance(SECOND - MS).unwrap();
    assert_eq!((timer.counts().fired, done.load(SeqCst)), (0, 0));
    clock.advance(10 * MS).unwrap();
    assert_eq!(timer.counts().fired, TASKS as u64, "all wakers were called");
    eventually(|| done.load(SeqCst) == TASKS);
}

#[test]
fn virtual_time_on_tokio_with_several_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    on_threads(|task| drop(runtime.spawn(task)));
}

#[test]
fn virtual_time_on_smol_with_several_threads() {
    let executor: &'static Executor<'static> = Box::leak(Box::new(Executor::new()));
    for _ in 0..4 {
        thread::spawn(|| block_on(executor.run(pending::<()>())));
    }
    on_threads(|task| executor.spawn(task).detach());
}

/// A task polls for the first time while another thread advances the clock past its deadline, once: either the poll is
/// ready, or it is armed early enough for the advance to see it.
#[test]
fn a_first_poll_that_meets_an_advance_is_not_stranded() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().shards(1).clock(&clock).build().unwrap();
    // A watchdog for each hundred rounds: a loaded machine needs long for all of them.
    for _ in 0..30 {
        let (timer, clock) = (timer.clone(), clock.clone());
        within(move || {
            for _ in 0..100 {
                let sleep = timer.sleep(SECOND);
                let start = Arc::new(Barrier::new(2));
                let (clock, go) = (clock.clone(), start.clone());
                let advance = thread::spawn(move || {
                    go.wait();
                    clock.advance(SECOND).unwrap();
                });
                start.wait();
                assert_eq!(block_on(sleep), Ok(()));
                advance.join().unwrap();
            }
        });
    }
}

#[test]
fn block_on_waits_for_others_when_nothing_is_pending() {
    let clock = VirtualClock::new();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let blocked = spawn_asleep(move || tasks::block_on(&clock, receiver));
    sender.send(7).unwrap();
    assert_eq!(within(move || blocked.join().unwrap()), Ok(Ok(7)));
}

#[test]
fn block_on_inside_a_callback_is_an_error() {
    let (timer, clock) = timer();
    let (sender, receiver) = mpsc::channel();
    let inner = clock.clone();
    timer
        .schedule(SECOND, move |context| {
            let sleep = context.timer().sleep(SECOND);
            sender.send(tasks::block_on(&inner, sleep)).unwrap();
        })
        .unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(receiver.recv(), Ok(Err(AdvanceError::InsideCallback)));
    assert_eq!(tasks::block_on(&clock, async { 5 }), Ok(5));
}

/// Real time: one of two workers is blocked until the sleeps of the other are over. A wait for the blocked worker would
/// hang.
#[test]
fn a_blocked_worker_delays_no_other() {
    within(|| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let (release, released) = mpsc::channel::<()>();
        runtime.block_on(async move {
            let (blocks, blocked) = tokio::sync::oneshot::channel();
            // It has slept on the engine, and blocks in the following poll: nothing in the engine waits for it.
            tokio::spawn(async move {
                tasks::sleep(MS).await;
                blocks.send(()).unwrap();
                _ = released.recv();
            });
            blocked.await.unwrap();
            for _ in 0..20 {
                let deadline = Instant::now() + 2 * MS;
                let task = tokio::spawn(async move {
                    tasks::sleep_until(deadline).await;
                    assert!(Instant::now() >= deadline, "never early");
                });
                task.await.unwrap();
            }
            drop(release);
        });
    });
}

/// Real time: callbacks block every thread of the pool, and tasks on the same timer are on time.
#[test]
fn a_pool_full_of_callbacks_delays_no_task() {
    within(|| {
        let timer = Timer::builder().pool(1).budget(4).build().unwrap();
        let (release, wait) = mpsc::channel::<()>();
        let (entered, enter) = mpsc::channel();
        let block = move |_: &Context<'_>| {
            entered.send(()).unwrap();
            _ = wait.recv();
        };
        timer.arm(Duration::ZERO, block).unwrap();
        enter.recv().unwrap();
        // More callbacks than one pass makes ready are queued before the task.
        (0..100).for_each(|_| _ = timer.arm(Duration::ZERO, |_| ()).unwrap());
        assert_eq!(block_on(timer.sleep(10 * MS)), Ok(()));
        assert_eq!(timer.counts().pending, 100, "and none of them has run");
        drop(release);
        eventually(|| timer.is_empty());
    });
}

/// Real time: threads sleep, cancel and reset while others stop the engine.
#[test]
fn a_stop_in_the_midst_of_it() {
    within(|| {
        for round in 0..20 {
            let timer = Timer::builder().build().unwrap();
            let threads: Vec<_> = (0..3)
                .map(|n| {
                    let timer = timer.clone();
                    thread::spawn(move || {
                        let mut random = fastrand::Rng::with_seed(n);
                        loop {
                            let after = Duration::from_micros(random.u64(0..3000));
                            let mut sleep = timer.sleep(after);
                            if random.bool() {
                                let short = Duration::from_micros(100);
                                _ = block_on(timer.timeout(short, &mut sleep));
                                sleep.reset_after(after);
                            }
                            let deadline = sleep.deadline();
                            match block_on(sleep) {
                                Ok(()) => assert!(Instant::now() >= deadline, "never early"),
                                Err(wrong) => return wrong,
                            }
                        }
                    })
                })
                .collect();
            eventually(|| timer.counts().fired > round);
            timer.stop();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), SleepError::Stopped);
            }
            let counts = timer.counts();
            assert_eq!(counts.armed, counts.fired + counts.cancelled + counts.handed_back);
        }
    });
}

/// Real time. Tasks and callbacks have a driver each, and each waits for its own deadline by the clock that they share.
#[test]
fn a_boot_clock_wakes_both_drivers() {
    within(|| {
        let timer = Timer::builder().clock(BootClock).name("both").build().unwrap();
        let mut sleep = timer.sleep(MS * 100);
        assert!(Task::new().poll(&mut sleep).is_pending());
        await_asleep(&Tid::called("both-"));
        let hour = timer.schedule(HOUR, |_| ()).unwrap();
        assert_eq!(block_on(sleep), Ok(()));

        let (sender, received) = mpsc::channel();
        assert!(hour.cancel());
        timer.schedule(MS * 100, move |_| sender.send(()).unwrap()).unwrap();
        await_asleep(&Tid::called("both-"));
        let mut sleep = timer.sleep(HOUR);
        assert!(Task::new().poll(&mut sleep).is_pending());
        received.recv().unwrap();
    });
}

/// Runs a future to its end; whenever it waits, this clock moves.
type Moves = (&'static str, fn(&VirtualClock, Sleep<Given>));

const MOVES: &[Moves] = &[
    ("block_on", |clock, sleep| tasks::block_on(clock, sleep).unwrap().unwrap()),
    #[cfg(feature = "tokio")]
    ("virtual_runtime", |clock, sleep| {
        tasks::virtual_runtime(clock).unwrap().block_on(sleep).unwrap();
    }),
    #[cfg(feature = "tokio")]
    ("a task of a virtual_runtime", |clock, sleep| {
        let runtime = tasks::virtual_runtime(clock).unwrap();
        let task = runtime.spawn(sleep);
        runtime.block_on(task).unwrap().unwrap();
    }),
];

/// Due timers of an engine that an event loop drives do not hold up the clock: nothing turns that loop here. They are
/// due before the sleep ends, when it ends, and already when it begins.
#[test]
fn a_loop_that_nobody_turns_holds_up_no_task() {
    for &(name, run) in MOVES {
        for (due, passed) in [(1, 0), (5, 0), (1, 1), (1, 2)] {
            case(format!("{name}, {due} s, after {passed} s"), move || {
                let (timer, clock) = timer();
                let (turned, mut driver) = Timer::builder().clock(&clock).build_driven().unwrap();
                turned.schedule(SECOND * due, |_| ()).unwrap();
                clock.advance(SECOND * passed).unwrap();
                run(&clock, timer.sleep(SECOND * 5));
                assert_eq!(clock.elapsed(), SECOND * (passed + 5));
                assert_eq!((turned.counts().fired, driver.turn().ran), (0, 1), "it was left alone");
            });
        }
    }
}

/// As on a runtime, for the clock of a pause.
#[cfg(feature = "tokio")]
#[test]
fn a_loop_that_nobody_turns_holds_up_no_pause() {
    within(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let paused = tasks::pause();
            let builder = Timer::builder().clock(paused.clock());
            let (turned, mut driver) = builder.build_driven().unwrap();
            turned.schedule(SECOND, |_| ()).unwrap();
            tasks::sleep(SECOND * 5).await;
            assert_eq!(paused.clock().elapsed(), SECOND * 5);
            assert_eq!((turned.counts().fired, driver.turn().ran), (0, 1), "it was left alone");
        });
    });
}
