//! After the end no query reports what was pending, however the timer ended and whichever face is asked.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tourbillon::{
    Attempt, Backoff, Cron, DelayQueue, Driver, Engine, KeyedTimer, Purgatory, Repeat, Timer,
    VirtualClock,
};

use crate::common::{HOUR, SECOND, accounted, case};

/// Whether a query reports something as pending.
type Ask = Box<dyn FnMut() -> bool>;

/// Makes something pending, and returns the query.
type Row = (&'static str, fn(&Timer) -> Ask);

const ROWS: &[Row] = &[
    ("Timer::len", |timer| asks(timer, |timer| !timer.is_empty())),
    ("Timer::counts", |timer| asks(timer, |timer| timer.counts().pending > 0)),
    ("Timer::pending", |timer| asks(timer, |timer| !timer.pending().is_empty())),
    ("Timer::snapshot", |timer| asks(timer, |timer| timer.snapshot().slots().count() > 0)),
    ("Timer::snapshot, of a task", |timer| {
        let mut sleep = timer.sleep(HOUR);
        let waker = &mut Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut sleep).poll(waker).is_pending());
        let timer = timer.clone();
        Box::new(move || {
            let _kept = &sleep;
            timer.snapshot().slots().count() > 0
        })
    }),
    ("Timer::deadline", |timer| {
        let (timer, key) = (timer.clone(), timer.arm(HOUR, |_| ()).unwrap());
        Box::new(move || timer.deadline(key).is_some())
    }),
    ("Timer::is_pending", |timer| {
        let (timer, key) = (timer.clone(), timer.arm(HOUR, |_| ()).unwrap());
        Box::new(move || timer.is_pending(key))
    }),
    ("Timeout::deadline", |timer| {
        let timeout = timer.schedule(HOUR, |_| ()).unwrap();
        Box::new(move || timeout.deadline().is_some())
    }),
    ("Timeout::remaining", |timer| {
        let timeout = timer.repeat(Repeat::every(HOUR), |_| ()).unwrap();
        Box::new(move || timeout.remaining().is_some())
    }),
    ("Timeout::is_pending", |timer| {
        let timeout = timer.schedule_repeating(HOUR, |_| ()).unwrap();
        Box::new(move || timeout.is_pending())
    }),
    ("Timeout::wall_deadline", |timer| {
        let timeout = timer.schedule_wall(timer.wall_now() + HOUR, |_| ()).unwrap();
        Box::new(move || timeout.wall_deadline().is_some())
    }),
    ("Timeout::wall_deadline, of a rhythm", |timer| {
        let timeout = timer.schedule_wall_every(timer.wall_now(), HOUR, |_| ()).unwrap();
        Box::new(move || timeout.wall_deadline().is_some())
    }),
    ("Timeout::wall_deadline, of a cron job", |timer| {
        let cron = Cron::parse("@yearly", "UTC").unwrap();
        let timeout = timer.schedule_cron(&cron, |_| ()).unwrap();
        Box::new(move || timeout.wall_deadline().is_some())
    }),
    ("Retry::is_over", |timer| {
        let fails = |_: &Attempt| Err::<(), ()>(());
        let retry = timer.retry(Backoff::new(HOUR), fails).unwrap();
        Box::new(move || !retry.is_over())
    }),
    ("KeyedTimer::len", |timer| keyed(timer, |keyed| !keyed.is_empty())),
    ("KeyedTimer::is_pending", |timer| keyed(timer, |keyed| keyed.is_pending(&1))),
    ("KeyedTimer::deadline", |timer| keyed(timer, |keyed| keyed.deadline(&1).is_some())),
    ("KeyedTimer::deadline, of a retry", |timer| {
        let keyed = KeyedTimer::new(timer);
        keyed.retry(1, Backoff::new(HOUR), |_| Err::<(), ()>(()), |_| ()).unwrap();
        Box::new(move || keyed.deadline(&1).is_some())
    }),
    ("Purgatory::delayed", |timer| purgatory(timer, |purgatory| purgatory.delayed() > 0)),
    ("Purgatory::watched", |timer| purgatory(timer, |purgatory| purgatory.watched() > 0)),
];

fn asks(timer: &Timer, ask: fn(&Timer) -> bool) -> Ask {
    timer.arm(HOUR, |_| ()).unwrap();
    let timer = timer.clone();
    Box::new(move || ask(&timer))
}

fn keyed(timer: &Timer, ask: fn(&KeyedTimer<u32>) -> bool) -> Ask {
    let keyed = KeyedTimer::new(timer);
    keyed.schedule(1, HOUR, |_| ()).unwrap();
    Box::new(move || ask(&keyed))
}

fn purgatory(timer: &Timer, ask: fn(&Purgatory<u32>) -> bool) -> Ask {
    let purgatory = Purgatory::new(timer);
    purgatory.when([1, 2], HOUR, || None::<()>, |_| ()).unwrap();
    Box::new(move || ask(&purgatory))
}

/// How a timer ends. `Some` driver if the engine has no thread of its own.
type End = (&'static str, fn(&Timer, &VirtualClock, &mut Option<Driver>));

const ENDS: [End; 4] = [
    ("stop", |timer, _, _| drop(timer.stop())),
    ("stop_within", |timer, _, _| drop(timer.stop_within(Duration::ZERO))),
    ("stop by a callback", |timer, clock, driver| {
        let own = timer.clone();
        timer.arm(SECOND, move |_| drop(own.stop())).unwrap();
        clock.advance(SECOND).unwrap();
        driver.iter_mut().for_each(|driver| _ = driver.turn());
    }),
    ("drop of the driver", |timer, _, driver| {
        if driver.take().is_none() {
            drop(timer.stop());
        }
    }),
];

#[test]
fn nobody_tells_of_what_was_pending() {
    for &(question, make) in ROWS {
        for (end, ends) in ENDS {
            for driven in [false, true] {
                let whose = if driven { "the caller's driver" } else { "its own driver" };
                case(format!("{question}, {end}, {whose}"), move || {
                    let clock = VirtualClock::new();
                    let builder = Timer::builder().clock(&clock);
                    let (timer, mut driver) = match driven {
                        true => builder.build_driven().map(|it| (it.0, Some(it.1))).unwrap(),
                        false => (builder.build().unwrap(), None),
                    };
                    let mut ask = make(&timer);
                    assert!(ask(), "it is pending");
                    ends(&timer, &clock, &mut driver);
                    assert!(!ask(), "it ended");
                    clock.advance(2 * HOUR).unwrap();
                    assert!(!ask(), "time passes");
                    accounted(&timer);
                });
            }
        }
    }
}

/// Whether the driver asks the event loop to call it again.
type Question = (&'static str, fn(&mut Driver) -> bool);

const LOOP: [Question; 4] = [
    ("Driver::timeout", |driver| driver.timeout().is_some()),
    ("Driver::turn", |driver| driver.turn().next.is_some()),
    ("Driver::turn_within", |driver| driver.turn_within(Duration::ZERO).next.is_some()),
    ("Debug of a driver", |driver| !format!("{driver:?}").contains("timeout: None")),
];

#[test]
fn no_loop_is_told_to_come_again() {
    for (question, ask) in LOOP {
        for (end, ends) in &ENDS[..3] {
            case(format!("{question}, {end}"), move || {
                let clock = VirtualClock::new();
                let (timer, driver) = Timer::builder().clock(&clock).build_driven().unwrap();
                let mut driver = Some(driver);
                let asks = |driver: &mut Option<Driver>| ask(driver.as_mut().unwrap());
                assert!(!asks(&mut driver), "nothing is pending");
                timer.arm(HOUR, |_| ()).unwrap();
                assert!(asks(&mut driver), "it is pending");
                ends(&timer, &clock, &mut driver);
                assert!(!asks(&mut driver), "it ended");
                clock.advance(2 * HOUR).unwrap();
                assert!(!asks(&mut driver), "time passes");
            });
        }
        case(format!("{question}, of an engine"), move || {
            let clock = VirtualClock::new();
            let builder = Timer::builder().clock(&clock);
            let (engine, mut driver) = builder.deliver_driven(|_| ()).unwrap();
            engine.schedule(HOUR, 7).unwrap();
            assert!(ask(&mut driver), "it is pending");
            engine.stop();
            assert!(!ask(&mut driver), "it ended");
        });
    }
}

/// The same for values: an engine, and a queue for threads.
#[test]
fn nobody_tells_of_values_that_were_handed_back() {
    let clock = VirtualClock::new();
    let engine: Engine<u32> = Timer::builder().clock(&clock).deliver(|_| ()).unwrap();
    let key = engine.schedule(HOUR, 7).unwrap();
    let queue: DelayQueue<u32> = Timer::builder().clock(&clock).queue().unwrap();
    let value = queue.put(HOUR, 7).unwrap();
    let ask = || {
        [
            ("Engine::len", !engine.is_empty()),
            ("Engine::pending", !engine.pending().is_empty()),
            ("Engine::snapshot", engine.snapshot().slots().count() > 0),
            ("Engine::deadline", engine.deadline(key).is_some()),
            ("Engine::is_pending", engine.is_pending(key)),
            ("DelayQueue::len", !queue.is_empty()),
            ("DelayQueue::deadline", queue.deadline(value).is_some()),
        ]
    };
    let of = |told: bool| ask().map(|(question, _)| (question, told));
    assert_eq!(ask(), of(true));
    assert_eq!((engine.stop().len(), queue.close().len()), (1, 1));
    assert_eq!(ask(), of(false));
    assert!(!clock.advance_to_next().unwrap(), "the clock knows of nothing");
    clock.advance(2 * HOUR).unwrap();
    assert_eq!(ask(), of(false));
}
