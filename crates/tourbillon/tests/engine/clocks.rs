//! Faulty clocks: they go back, jump and freeze. A timer may be late then, but never early.
//!
//! The clock is set by hand, but the driver is a thread that reads it: these tests wait until it has done so.
//!
//! One test is in real time: its clock runs faster than the system's, and has its own wait.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    HOUR, HandClock, Log, MS, PLACES, SECOND, YEAR, accounted, eventually, running_on,
};
use tourbillon::{Clock, Context, KeyedTimer, Repeat, Sleeper, State, Timer, Unfired};

/// Waits until the driver has read the clock, and has had time for anything that it should not do.
fn let_it_look(clock: &HandClock) {
    (0..3).for_each(|_| clock.await_driver());
}

fn timer_on(clock: &HandClock) -> Timer {
    Timer::builder().clock(clock.clone()).shards(1).on_driver().build().unwrap()
}

/// Logs by how much the clock was before or after the deadline.
fn note(
    log: &Log<(u64, Option<Duration>)>,
    clock: &HandClock,
    name: u64,
    deadline: Instant,
) -> impl FnOnce(&tourbillon::Context<'_>) + Send + 'static {
    let (log, clock) = (log.clone(), clock.clone());
    move |_| log.add((name, clock.read().checked_duration_since(deadline)))
}

#[test]
fn a_clock_that_steps_back_makes_nothing_early() {
    let clock = HandClock::new();
    let timer = timer_on(&clock);
    let log = Log::new();
    timer.schedule(10 * SECOND, note(&log, &clock, 0, clock.read() + 10 * SECOND)).unwrap();
    clock.forward(10 * SECOND);
    eventually(|| log.len() == 1);
    // The wheel's hand is at ten seconds. Now the clock goes back to five.
    clock.back(5 * SECOND);
    for n in 1..=4 {
        let after = SECOND * n;
        timer.schedule(after, note(&log, &clock, n.into(), clock.read() + after)).unwrap();
    }
    let_it_look(&clock);
    assert_eq!(log.len(), 1, "none of them is due");
    for n in 1..=4 {
        clock.forward(SECOND);
        let_it_look(&clock);
        assert!(log.len() <= 1 + n, "only {n} of them are due, {} ran", log.len() - 1);
    }
    clock.forward(HOUR);
    eventually(|| log.len() == 5);
    let early: Vec<_> = log.take().into_iter().filter(|(_, late)| late.is_none()).collect();
    assert_eq!(early, [], "ran before the clock had reached their deadline");
    accounted(&timer);
}

#[test]
fn a_clock_that_goes_back_before_its_beginning_breaks_nothing() {
    let clock = HandClock::new();
    let timer = timer_on(&clock);
    clock.back(HOUR);
    let log = Log::new();
    timer.schedule(SECOND, note(&log, &clock, 0, clock.read() + SECOND)).unwrap();
    let_it_look(&clock);
    assert_eq!(log.len(), 0);
    clock.forward(HOUR + 2 * SECOND);
    eventually(|| log.len() == 1);
    assert!(log.take()[0].1.is_some());
    accounted(&timer);
}

#[test]
fn a_clock_that_jumps_ten_years_fires_all_that_is_due_and_nothing_else() {
    let clock = HandClock::new();
    let timer = timer_on(&clock);
    let log = Log::new();
    let begin = clock.read();
    for n in 0..1000 {
        // Three days apart: more than 8 years in total.
        let after = Duration::from_secs(n * 3 * 86_400);
        timer.schedule(after, note(&log, &clock, n, begin + after)).unwrap();
    }
    let far = timer.schedule(11 * YEAR, |_| ()).unwrap();
    clock.forward(10 * YEAR);
    eventually(|| log.len() == 1000);
    let order: Vec<_> = log.take().into_iter().map(|(n, _)| n).collect();
    assert!(order.is_sorted(), "each in its turn");
    assert!(far.is_pending());
    // The engine still works.
    timer.schedule(5 * MS, note(&log, &clock, 0, clock.read() + 5 * MS)).unwrap();
    let_it_look(&clock);
    assert_eq!(log.len(), 0);
    clock.forward(5 * MS);
    eventually(|| log.len() == 1);
    clock.forward(YEAR);
    eventually(|| !far.is_pending());
    accounted(&timer);
}

#[test]
fn a_clock_that_freezes_fires_nothing_and_stops() {
    let clock = HandClock::new();
    let timer = timer_on(&clock);
    let log = Log::new();
    timer.schedule(MS, note(&log, &clock, 0, clock.read() + MS)).unwrap();
    let_it_look(&clock);
    assert_eq!(log.len(), 0);
    // A zero delay is due on a frozen clock too.
    timer.schedule(Duration::ZERO, note(&log, &clock, 1, clock.read())).unwrap();
    eventually(|| log.len() == 1);
    assert_eq!(crate::common::within(move || timer.stop().len()), 1);
}

/// A clock that runs a hundred thousand times as fast as the real one, with its own wait: by the real clock, the driver
/// would wait an hour.
#[test]
fn a_clock_brings_its_own_wait() {
    const FASTER: u32 = 100_000;
    #[derive(Clone)]
    struct Fast(Instant);
    impl Clock for Fast {
        fn now(&self) -> Instant {
            self.0 + self.0.elapsed() * FASTER
        }
        fn wait(&self, until: Option<Instant>, sleeper: &tourbillon::Sleeper) {
            sleeper.sleep(until.map(|until| until.saturating_duration_since(self.now()) / FASTER));
        }
    }
    let clock = Fast(Instant::now());
    let timer = Timer::builder().clock(clock.clone()).on_driver().build().unwrap();
    let log = Log::new();
    let (told, deadline) = (log.clone(), clock.now() + HOUR);
    timer.schedule_at(deadline, move |_| told.add(clock.now())).unwrap();
    eventually(|| log.len() == 1);
    assert!(log.take()[0] >= deadline);
}

/// A user-defined clock that logs the instants for which it is asked to wait.
struct Asked(Log<Option<Instant>>);

impl Clock for Asked {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        self.0.add(until);
        sleeper.sleep(until.map(|until| until.saturating_duration_since(Instant::now())));
    }
}

#[test]
fn with_nothing_pending_a_clock_waits_for_no_moment() {
    let asked = Log::new();
    let timer = Timer::builder().clock(Asked(asked.clone())).on_driver().build().unwrap();
    timer.start().unwrap();
    eventually(|| asked.len() > 0);
    let handle = timer.schedule(HOUR, |_| ()).unwrap();
    eventually(|| asked.len() > 1);
    let deadline = handle.deadline().expect("it is pending");
    let waits = asked.take();
    assert_eq!(waits[0], None, "nothing is pending");
    assert!(waits[1].is_some_and(|until| until >= deadline && until < deadline + SECOND));
}

/// Arms a callback of one kind, a second from now.
type Arms = fn(&Timer, Box<dyn Fn(&Context<'_>) + Send>);

const KINDS: [(&str, Arms); 7] = [
    ("Timer::schedule", |timer, run| _ = timer.schedule(SECOND, move |now| run(now)).unwrap()),
    ("Timer::arm", |timer, run| _ = timer.arm(SECOND, move |now| run(now)).unwrap()),
    ("Timer::schedule_repeating", |timer, run| _ = timer.schedule_repeating(SECOND, run).unwrap()),
    ("Timer::repeat", |timer, run| {
        timer.repeat(Repeat::every(YEAR).first(SECOND), run).unwrap();
    }),
    ("Repeat::survive_panics", |timer, run| {
        timer.repeat(Repeat::every(YEAR).first(SECOND).survive_panics(), run).unwrap();
    }),
    ("KeyedTimer::schedule", |timer, run| {
        let keyed = KeyedTimer::new(timer);
        keyed.schedule(1, SECOND, move |now| run(now)).unwrap();
        // Dropping its last clone would drop the timer.
        std::mem::forget(keyed);
    }),
    ("Timeout::reschedule", |timer, run| {
        let timeout = timer.schedule(HOUR, move |now| run(now)).unwrap();
        timeout.reschedule(SECOND).unwrap();
    }),
];

/// The answers of a context are those from the start of the callback, however late it asks.
#[test]
fn what_a_callback_is_told_stays_so_while_it_runs() {
    for place in PLACES.into_iter().chain(["a driver of the caller's", "by hand, after a stop"]) {
        for (kind, arm) in KINDS {
            let (clock, log) = (HandClock::new(), Log::new());
            let (told, moves) = (log.clone(), clock.clone());
            let run = move |context: &Context<'_>| {
                let ask = || (context.lateness(), context.deadline(), context.key());
                let first = ask();
                moves.forward(HOUR);
                told.add((first, ask()));
            };
            let deadline = clock.read() + SECOND;
            let builder = |place| running_on(place).shards(1).clock(clock.clone());
            // Three seconds late, wherever it runs.
            match place {
                "a driver of the caller's" => {
                    let own = Timer::builder().clock(clock.clone()).build_driven();
                    let (timer, mut driver) = own.unwrap();
                    arm(&timer, Box::new(run));
                    clock.forward(4 * SECOND);
                    assert_eq!(driver.turn().ran, 1, "{kind}");
                }
                "by hand, after a stop" => {
                    let timer = builder("driver").build().unwrap();
                    arm(&timer, Box::new(run));
                    let unfired = timer.stop();
                    clock.forward(4 * SECOND);
                    unfired.into_iter().for_each(Unfired::run);
                }
                place => {
                    let timer = builder(place).build().unwrap();
                    arm(&timer, Box::new(run));
                    clock.forward(4 * SECOND);
                    eventually(|| log.len() == 1);
                }
            }
            let (first, second) = log.take()[0];
            assert_eq!((first.0, first.1), (3 * SECOND, deadline), "{kind}, {place}");
            assert_eq!(first, second, "{kind}, {place}: an hour later");
        }
    }
}

/// With ticks of a nanosecond the end of time is a tick, too. A repeating timer waits there while it runs.
#[test]
fn a_clock_at_the_end_of_time_does_not_start_what_runs() {
    let clock = HandClock::new();
    let builder = Timer::builder().clock(clock.clone()).tick(Duration::from_nanos(1));
    let timer = builder.pool(2).build().unwrap();
    let ((began, begun), (go, gone)) = (mpsc::channel(), mpsc::channel::<()>());
    let repeating = timer.schedule_repeating(Duration::ZERO, move |_| {
        began.send(()).unwrap();
        gone.recv().unwrap();
    });
    let repeating = repeating.unwrap();
    begun.recv().unwrap();
    let (fired, hour) = mpsc::channel();
    timer.arm(HOUR, move |_| fired.send(()).unwrap()).unwrap();
    clock.forward(YEAR * 550);
    hour.recv().unwrap();
    // In real time: by now the other thread of the pool would have started it.
    thread::sleep(MS * 50);
    assert_eq!((timer.counts().fired, timer.counts().pending), (2, 0));
    go.send(()).unwrap();
    eventually(|| repeating.state() == State::Fired);
    assert_eq!((timer.counts().fired, timer.check()), (2, Ok(())));
}
