//! Stop: hands back every timer that did not start, once, with its closure; waits for running callbacks.
//!
//! Some are in real time: they stop the threads of a driver and its workers.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::asleep::spawn_asleep;
use crate::common::{
    Drops, HOUR, Log, MS, PLACES, SECOND, accounted, eventually, running_on, virtual_on, within,
};
use tourbillon::{Context, Job, ScheduleError, StartError, State, Timer};

#[test]
fn stop_hands_back_each_with_its_closure_and_then_refuses() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let (log, drops) = (Log::new(), Drops::new());
        let begin = clock.now();
        let mut keys = Vec::new();
        for n in 0..100_u32 {
            let (log, drop) = (log.clone(), drops.one());
            let run = move |_: &Context<'_>| {
                let _captured = &drop;
                log.add(n);
            };
            match n % 2 {
                0 => keys.push(timer.schedule(SECOND * n, run).unwrap().key()),
                _ => keys.push(timer.arm(SECOND * n, run).unwrap()),
            }
        }
        clock.advance(9 * SECOND).unwrap();
        assert_eq!((log.take().len(), drops.count()), (10, 10));
        let mut unfired = timer.stop();
        unfired.sort_by_key(|timer| timer.deadline());
        let back: Vec<_> = unfired.iter().map(|timer| (timer.key(), timer.deadline())).collect();
        let expected: Vec<_> = (10..100).map(|n| (keys[n as usize], begin + SECOND * n)).collect();
        assert_eq!(back, expected, "{place}");
        assert_eq!(drops.count(), 10, "they are whole");
        unfired.drain(..45).for_each(|timer| timer.run());
        assert_eq!(log.take(), (10..55).collect::<Vec<_>>());
        drop(unfired);
        assert_eq!((log.len(), drops.count()), (0, 100));

        assert!(timer.is_stopped());
        assert_eq!(timer.stop().len(), 0, "a second stop returns nothing");
        assert_eq!(timer.stop_within(SECOND).unfired.len(), 0);
        assert!(matches!(timer.start(), Err(StartError::Stopped)));
        let value = drops.one();
        let refused = timer.schedule(MS, move |_| _ = &value);
        assert!(matches!(refused, Err(ScheduleError::Stopped(_))));
        assert_eq!(drops.count(), 100, "the closure is in the error");
        drop(refused);
        assert_eq!(drops.count(), 101);
        assert!(matches!(timer.arm(MS, |_| ()), Err(ScheduleError::Stopped(_))));
        assert!(timer.schedule_repeating(MS, |_| ()).is_err());
        clock.advance(HOUR).unwrap();
        let counts = timer.counts();
        assert_eq!((counts.armed, counts.fired, counts.handed_back), (100, 10, 90));
        accounted(&timer);
    }
}

/// Real time: a callback that runs while another thread stops the timer.
#[test]
fn stop_waits_for_the_callback_that_runs() {
    for place in PLACES {
        let timer = running_on(place).build().unwrap();
        let (started, wait) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let log = Log::new();
        let told = log.clone();
        let slow = move |_: &Context<'_>| {
            started.send(()).unwrap();
            ended.recv().unwrap();
            told.add("ended");
        };
        let slow = timer.schedule(Duration::ZERO, slow).unwrap();
        let never = timer.schedule(HOUR, |_| unreachable!()).unwrap();
        wait.recv().unwrap();
        assert_eq!(slow.state(), State::Running);
        let (own, seen) = (timer.clone(), log.clone());
        let stopping = spawn_asleep(move || (own.stop().len(), seen.take()));
        assert!(!stopping.is_finished(), "{place}: it waits");
        end.send(()).unwrap();
        assert_eq!(stopping.join().unwrap(), (1, vec!["ended"]), "{place}");
        assert_eq!((slow.state(), never.state()), (State::Fired, State::HandedBack));
        accounted(&timer);
    }
}

/// A thread inside a callback of one timer is outside all other timers. Real time: callbacks of two timers.
#[test]
fn stop_inside_a_callback_waits_for_the_callbacks_of_another_timer() {
    for place in PLACES {
        let [own, other] = [(); 2].map(|()| running_on(place).build().unwrap());
        let (log, (begun, begins), (open, gate)) = (Log::new(), mpsc::channel(), mpsc::channel());
        let told = log.clone();
        let blocks = move |_: &Context<'_>| {
            begun.send(()).unwrap();
            gate.recv().unwrap();
            told.add("ended");
        };
        other.arm(MS, blocks).unwrap();
        begins.recv().unwrap();
        let (told, stopped) = (log.clone(), other.clone());
        let stops = move |_: &Context<'_>| {
            assert!(stopped.stop().is_empty());
            told.add("stopped");
        };
        own.arm(MS, stops).unwrap();
        eventually(|| other.is_stopped());
        thread::sleep(20 * MS);
        open.send(()).unwrap();
        eventually(|| log.len() == 2);
        assert_eq!(log.take(), ["ended", "stopped"], "{place}");
    }
}

/// Real time: a callback that does not end.
#[test]
fn stop_within_waits_no_longer_than_its_limit() {
    for place in PLACES {
        let timer = running_on(place).build().unwrap();
        let (started, wait) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let stuck = move |_: &Context<'_>| {
            started.send(()).unwrap();
            let _ = ended.recv();
        };
        timer.schedule(Duration::ZERO, stuck).unwrap();
        timer.schedule(HOUR, |_| ()).unwrap();
        wait.recv().unwrap();
        let begin = Instant::now();
        let own = timer.clone();
        let stopped = within(move || own.stop_within(30 * MS));
        assert!(begin.elapsed() >= 30 * MS);
        assert_eq!((stopped.unfired.len(), stopped.finished), (1, false), "{place}");
        end.send(()).unwrap();
        let again = timer.stop_within(10 * SECOND);
        assert_eq!((again.unfired.len(), again.finished), (0, true), "{place}");
    }
}

#[test]
fn stop_inside_a_callback_does_not_wait_for_it() {
    for place in PLACES {
        let log = Log::new();
        let told = log.clone();
        within(move || {
            let (timer, clock) = virtual_on(place);
            let run = move |context: &Context<'_>| {
                let timer = context.timer();
                told.add((timer.stop().len(), timer.stop().len()));
                assert!(timer.schedule(MS, |_| ()).is_err());
            };
            timer.schedule(SECOND, run).unwrap();
            (0..10).for_each(|_| _ = timer.arm(HOUR, |_| unreachable!()).unwrap());
            clock.advance(SECOND).unwrap();
            clock.advance(HOUR).unwrap();
            assert!(timer.stop().is_empty());
            accounted(&timer);
        });
        assert_eq!(log.take(), [(10, 0)], "{place}");
    }
}

/// Real time, milliseconds: with the driver's own thread.
#[test]
fn stop_inside_a_callback_does_not_join_its_own_thread() {
    for place in PLACES {
        within(move || {
            let timer = running_on(place).build().unwrap();
            let (done, wait) = mpsc::channel();
            let run = move |context: &Context<'_>| done.send(context.timer().stop().len()).unwrap();
            timer.schedule(HOUR, |_| unreachable!()).unwrap();
            timer.schedule(MS, run).unwrap();
            assert_eq!(wait.recv().unwrap(), 1, "{place}");
            assert!(timer.stop().is_empty(), "and from outside it waits for the rest");
        });
    }
}

/// Real time: two callbacks at once, each of which would wait for the other.
#[test]
fn stop_from_two_callbacks_at_once() {
    within(|| {
        for _ in 0..50 {
            let timer = Timer::builder().pool(2).build().unwrap();
            let both = Arc::new(Barrier::new(2));
            let (done, wait) = mpsc::channel();
            for _ in 0..2 {
                let (both, done) = (both.clone(), done.clone());
                let run = move |context: &Context<'_>| {
                    both.wait();
                    done.send(context.timer().stop().len()).unwrap();
                };
                timer.schedule(MS, run).unwrap();
            }
            timer.schedule(HOUR, |_| ()).unwrap();
            let mut handed_back = [wait.recv().unwrap(), wait.recv().unwrap()];
            handed_back.sort_unstable();
            assert_eq!(handed_back, [0, 1], "once");
            assert!(timer.stop().is_empty());
        }
    });
}

/// Real time. The executor's only thread is inside the callback that stops; the driver waits for room in its queue. A
/// stop that waited for the driver would never return.
#[test]
fn stop_inside_a_callback_while_the_driver_is_blocked_in_the_executor() {
    within(|| {
        let (jobs, queue) = mpsc::sync_channel::<Job>(0);
        thread::spawn(move || queue.into_iter().for_each(Job::run));
        let offers = Arc::new(AtomicUsize::new(0));
        let count = offers.clone();
        let execute = move |job| {
            count.fetch_add(1, SeqCst);
            jobs.send(job).map_err(|back| back.0)
        };
        let timer = Timer::builder().shards(1).executor(execute).build().unwrap();
        let (done, wait) = mpsc::channel();
        let done = Arc::new(Mutex::new(done));
        let at = timer.now() + 20 * MS;
        for _ in 0..10 {
            let (done, offers) = (done.clone(), offers.clone());
            let run = move |context: &Context<'_>| {
                // The first job runs this callback; the driver is blocked while it offers the next.
                eventually(|| offers.load(SeqCst) > 1);
                context.timer().stop();
                let _ = done.lock().unwrap().send(());
            };
            timer.schedule_at(at, run).unwrap();
        }
        wait.recv().unwrap();
        timer.stop();
    });
}

#[test]
fn dropping_the_last_timer_drops_what_is_pending() {
    let (timer, clock) = virtual_on("pool");
    let drops = Drops::new();
    let mut handles = Vec::new();
    for n in 0..10 {
        let drop = drops.one();
        handles.push(timer.schedule(SECOND * n, move |_| _ = &drop).unwrap());
    }
    let clone = timer.clone();
    drop(timer);
    clock.advance(SECOND).unwrap();
    assert_eq!(drops.count(), 2, "a clone is the same timer");
    drop(clone);
    assert_eq!(drops.count(), 10);
    let states: Vec<_> = handles.iter().map(|handle| handle.state()).collect();
    assert_eq!(states[..2], [State::Fired; 2]);
    assert_eq!(states[2..], [State::HandedBack; 8]);
    clock.advance(HOUR).unwrap();
}

/// No lock is held while captured values are dropped: they may use the timer.
#[test]
fn what_is_dropped_may_use_the_timer() {
    struct Uses(Timer, Log<bool>);
    impl Drop for Uses {
        fn drop(&mut self) {
            let armed = self.0.arm(HOUR, |_| ());
            self.1.add(armed.is_ok());
            assert!(armed.is_err() || self.0.cancel(armed.unwrap()));
            self.0.counts();
        }
    }
    within(|| {
        let (timer, clock) = virtual_on("driver");
        let log = Log::new();
        let one = || Uses(timer.clone(), log.clone());
        let (a, b, c, d) = (one(), one(), one(), one());
        timer.schedule(SECOND, move |_| _ = &a).unwrap();
        let cancelled = timer.schedule(SECOND, move |_| _ = &b).unwrap();
        let repeating = timer.schedule_repeating(SECOND, move |_| _ = &c).unwrap();
        timer.schedule(HOUR, move |_| _ = &d).unwrap();
        assert!(cancelled.cancel());
        clock.advance(SECOND).unwrap();
        assert_eq!(log.take(), [true; 3]);
        assert_eq!(repeating.state(), State::Fired);
        drop(timer.stop());
        assert_eq!(log.take(), [false]);
    });
}

/// Real time, milliseconds: on the driver's thread, on the pool's, and on another.
#[test]
fn dropping_the_last_timer_inside_its_callback() {
    for place in PLACES {
        within(move || {
            let timer = running_on(place).build().unwrap();
            let drops = Drops::new();
            let (pending, done) = (drops.one(), drops.one());
            let never = timer.schedule(HOUR, move |_| _ = &pending).unwrap();
            let slot = Arc::new(Mutex::new(None));
            let last = slot.clone();
            let run = move |context: &Context<'_>| {
                let _done = &done;
                let timer = loop {
                    if let Some(timer) = last.lock().unwrap().take() {
                        break timer;
                    }
                };
                drop::<Timer>(timer);
                // A timer obtained from the context now is stopped as well.
                assert!(context.timer().is_stopped());
                assert!(context.timer().schedule(MS, |_| ()).is_err());
            };
            let ran = timer.schedule(MS, run).unwrap();
            *slot.lock().unwrap() = Some(timer);
            eventually(|| ran.state() == State::Fired);
            eventually(|| drops.count() == 2);
            assert_eq!(never.state(), State::HandedBack, "{place}");
        });
    }
}

/// The threads of an engine end with it. Real time, milliseconds.
#[test]
fn a_stopped_timer_leaves_no_thread() {
    for place in PLACES {
        let alive = Arc::new(());
        let count = alive.clone();
        let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
            let alive = count.clone();
            let body = move || {
                body();
                drop(alive);
            };
            thread::Builder::new().name(name).spawn(body).map(|_| ())
        };
        let timer = running_on(place).spawn(spawn).build().unwrap();
        let ran = timer.schedule(MS, |_| ()).unwrap();
        eventually(|| ran.state() == State::Fired);
        assert!(Arc::strong_count(&alive) > 2, "{place}: it has threads");
        timer.stop();
        drop(timer);
        // The engine is dropped with its last handle, and the hook with it.
        drop(ran);
        eventually(|| Arc::strong_count(&alive) == 1);
    }
}
