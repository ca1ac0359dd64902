//! Repeating timers: which runs take place, when, and what ends them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use tourbillon::{Driver, Missed, Repeat, State, Timer, VirtualClock};

use crate::common::{
    Drops, HOUR, Log, MS, PLACES, SECOND, YEAR, accounted, panic_quietly, virtual_on,
};

/// A driven timer on a clock that jumps: only then are runs late.
fn jumping() -> (Timer, Driver, VirtualClock) {
    let clock = VirtualClock::new();
    let (timer, driver) = Timer::builder().clock(&clock).shards(1).build_driven().unwrap();
    (timer, driver, clock)
}

/// Logs the deadline of each run, in milliseconds since the clock began.
fn logging(timer: &Timer, repeat: Repeat, log: &Log<u128>) -> tourbillon::Timeout {
    let (log, begin) = (log.clone(), timer.now());
    timer.repeat(repeat, move |run| log.add((run.deadline() - begin).as_millis())).unwrap()
}

#[test]
fn a_rate_runs_at_every_period_wherever_it_runs() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let log = Log::new();
        logging(&timer, Repeat::every(MS * 250), &log);
        clock.advance(SECOND).unwrap();
        assert_eq!(log.take(), [250, 500, 750, 1000], "{place}");
        logging(&timer, Repeat::every(MS * 400).first(MS * 100), &log);
        clock.advance(SECOND - MS).unwrap();
        let (first, second) = ([100, 500, 900], [250, 500, 750]);
        let mut runs: Vec<_> = log.take();
        // Two timers, and the second one was created a second later.
        runs.sort_unstable();
        let mut expected: Vec<_> = first.into_iter().chain(second.map(|at| at + 1000)).collect();
        expected.sort_unstable();
        assert_eq!(runs, expected, "{place}");
        accounted(&timer);
    }
}

#[test]
fn a_pause_counts_from_the_end_of_a_run() {
    let (timer, mut driver, clock) = jumping();
    let log = Log::new();
    let (times, own) = (log.clone(), clock.clone());
    // Each run takes 30 ms: inside a callback of this engine the clock may not be advanced, but another thread may.
    timer
        .repeat(Repeat::after_each(MS * 100), move |_| {
            times.add(own.elapsed().as_millis());
            let clock = own.clone();
            thread::spawn(move || clock.advance(MS * 30).unwrap()).join().unwrap();
        })
        .unwrap();
    for _ in 0..3 {
        clock.advance(driver.timeout().unwrap()).unwrap();
        assert_eq!(driver.turn().ran, 1);
    }
    assert_eq!(log.take(), [100, 230, 360]);
}

/// Runs what is due until nothing is.
fn run_all(driver: &mut Driver) -> usize {
    let mut ran = 0;
    loop {
        let turn = driver.turn();
        if turn.ran == 0 {
            return ran;
        }
        ran += turn.ran;
    }
}

#[test]
fn what_a_jump_of_the_clock_missed_is_made_up_for_left_out_or_put_off() {
    for (missed, at_once, later) in [
        // From 100 the clock jumps to 1050: the run at 200 is late, those at 300 to 1000 were missed.
        (Missed::Burst, vec![200, 300, 400, 500, 600, 700, 800, 900, 1000], vec![1100, 1200]),
        (Missed::Skip, vec![200], vec![1100, 1200]),
        (Missed::Delay, vec![200], vec![1150, 1250]),
    ] {
        let (timer, mut driver, clock) = jumping();
        let log = Log::new();
        logging(&timer, Repeat::every(MS * 100).missed(missed), &log);
        clock.advance(MS * 100).unwrap();
        assert_eq!((run_all(&mut driver), log.take()), (1, vec![100]), "{missed:?}");
        clock.advance(MS * 950).unwrap();
        run_all(&mut driver);
        assert_eq!(log.take(), at_once, "{missed:?}");
        while clock.elapsed() < MS * 1250 {
            clock.advance(MS * 10).unwrap();
            run_all(&mut driver);
        }
        assert_eq!(log.take(), later, "{missed:?}");
        accounted(&timer);
    }
}

#[test]
fn a_run_that_takes_longer_than_the_period_delays_its_own_timer_alone() {
    let (timer, mut driver, clock) = jumping();
    let (slow, quick) = (Log::new(), Log::new());
    let (log, own) = (slow.clone(), clock.clone());
    timer
        .repeat(Repeat::every(MS * 10).missed(Missed::Skip), move |_| {
            log.add(own.elapsed().as_millis());
            let clock = own.clone();
            thread::spawn(move || clock.advance(MS * 25).unwrap()).join().unwrap();
        })
        .unwrap();
    logging(&timer, Repeat::every(MS * 10), &quick);
    clock.advance(MS * 10).unwrap();
    driver.turn();
    clock.advance(MS * 5).unwrap();
    run_all(&mut driver);
    assert_eq!(slow.take()[..2], [10, 40], "20 and 30 were missed");
    assert_eq!(quick.take()[..3], [10, 20, 30], "and are made up for by the other");
}

#[test]
fn a_rate_does_not_drift_by_a_nanosecond() {
    let (timer, clock) = virtual_on("driver");
    // The period is not a multiple of the tick, and the start is between two ticks.
    clock.advance(Duration::from_nanos(123_457)).unwrap();
    let period = Duration::from_nanos(1_234_567);
    let (begin, runs) = (timer.now(), Arc::new(AtomicU64::new(0)));
    let count = runs.clone();
    timer
        .repeat(Repeat::every(period), move |run| {
            let number = count.fetch_add(1, SeqCst) + 1;
            assert_eq!(run.deadline() - begin, Duration::from_nanos(1_234_567 * number));
            assert!(run.lateness() < MS);
        })
        .unwrap();
    let span = Duration::from_nanos(1_234_567 * 80_000) + MS;
    clock.advance(span).unwrap();
    assert_eq!((runs.load(SeqCst), timer.counts().panicked), (80_000, 0));
}

#[test]
fn nothing_at_all_is_a_tick_and_starves_nobody() {
    for repeat in [Repeat::every(Duration::ZERO), Repeat::after_each(Duration::ZERO)] {
        for place in PLACES {
            let (timer, clock) = virtual_on(place);
            let (restless, calm) = (Log::new(), Log::new());
            logging(&timer, repeat.first(Duration::ZERO), &restless);
            logging(&timer, Repeat::every(MS * 5), &calm);
            clock.advance(MS * 10).unwrap();
            assert_eq!(restless.take(), (0..=10).collect::<Vec<_>>(), "{place}");
            assert_eq!(calm.take(), [5, 10], "{place}");
        }
    }
}

#[test]
fn a_period_shorter_than_a_tick_still_runs_every_time() {
    let (timer, clock) = virtual_on("driver");
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let repeat = Repeat::every(Duration::from_micros(10));
    timer.repeat(repeat, move |_| _ = count.fetch_add(1, SeqCst)).unwrap();
    clock.advance(MS * 10).unwrap();
    assert_eq!(runs.load(SeqCst), 1000);
}

#[test]
fn long_periods_and_the_longest() {
    let (timer, clock) = virtual_on("pool");
    let log = Log::new();
    let days = Repeat::every(HOUR * 25);
    logging(&timer, days, &log);
    let far = logging(&timer, Repeat::every(Duration::MAX), &log);
    let soon = logging(&timer, Repeat::after_each(Duration::MAX).first(SECOND), &log);
    clock.advance(YEAR).unwrap();
    assert_eq!(log.len(), 365 * 24 / 25 + 1);
    assert!(far.is_pending() && soon.is_pending());
    assert!(far.cancel() && soon.cancel());
    accounted(&timer);
}

#[test]
fn a_rhythm_ends_where_time_does() {
    let clock = VirtualClock::new();
    // With the finest tick the end of time can be reached.
    let builder = Timer::builder().clock(&clock).tick(Duration::from_nanos(1)).on_driver();
    let timer = builder.build().unwrap();
    for repeat in [Repeat::every(Duration::MAX), Repeat::after_each(Duration::MAX)] {
        timer.repeat(repeat, |_| ()).unwrap();
    }
    clock.advance(Duration::MAX).unwrap();
    assert_eq!((timer.counts().fired, timer.len()), (2, 0));
    accounted(&timer);
}

#[test]
fn a_panic_ends_it_unless_told_otherwise() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let drops = Drops::new();
        let (one, two) = (drops.one(), drops.one());
        let once = timer.repeat(Repeat::every(SECOND), move |_| {
            let _keep = &one;
            panic_quietly()
        });
        let ever = timer.repeat(Repeat::every(SECOND).survive_panics(), move |_| {
            let _keep = &two;
            panic_quietly()
        });
        clock.advance(SECOND * 4).unwrap();
        assert_eq!(timer.counts().panicked, 1 + 4, "{place}");
        assert_eq!((once.unwrap().state(), drops.count()), (State::Fired, 1), "{place}");
        assert!(ever.unwrap().cancel(), "{place}");
        assert_eq!(drops.count(), 2, "{place}");
        accounted(&timer);
    }
}

#[test]
fn runs_of_one_timer_never_overlap() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).pool(4).build().unwrap();
    let inside = Arc::new(AtomicUsize::new(0));
    let (count, both) = (inside.clone(), Arc::new(Barrier::new(2)));
    let meet = both.clone();
    timer
        .repeat(Repeat::every(MS).missed(Missed::Burst), move |_| {
            assert_eq!(count.fetch_add(1, SeqCst), 0, "another run is inside");
            meet.wait();
            meet.wait();
            count.fetch_sub(1, SeqCst);
        })
        .unwrap();
    let time = {
        let clock = clock.clone();
        thread::spawn(move || clock.advance(MS * 20).unwrap())
    };
    for _ in 0..20 {
        both.wait();
        assert_eq!(inside.load(SeqCst), 1);
        both.wait();
    }
    time.join().unwrap();
    assert_eq!((timer.counts().fired, timer.counts().panicked), (20, 0));
}

/// Repeating timers under load: every run is accounted for, and none is off by a nanosecond.
#[test]
fn rhythms_of_prime_periods_over_a_day() {
    const DAY: u64 = 86_400_000_000_000;
    const RHYTHMS: u64 = 200;
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    let begin = timer.now();
    // Prime periods in nanoseconds, from ten seconds on: two of them coincide at most once a day, and none coincides
    // with the tick.
    let periods: Vec<u64> =
        (0..RHYTHMS).map(|n| next_prime(10_000_000_000 + n * 100_000_000)).collect();
    let timers: Vec<_> = periods
        .iter()
        .map(|&period| {
            let runs = Arc::new(AtomicU64::new(0));
            let count = runs.clone();
            let repeat = Repeat::every(Duration::from_nanos(period));
            let handle = timer.repeat(repeat, move |run| {
                // Relaxed would suffice: runs of one timer never overlap.
                let number = count.fetch_add(1, SeqCst) + 1;
                assert_eq!(run.deadline() - begin, Duration::from_nanos(period * number), "drift");
                assert!(run.lateness() < MS);
            });
            (period, runs, handle.unwrap())
        })
        .collect();
    clock.advance(Duration::from_nanos(DAY)).unwrap();
    let mut all = 0;
    for (period, runs, handle) in timers {
        assert_eq!(runs.load(SeqCst), DAY / period, "{period}");
        all += DAY / period;
        assert!(handle.cancel());
    }
    let counts = timer.counts();
    assert_eq!((counts.fired, counts.panicked), (all, 0));
    assert_eq!((counts.armed, counts.cancelled), (all + RHYTHMS, RHYTHMS), "every arming counts");
    assert!(timer.lateness().max() < MS);
    accounted(&timer);
    println!("{all} runs of {RHYTHMS} timers, none missed, none late by a tick, no drift");
}

fn next_prime(from: u64) -> u64 {
    let is_prime = |n: u64| (2..).take_while(|d| d * d <= n).all(|d| n % d != 0);
    (from..).find(|&n| is_prime(n)).unwrap()
}
