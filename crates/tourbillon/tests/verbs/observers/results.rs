//! What is told of the outcome of a computation, of a retry, and of the timer of a key, until it was taken and after.

use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use tourbillon::{Attempt, Backoff, KeyedTimer, NoResult, Retried, Retry, Scheduled, State, Timer};

use super::{clock_at_an_hour, since};
use crate::common::{HOUR, MS, PLACES, SECOND, case, panic_quietly, virtual_on};

/// Polls it once.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[track_caller]
fn scheduled(result: &Scheduled<u32>, when: &str, is_over: bool, state: State) {
    let ask = || (result.is_over(), result.timeout().state(), format!("{result:?}"));
    let debug = format!("Scheduled {{ is_over: {is_over}, .. }}");
    assert_eq!(ask(), (is_over, state, debug), "{when}");
    let handle = result.timeout();
    let started = matches!(state, State::Running | State::Fired);
    assert_eq!((handle.has_started(), handle.is_pending()), (started, state == State::Pending));
}

/// How a computation ends, what it says then, and its result.
type Computed = (&'static str, fn(&Timer, &Scheduled<u32>), State, Result<u32, NoResult>);

/// It is due in a second.
const COMPUTED: [Computed; 6] = [
    ("it returns", |_, _| (), State::Fired, Ok(7)),
    ("it panics", |_, _| (), State::Fired, Err(NoResult::Panicked)),
    (
        "it is cancelled",
        |_, result| assert!(result.timeout().cancel()),
        State::Cancelled,
        Err(NoResult::Cancelled),
    ),
    (
        "it is cancelled by its key",
        |timer, result| assert!(timer.cancel(result.timeout().key())),
        State::Cancelled,
        Err(NoResult::Cancelled),
    ),
    ("it is stopped", |timer, _| drop(timer.stop()), State::HandedBack, Err(NoResult::Stopped)),
    (
        "its engine is shut down",
        |timer, _| drop(timer.shutdown_within(Duration::ZERO)),
        State::HandedBack,
        Err(NoResult::Stopped),
    ),
];

#[test]
fn a_computation_is_over_when_its_result_is_known_and_ever_after() {
    for place in PLACES {
        for (way, end, ended, expected) in COMPUTED {
            case(format!("{way}, on the {place}"), move || {
                let (timer, clock) = virtual_on(place);
                let ((begins, begun), (go, goes)) = (mpsc::channel(), mpsc::channel());
                let run = move |_: &tourbillon::Context<'_>| {
                    begins.send(()).unwrap();
                    goes.recv().unwrap();
                    if expected.is_err() { panic_quietly() } else { 7 }
                };
                let mut result = timer.compute(SECOND, run).unwrap();
                scheduled(&result, "as it is scheduled", false, State::Pending);
                assert!(poll(&mut result).is_pending());
                scheduled(&result, "polled too early", false, State::Pending);
                result.timeout().reschedule(HOUR).unwrap();
                scheduled(&result, "moved", false, State::Pending);
                result = result.wait_within(Duration::ZERO).unwrap_err();
                scheduled(&result, "waited for in vain", false, State::Pending);
                end(&timer, &result);
                if ended == State::Fired {
                    let time = thread::spawn(move || clock.advance(HOUR).unwrap());
                    begun.recv().unwrap();
                    scheduled(&result, "while it runs", false, State::Running);
                    assert!(poll(&mut result).is_pending());
                    scheduled(&result, "polled while it runs", false, State::Running);
                    go.send(()).unwrap();
                    time.join().unwrap();
                }
                scheduled(&result, "known", true, ended);
                assert_eq!(poll(&mut result), Poll::Ready(expected));
                scheduled(&result, "taken", true, ended);
                timer.shrink();
                scheduled(&result, "taken, after a shrink", true, ended);
                timer.stop();
                scheduled(&result, "taken, after a stop", true, ended);
                drop(timer);
                scheduled(&result, "taken, without an engine", true, ended);
            });
        }
    }
}

#[track_caller]
fn retried(retry: &Retry<u32, u32>, when: &str, is_over: bool, state: State) {
    let debug = format!("Retry {{ is_over: {is_over}, .. }}");
    let ask = (retry.is_over(), retry.timeout().state(), format!("{retry:?}"));
    assert_eq!(ask, (is_over, state, debug), "{when}");
}

/// What a try does.
#[derive(Clone, Copy)]
enum Try {
    Fails,
    Succeeds,
    GivesUp,
    Panics,
}

/// How the second try ends a retry, what is done meanwhile and whether that ends the handle's state at once.
type Second = (&'static str, Try, fn(&Timer, &Retry<u32, u32>), [State; 2], Retried<u32, u32>);

const SECOND_TRY: [Second; 6] = [
    ("it succeeds", Try::Succeeds, |_, _| (), [State::Running, State::Fired], Retried::Success(2)),
    (
        "it gives up",
        Try::GivesUp,
        |_, _| (),
        [State::Running, State::Fired],
        Retried::GaveUp { error: 2, tries: 2 },
    ),
    ("it panics", Try::Panics, |_, _| (), [State::Running, State::Fired], Retried::Panicked),
    (
        "it is cancelled, and fails",
        Try::Fails,
        |_, retry| assert!(retry.cancel() && !retry.cancel()),
        [State::Cancelled; 2],
        Retried::Cancelled,
    ),
    (
        "it is cancelled, and succeeds",
        Try::Succeeds,
        |timer, retry| assert!(timer.cancel(retry.timeout().key())),
        [State::Cancelled; 2],
        Retried::Success(2),
    ),
    (
        "it is stopped, and fails",
        Try::Fails,
        |timer, _| assert!(!timer.stop_within(Duration::ZERO).finished),
        [State::Running, State::HandedBack],
        Retried::Stopped,
    ),
];

/// A job whose tries go as they are told.
fn tries(
    began: mpsc::Sender<()>,
    goes: mpsc::Receiver<Try>,
) -> impl FnMut(&Attempt) -> Result<u32, u32> + Send + 'static {
    move |attempt| {
        began.send(()).unwrap();
        match goes.recv().unwrap() {
            Try::Succeeds => return Ok(attempt.number()),
            Try::GivesUp => attempt.give_up(),
            Try::Panics => panic_quietly(),
            Try::Fails => {}
        }
        Err(attempt.number())
    }
}

#[test]
fn a_retry_is_over_when_it_has_an_outcome_and_not_before() {
    for place in PLACES {
        for (way, second, meanwhile, [during, after], outcome) in SECOND_TRY {
            case(format!("{way}, on the {place}"), move || {
                let (timer, clock) = virtual_on(place);
                let ((begins, begun), (go, goes)) = (mpsc::channel(), mpsc::channel());
                let backoff = Backoff::new(SECOND);
                let retry = timer.retry(backoff, tries(begins, goes)).unwrap();
                retried(&retry, "before the first try", false, State::Pending);
                let own = clock.clone();
                let time = thread::spawn(move || own.advance(Duration::ZERO).unwrap());
                begun.recv().unwrap();
                retried(&retry, "in the first try", false, State::Running);
                go.send(Try::Fails).unwrap();
                time.join().unwrap();
                retried(&retry, "between two tries", false, State::Pending);
                assert_eq!(retry.timeout().remaining(), Some(SECOND));
                retry.timeout().reschedule(HOUR).unwrap();
                let retry = retry.try_wait().unwrap_err();
                retried(&retry, "the second is put off", false, State::Pending);
                let time = thread::spawn(move || clock.advance(HOUR).unwrap());
                begun.recv().unwrap();
                retried(&retry, "in the second try", false, State::Running);
                meanwhile(&timer, &retry);
                retried(&retry, "in the second try, and then", false, during);
                go.send(second).unwrap();
                time.join().unwrap();
                let unfired = timer.stop();
                assert_eq!(unfired.len(), usize::from(after == State::HandedBack));
                retried(&retry, "there is an outcome", true, after);
                drop(unfired);
                timer.shrink();
                retried(&retry, "after a shrink", true, after);
                assert_eq!(retry.try_wait().unwrap(), outcome);
            });
        }
    }
}

/// What a key says: whether its timer is pending, when it is due, and how many keys have one.
#[track_caller]
fn keyed(
    timers: &KeyedTimer<u32>,
    when: &str,
    pending: bool,
    due: Option<Duration>,
    clock: &tourbillon::VirtualClock,
) {
    let deadline = |key| timers.deadline(&key).map(|at| since(clock, at));
    let ask = || {
        (timers.is_pending(&1), deadline(1), timers.len(), timers.is_empty(), format!("{timers:?}"))
    };
    let len = usize::from(pending);
    let expected = (pending, due, len, !pending, format!("KeyedTimer {{ len: {len}, .. }}"));
    assert_eq!(ask(), expected, "{when}");
    assert_eq!(
        thread::scope(|scope| scope.spawn(ask).join().unwrap()),
        expected,
        "{when}, to another thread"
    );
    assert_eq!((timers.is_pending(&2), deadline(2)), (false, None), "another key");
}

/// How the timer of a key ends.
type Keyed = (&'static str, fn(&Timer, &KeyedTimer<u32>));

const KEYED: [Keyed; 5] = [
    ("it fires", |_, _| ()),
    ("it is cancelled", |_, timers| assert!(timers.cancel(&1))),
    ("it is cleared", |_, timers| assert_eq!(timers.clear(), 1)),
    ("it is replaced", |_, timers| {
        assert!(timers.schedule(1, SECOND, |_| ()).unwrap());
        assert!(timers.cancel(&1));
    }),
    ("it is stopped", |timer, _| drop(timer.stop())),
];

#[test]
fn a_key_is_pending_until_its_timer_runs() {
    for place in PLACES {
        for (way, end) in KEYED {
            case(format!("{way}, on the {place}"), move || {
                let (timer, clock) = virtual_on(place);
                clock.advance(HOUR).unwrap();
                let timers = KeyedTimer::new(&timer);
                keyed(&timers, "before", false, None, &clock);
                let ((begins, begun), (go, goes)) = (mpsc::channel(), mpsc::channel());
                let run = move |_: &tourbillon::Context<'_>| {
                    begins.send(()).unwrap();
                    goes.recv().unwrap();
                };
                assert!(!timers.schedule(1, SECOND, run).unwrap());
                keyed(&timers, "as it is scheduled", true, Some(HOUR + SECOND), &clock);
                timers.reschedule(&1, 2 * SECOND).unwrap();
                keyed(&timers, "moved", true, Some(HOUR + 2 * SECOND), &clock);
                assert!(timers.schedule_if_absent(1, SECOND, |_| ()).unwrap().is_some());
                clock.advance(SECOND).unwrap();
                timer.shrink();
                keyed(&timers, "a second later", true, Some(HOUR + 2 * SECOND), &clock);
                end(&timer, &timers);
                if way == "it fires" {
                    let own = clock.clone();
                    let time = thread::spawn(move || own.advance(SECOND).unwrap());
                    begun.recv().unwrap();
                    keyed(&timers, "while it runs", false, None, &clock);
                    assert!(!timers.cancel(&1) && timers.reschedule(&1, SECOND).is_err());
                    go.send(()).unwrap();
                    time.join().unwrap();
                }
                keyed(&timers, "when it has ended", false, None, &clock);
                clock.advance(HOUR).unwrap();
                keyed(&timers, "an hour later", false, None, &clock);
            });
        }
    }
}

/// The key of a retry is in use until there is an outcome, and has a deadline between two tries.
#[test]
fn the_key_of_a_retry_is_pending_until_it_has_an_outcome() {
    for place in PLACES {
        for (way, last) in [
            ("it succeeds", Try::Succeeds),
            ("it panics", Try::Panics),
            ("it gives up", Try::GivesUp),
        ] {
            case(format!("{way}, on the {place}"), move || {
                let (timer, clock) = virtual_on(place);
                clock.advance(HOUR).unwrap();
                let timers = KeyedTimer::new(&timer);
                let ((begins, begun), (go, goes)) = (mpsc::channel(), mpsc::channel());
                let (own, (told, outcome)) = (timers.clone(), mpsc::channel());
                let then = move |_: Retried<u32, u32>| {
                    told.send((own.is_pending(&1), own.len())).unwrap();
                };
                timers.retry(1, Backoff::new(SECOND), tries(begins, goes), then).unwrap();
                keyed(&timers, "before the first try", true, Some(HOUR), &clock);
                for (step, goes) in [(Duration::ZERO, Try::Fails), (SECOND, last)] {
                    let own = clock.clone();
                    let time = thread::spawn(move || own.advance(step).unwrap());
                    begun.recv().unwrap();
                    keyed(&timers, "in a try", true, None, &clock);
                    assert!(timers.reschedule(&1, SECOND).is_err(), "it runs");
                    go.send(goes).unwrap();
                    time.join().unwrap();
                    if step.is_zero() {
                        keyed(&timers, "between two tries", true, Some(HOUR + SECOND), &clock);
                    }
                }
                assert_eq!(outcome.recv(), Ok((false, 0)), "told when the key is free");
                keyed(&timers, "over", false, None, &clock);
            });
        }
    }
}

/// Whether a task's sleep has elapsed, and when it is due, until it has been polled to its end and after.
#[test]
fn a_sleep_has_elapsed_when_it_was_found_to() {
    let clock = clock_at_an_hour();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let other = Timer::builder().clock(&clock).build().unwrap();
    let mut sleep = timer.sleep(SECOND);
    #[track_caller]
    fn tells(
        sleep: &tourbillon::tasks::Sleep<tourbillon::tasks::Given>,
        elapsed: bool,
        due: std::time::Instant,
    ) {
        let deadline = tourbillon::tasks::Instant::from_std(due);
        assert_eq!((sleep.is_elapsed(), sleep.deadline().into()), (elapsed, deadline));
    }
    let due = clock.now() + SECOND;
    tells(&sleep, false, due);
    assert!(poll(&mut sleep).is_pending());
    assert_eq!((timer.len(), timer.counts().armed), (1, 1));
    tells(&sleep, false, due);
    assert!(sleep.is_on(&timer) && sleep.is_on(&timer.clone()) && !sleep.is_on(&other));
    clock.advance(SECOND).unwrap();
    assert!(poll(&mut sleep).is_ready());
    tells(&sleep, true, due);
    sleep.reset_after(MS);
    tells(&sleep, false, clock.now() + MS);
    assert!(poll(&mut sleep).is_pending());
    timer.stop();
    assert!(poll(&mut sleep).is_ready(), "stopped");
    tells(&sleep, false, clock.now() + MS);
    assert!(sleep.is_on(&timer) && !sleep.is_on(&other));
}
