//! The clock that includes the time asleep. A test cannot suspend the machine; it can check that the clock is read,
//! waited for and interrupted like any other. All in real time: a test cannot set that clock.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tourbillon::{BootClock, Builder, Engine, Timer};

use crate::common::{HOUR, MS, accounted, within};

#[test]
fn it_runs_as_fast_as_the_other_while_the_machine_is_awake() {
    let timer = Timer::builder().clock(BootClock).build().unwrap();
    // One clock is read before and after the other, so the bounds hold on a slow machine, too.
    let (before, begin, after) = (Instant::now(), timer.now(), Instant::now());
    std::thread::sleep(MS * 50);
    let least = after.elapsed();
    let passed = timer.now() - begin;
    let most = before.elapsed();
    assert!(least <= passed + MS && passed <= most + MS, "{least:?}, {passed:?}, {most:?}");
}

/// The engine's time begins when the engine is built, not when its builder is created: it is never ahead of the
/// system's.
#[test]
fn its_time_begins_with_what_is_made() {
    type Make = (&'static str, fn(Builder) -> Instant);
    const MAKES: [Make; 5] = [
        ("build", |builder| builder.build().unwrap().now()),
        ("build_driven", |builder| builder.build_driven().unwrap().0.now()),
        ("deliver", |builder| builder.deliver::<u8, _>(|_| ()).unwrap().now()),
        ("deliver_driven", |builder| builder.deliver_driven::<u8, _>(|_| ()).unwrap().0.now()),
        ("queue", |builder| builder.queue::<u8>().unwrap().now()),
    ];
    type Set = (&'static str, fn(Builder) -> Builder);
    const CLOCKS: [Set; 2] =
        [("system's", |builder| builder), ("boot", |builder| builder.clock(BootClock))];
    for (clock, set) in CLOCKS {
        for (name, make) in MAKES {
            let builder = set(Timer::builder());
            std::thread::sleep(MS);
            let before = Instant::now();
            let now = make(builder);
            assert!(now >= before && now <= Instant::now(), "{name}, {clock} clock");
        }
    }
}

#[test]
fn timers_are_never_early_and_in_order() {
    let timer = Timer::builder().clock(BootClock).on_driver().build().unwrap();
    let (sender, received) = mpsc::channel();
    // All are armed before the first is due, even on a busy machine.
    let first = timer.now() + MS * 100;
    for after in [40, 10, 30, 20, 0] {
        let (sender, at) = (sender.clone(), first + MS * after);
        timer
            .schedule_at(at, move |run| {
                assert!(run.timer().now() >= at, "never early");
                sender.send(after).unwrap();
            })
            .unwrap();
    }
    let order = within(move || (0..5).map(|_| received.recv().unwrap()).collect::<Vec<_>>());
    assert_eq!(order, [0, 10, 20, 30, 40]);
    assert!(timer.lateness().max() < HOUR, "by the clock that it was armed by");
    assert_eq!(timer.counts().panicked, 0);
}

#[test]
fn an_earlier_timer_wakes_the_driver_and_so_does_a_stop() {
    let timer = Timer::builder().clock(BootClock).build().unwrap();
    let hour = timer.schedule(HOUR, |_| ()).unwrap();
    let far = timer.schedule(Duration::MAX, |_| ()).unwrap();
    for _ in 0..20 {
        // The driver is asleep by now, or about to sleep.
        let (sender, received) = mpsc::channel();
        let began = Instant::now();
        timer.schedule(MS * 2, move |_| sender.send(()).unwrap()).unwrap();
        within(move || received.recv().unwrap());
        assert!(began.elapsed() >= MS * 2);
    }
    assert!(hour.is_pending() && far.is_pending());
    let stopping = timer.clone();
    assert_eq!(within(move || stopping.stop().len()), 2);
    accounted(&timer);
}

#[test]
fn many_threads_wake_it_at_once() {
    let (sender, received) = mpsc::channel();
    let builder = Timer::builder().clock(BootClock);
    let engine: Engine<u32> = builder
        .deliver(move |batch| batch.for_each(|timer| sender.send(timer.value).unwrap()))
        .unwrap();
    let threads: Vec<_> = (0..4_u32)
        .map(|number| {
            let engine = engine.clone();
            std::thread::spawn(move || {
                for n in 0..500_u64 {
                    engine.schedule(Duration::from_micros(n % 7 * 300), number).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let count = within(move || received.into_iter().take(2000).count());
    assert_eq!((count, engine.counts().fired), (2000, 2000));
}
