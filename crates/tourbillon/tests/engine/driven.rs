//! Engines without a thread of their own: turned by the test, on its own thread.
//!
//! Some tests are in real time: they hang if a sleeping loop is not woken.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::{AdvanceError, Driver, Engine, Repeat, ScheduleError, State, Timer, VirtualClock};

use crate::common::asleep::{Tid, await_asleep, spawn_asleep, spawn_known};
use crate::common::{
    self, Drops, HOUR, Log, MS, SECOND, accounted, eventually, panic_quietly, within,
};

fn virtual_driven() -> (Timer, Driver, VirtualClock) {
    let clock = VirtualClock::new();
    let (timer, driver) = Timer::builder().clock(&clock).build_driven().unwrap();
    (timer, driver, clock)
}

/// Counts how often the loop was woken.
fn counted(driver: &mut Driver) -> Arc<AtomicUsize> {
    let wakes = Arc::new(AtomicUsize::new(0));
    let count = wakes.clone();
    driver.on_wake(move || _ = count.fetch_add(1, SeqCst));
    wakes
}

#[test]
fn a_turn_runs_what_is_due_here_and_says_when_to_come_again() {
    let (timer, mut driver, clock) = virtual_driven();
    let (log, here) = (Log::new(), thread::current().id());
    for n in [3, 1, 2] {
        let log = log.clone();
        let run = move |_: &tourbillon::Context<'_>| log.add((n, thread::current().id() == here));
        timer.schedule(SECOND * n, run).unwrap();
    }
    let first = driver.turn();
    assert_eq!((first.ran, first.next), (0, Some(timer.now() + SECOND)));
    clock.advance(SECOND * 2).unwrap();
    assert_eq!(log.len(), 0, "the clock runs nothing");
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    let second = driver.turn();
    assert_eq!((second.ran, second.next), (2, Some(timer.now() + SECOND)));
    assert_eq!(log.take(), [(1, true), (2, true)]);
    clock.advance(SECOND).unwrap();
    let last = driver.turn();
    assert_eq!((last.ran, last.next, driver.timeout()), (1, None, None));
    accounted(&timer);
}

#[test]
fn a_turn_is_bounded_by_the_budget() {
    let clock = VirtualClock::new();
    let builder = Timer::builder().clock(&clock).shards(1).budget(10);
    let (timer, mut driver) = builder.build_driven().unwrap();
    for _ in 0..25 {
        timer.arm(SECOND, |_| ()).unwrap();
    }
    clock.advance(SECOND).unwrap();
    let mut turns = Vec::new();
    loop {
        let turn = driver.turn();
        turns.push(turn.ran);
        match turn.next {
            Some(next) => assert!(next <= timer.now(), "at once"),
            None => break,
        }
    }
    assert_eq!(turns.iter().sum::<usize>(), 25);
    assert!(turns.iter().all(|&ran| ran <= 10), "{turns:?}");
}

#[test]
fn turn_within_lets_virtual_time_pass() {
    let (timer, mut driver, clock) = virtual_driven();
    // Another engine on the same clock, with an earlier deadline at which it arms a timer here.
    let other = Timer::builder().clock(&clock).build().unwrap();
    let (log, own) = (Log::new(), timer.clone());
    let seen = log.clone();
    other
        .schedule(SECOND, move |_| {
            own.schedule(SECOND, move |run| seen.add(run.lateness())).unwrap();
        })
        .unwrap();
    timer.schedule(SECOND * 10, |_| ()).unwrap();
    assert_eq!(driver.turn_within(HOUR).ran, 1);
    assert_eq!((clock.elapsed(), log.take()), (SECOND * 2, vec![Duration::ZERO]));
    assert_eq!(driver.turn_within(SECOND * 3).ran, 0, "the limit");
    assert_eq!(clock.elapsed(), SECOND * 5);
    assert_eq!(driver.turn_within(HOUR).ran, 1);
    assert_eq!(clock.elapsed(), SECOND * 10);
    assert_eq!(driver.turn_within(HOUR).ran, 0);
    assert_eq!(clock.elapsed(), HOUR + SECOND * 10, "nothing is pending: the limit passes");
}

#[test]
fn the_loop_is_woken_for_an_earlier_timer_and_no_other() {
    let (timer, mut driver, _clock) = virtual_driven();
    let wakes = counted(&mut driver);
    timer.schedule(SECOND * 10, |_| ()).unwrap();
    timer.schedule(SECOND * 5, |_| ()).unwrap();
    assert_eq!(wakes.load(SeqCst), 1, "once between two turns");
    driver.turn();
    let handle = timer.schedule(SECOND * 7, |_| ()).unwrap();
    handle.reschedule(SECOND * 6).unwrap();
    assert_eq!(wakes.load(SeqCst), 1, "not earlier than what the turn said");
    handle.reschedule(SECOND * 4).unwrap();
    assert_eq!(wakes.load(SeqCst), 2);
    driver.turn();
    handle.cancel();
    assert_eq!(wakes.load(SeqCst), 2, "a cancel wakes nobody");
    timer.stop();
    assert_eq!(wakes.load(SeqCst), 3, "a stop does");
    assert!(driver.is_stopped() && driver.turn().next.is_none());
}

#[test]
fn a_look_at_the_timeout_does_not_have_the_loop_woken_again() {
    let (timer, mut driver, _clock) = virtual_driven();
    let wakes = counted(&mut driver);
    timer.schedule(SECOND * 60, |_| ()).unwrap();
    assert_eq!(driver.timeout(), Some(SECOND * 60));
    timer.schedule(SECOND * 50, |_| ()).unwrap();
    assert_eq!(format!("{driver:?}"), "Driver { timeout: Some(50s), .. }");
    timer.schedule(SECOND * 40, |_| ()).unwrap();
    assert_eq!(wakes.load(SeqCst), 1, "no turn since");
}

#[test]
fn what_wakes_the_loop_goes_with_the_driver() {
    let (timer, mut driver, _clock) = virtual_driven();
    // The hook holds the timer, which holds the hook.
    let (drops, own) = (Drops::new(), timer.clone());
    let held = (drops.one(), common::PanicsWhenDropped);
    driver.on_wake(move || _ = (own.len(), &held));
    timer.schedule(SECOND, |_| ()).unwrap();
    drop(driver);
    assert_eq!(drops.count(), 1);
    assert_eq!(timer.counts().panicked, 1, "the panic of its drop is contained");
    accounted(&timer);
}

#[test]
fn a_virtual_clock_sees_the_timers_and_leaves_them_to_the_loop() {
    let (timer, mut driver, clock) = virtual_driven();
    let log = Log::new();
    for n in [0, 1, 3] {
        let log = log.clone();
        timer.schedule(SECOND * n, move |run| log.add((n, run.lateness()))).unwrap();
    }
    let mut ran = 0;
    while clock.advance_to_next().unwrap() {
        ran += driver.turn().ran;
    }
    assert_eq!((ran, clock.elapsed()), (3, SECOND * 3));
    let on_time = [0, 1, 3].map(|n| (n, Duration::ZERO));
    assert_eq!(log.take(), on_time);

    // A timer that waits for its loop holds up neither an advance nor another loop.
    let (_other, mut other) = Timer::builder().clock(&clock).build_driven().unwrap();
    timer.schedule(SECOND, |_| ()).unwrap();
    within(move || {
        assert_eq!(other.turn_within(SECOND * 10).ran, 0);
        clock.advance(SECOND * 10).unwrap();
        assert_eq!((clock.advance_to_next(), clock.elapsed()), (Ok(true), SECOND * 23));
    });
    assert_eq!(driver.turn().ran, 1);
}

#[test]
fn loops_on_one_virtual_clock_do_not_push_it_past_each_other() {
    let clock = VirtualClock::new();
    // A slow callback of another engine on the clock: all loops wait for it, and then continue.
    let other = Timer::builder().clock(&clock).build().unwrap();
    let (release, released) = mpsc::channel::<()>();
    other.schedule(SECOND / 2, move |_| released.recv().unwrap()).unwrap();
    let ready = Arc::new(std::sync::Barrier::new(4));
    let loops: Vec<_> = (0..4)
        .map(|_| {
            let (clock, ready) = (clock.clone(), ready.clone());
            spawn_known(move || {
                let (timer, mut driver) = Timer::builder().clock(&clock).build_driven().unwrap();
                timer.schedule(SECOND, |_| ()).unwrap();
                ready.wait();
                while driver.turn_within(HOUR).ran == 0 {}
                timer.lateness().max()
            })
        })
        .collect();
    let (tids, loops): (Vec<_>, Vec<_>) = loops.into_iter().unzip();
    await_asleep(&tids);
    release.send(()).unwrap();
    let late = within(move || loops.into_iter().map(|one| one.join().unwrap()).max());
    assert!(late < Some(MS), "{late:?}");
    assert_eq!(clock.elapsed(), SECOND);
}

#[test]
fn what_wakes_the_loop_may_do_anything() {
    let clock = VirtualClock::new();
    let (reports, panics) = mpsc::channel();
    let builder = Timer::builder().clock(&clock).on_panic(move |_| reports.send(()).unwrap());
    let (timer, mut driver) = builder.build_driven().unwrap();
    let own = timer.clone();
    // The hook uses the timer, so no lock may be held. And it panics: that is contained.
    driver.on_wake(move || {
        own.schedule(Duration::ZERO, |_| ()).unwrap();
        assert_eq!(own.pending().len(), 2);
        panic_quietly()
    });
    timer.schedule(SECOND, |_| ()).unwrap();
    assert!(panics.try_recv().is_ok());
    assert_eq!((timer.counts().panicked, timer.len()), (1, 2));
    clock.advance(SECOND).unwrap();
    assert_eq!(driver.turn().ran, 2);
}

#[test]
fn no_wake_is_lost_between_a_turn_and_the_sleep() {
    // Real time, with a loop that sleeps until it is woken: a lost wake-up is a hang.
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let (tell, told) = mpsc::channel();
    driver.on_wake(move || _ = tell.send(()));
    let loop_thread = thread::spawn(move || {
        let mut ran = 0;
        while ran < 400 {
            ran += driver.turn().ran;
            match driver.timeout() {
                Some(Duration::ZERO) => {}
                Some(timeout) => _ = told.recv_timeout(timeout),
                None if ran < 400 => _ = told.recv(),
                None => {}
            }
        }
        driver
    });
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let timer = timer.clone();
            thread::spawn(move || {
                for n in 0..200_u64 {
                    let (done, wait) = mpsc::channel();
                    let after = Duration::from_micros(n % 5 * 200);
                    timer.schedule(after, move |_| done.send(()).unwrap()).unwrap();
                    wait.recv().unwrap();
                }
            })
        })
        .collect();
    within(move || threads.into_iter().for_each(|thread| thread.join().unwrap()));
    drop(within(move || loop_thread.join().unwrap()));
    assert_eq!(timer.counts().fired, 400);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_descriptor_is_readable_when_the_loop_should_turn() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let readable = |bell: &tourbillon::WakeFd| {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&at_once)).unwrap() == 1
    };
    let (timer, mut driver, clock) = virtual_driven();
    let bell = driver.wake_fd().unwrap();
    assert!(!readable(&bell));
    for _ in 0..3 {
        timer.schedule(SECOND, |_| ()).unwrap();
        assert!(readable(&bell), "there is one, where there was none");
        assert!(readable(&driver.wake_fd().unwrap()), "the same one each time");
        driver.turn();
        assert!(!readable(&bell), "a turn makes it silent");
        timer.schedule(HOUR, |_| ()).unwrap();
        assert!(!readable(&bell));
        clock.advance(HOUR).unwrap();
        assert_eq!(driver.turn().ran, 2);
    }
    // Replaced by a closure.
    let wakes = counted(&mut driver);
    timer.schedule(SECOND, |_| ()).unwrap();
    assert_eq!((wakes.load(SeqCst), readable(&bell)), (1, false));
    let new = driver.wake_fd().unwrap();
    assert!(!readable(&new), "a new one, which was not rung");
    drop(timer);
    assert!(readable(&new), "the timer was stopped");
    drop(driver);
    assert!(readable(&new), "it outlives the driver");
}

#[test]
fn turn_within_waits_in_real_time_and_is_woken() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let began = Instant::now();
    assert_eq!(driver.turn_within(MS * 20).ran, 0);
    assert!(began.elapsed() >= MS * 20, "nothing was due");
    timer.schedule(HOUR, |_| ()).unwrap();
    let turning = spawn_asleep(move || (driver.turn_within(HOUR), driver));
    timer.schedule(MS, |_| ()).unwrap();
    let (turn, mut driver) = within(move || turning.join().unwrap());
    assert_eq!(turn.ran, 1, "woken for an earlier one");
    let turning = spawn_asleep(move || (driver.turn_within(HOUR), driver));
    timer.stop();
    let (turn, _driver) = within(move || turning.join().unwrap());
    assert_eq!(turn.ran, 0, "woken by the stop");
}

#[test]
fn a_driver_that_is_dropped_stops_its_timer() {
    let (timer, driver, clock) = virtual_driven();
    let drops = Drops::new();
    let held = drops.one();
    let handle = timer.schedule(SECOND, move |_| drop(held)).unwrap();
    drop(driver);
    assert_eq!((drops.count(), handle.state()), (1, State::HandedBack));
    assert!(timer.is_stopped());
    assert!(matches!(timer.schedule(SECOND, |_| ()), Err(ScheduleError::Stopped(_))));
    clock.advance(HOUR).unwrap();
    assert_eq!(timer.counts().handed_back, 1);
    accounted(&timer);
}

#[test]
fn the_last_clone_that_is_dropped_stops_it_too() {
    let (timer, mut driver, _clock) = virtual_driven();
    let drops = Drops::new();
    let held = drops.one();
    timer.schedule(SECOND, move |_| drop(held)).unwrap();
    drop(timer);
    assert_eq!(drops.count(), 1);
    assert!(driver.is_stopped());
    assert_eq!(driver.turn_within(HOUR).ran, 0, "it does not wait for what never comes");
}

#[test]
fn stop_hands_back_and_cancel_is_exact_until_the_start() {
    let (timer, mut driver, clock) = virtual_driven();
    let log = Log::new();
    let second = Arc::new(std::sync::OnceLock::<tourbillon::Timeout>::new());
    let (cancels, seen) = (second.clone(), log.clone());
    timer.schedule(SECOND, move |_| seen.add(cancels.get().unwrap().cancel())).unwrap();
    second.set(timer.schedule(SECOND, |_| unreachable!("cancelled")).unwrap()).unwrap();
    let repeating = timer.repeat(Repeat::every(SECOND), |_| ()).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(driver.turn().ran, 2);
    assert_eq!(log.take(), [true], "it was due, and not yet started");
    assert_eq!((timer.stop().len(), repeating.state()), (1, State::HandedBack));
    assert_eq!((driver.turn().ran, driver.turn().next), (0, None));
    accounted(&timer);
}

#[test]
fn a_stop_from_another_thread_waits_for_the_turn() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let (begun, wait) = mpsc::channel();
    let (known, stops) = mpsc::channel::<Tid>();
    let (ended, log) = (Log::new(), Log::new());
    let end = ended.clone();
    timer
        .schedule(Duration::ZERO, move |_| {
            begun.send(()).unwrap();
            await_asleep(&[stops.recv().unwrap()]);
            end.add(());
        })
        .unwrap();
    let stopped = log.clone();
    let stopper = thread::spawn(move || {
        wait.recv().unwrap();
        known.send(Tid::own()).unwrap();
        timer.stop();
        stopped.add(ended.len());
    });
    eventually(|| driver.turn().ran == 1);
    stopper.join().unwrap();
    assert_eq!(log.take(), [1]);
}

#[test]
fn callbacks_run_where_it_is_turned_and_nowhere_else() {
    // Elsewhere they would run after the turn, so the turn could not count them, nor could a clock wait for them.
    let pool = Timer::builder().pool(2).build_driven().unwrap_err();
    assert_eq!((pool.setting(), pool.value()), ("pool", "2"));
    let executor = Timer::builder().executor(common::one_thread()).build_driven().unwrap_err();
    assert_eq!(executor.setting(), "executor");
    assert!(Timer::builder().on_driver().build_driven().is_ok());
}

#[test]
fn panics_are_contained() {
    let (timer, mut driver, clock) = virtual_driven();
    timer.schedule(SECOND, |_| panic_quietly()).unwrap();
    timer.schedule(SECOND, |_| ()).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!((driver.turn().ran, timer.counts().panicked), (2, 1));
}

/// Setting the wall clock wakes the loop before the setting is complete.
#[test]
fn what_wakes_the_loop_cannot_advance_the_clock_that_tells_it() {
    within(|| {
        let (timer, mut driver, clock) = virtual_driven();
        timer.schedule_wall(clock.wall_now() + HOUR, |_| ()).unwrap();
        driver.turn();
        let (log, own) = (Log::new(), clock.clone());
        let told = log.clone();
        driver.on_wake(move || told.add(own.advance(MS)));
        clock.set_wall(clock.wall_now() + HOUR).unwrap();
        assert_eq!(log.take(), [Err(AdvanceError::InsideCallback)]);
        assert_eq!(driver.turn().ran, 1);
    });
}

#[test]
fn a_callback_cannot_advance_the_clock_that_runs_it() {
    let (timer, mut driver, clock) = virtual_driven();
    let (log, own) = (Log::new(), clock.clone());
    let seen = log.clone();
    timer.schedule(SECOND, move |_| seen.add(own.advance(SECOND))).unwrap();
    driver.turn_within(HOUR);
    assert_eq!(log.take(), [Err(AdvanceError::InsideCallback)]);
}

#[test]
fn values_without_closures() {
    let clock = VirtualClock::new();
    let log = Log::new();
    let batches = log.clone();
    let builder = Timer::builder().clock(&clock).shards(1);
    let (engine, mut driver): (Engine<u32>, _) = builder
        .deliver_driven(move |batch| {
            batches.add(batch.map(|timer| timer.value).collect::<Vec<_>>());
        })
        .unwrap();
    for n in [1, 2, 3] {
        engine.schedule(SECOND, n).unwrap();
    }
    let late = engine.schedule(HOUR, 4).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(driver.turn().ran, 3);
    assert_eq!(log.take(), [[1, 2, 3]]);
    assert!(engine.is_pending(late));
    drop(driver);
    assert!(engine.is_stopped() && engine.is_empty());
    assert_eq!(engine.counts().handed_back, 1);
    assert!(Timer::builder().pool(2).deliver_driven(|_: tourbillon::Batch<'_, ()>| ()).is_err());
}

#[test]
fn a_turn_counts_what_ran_on_every_shard() {
    let clock = VirtualClock::new();
    let builder = Timer::builder().clock(&clock).shards(4);
    let (timer, mut driver) = builder.build_driven().unwrap();
    for _ in 0..8 {
        let timer = timer.clone();
        thread::spawn(move || timer.arm(MS, |_| ()).unwrap()).join().unwrap();
    }
    clock.advance(SECOND).unwrap();
    assert_eq!(driver.turn().ran, 8);
    accounted(&timer);
}

#[test]
fn a_loop_is_told_to_come_at_the_tick_and_not_at_the_deadline() {
    let clock = VirtualClock::new();
    let builder = Timer::builder().clock(&clock).tick(SECOND);
    let (timer, mut driver) = builder.build_driven().unwrap();
    timer.arm(SECOND + 300 * MS, |_| ()).unwrap();
    assert_eq!(driver.timeout(), Some(2 * SECOND));
    clock.advance(2 * SECOND).unwrap();
    assert_eq!(driver.turn().ran, 1);
}

/// A callback turns an engine on another clock, so that engine's callback runs inside both.
#[test]
fn an_advance_is_refused_in_a_callback_of_a_loop_that_a_callback_turns() {
    within(|| {
        let clock = VirtualClock::new();
        let outer = Timer::builder().clock(&clock).on_driver().build().unwrap();
        let (inner, mut driver, inner_clock) = virtual_driven();
        let (log, own) = (Log::new(), clock.clone());
        let told = log.clone();
        inner.schedule(SECOND, move |_| told.add(own.advance(SECOND))).unwrap();
        inner_clock.advance(SECOND).unwrap();
        outer.schedule(SECOND, move |_| _ = driver.turn()).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!(log.take(), [Err(AdvanceError::InsideCallback)]);
    });
}
