//! What a handle and a key say, at every point of a timer's life.

use std::sync::mpsc;
use std::time::Duration;

use crate::common::{HOUR, Log, MS, PLACES, SECOND, accounted, eventually, running_on, virtual_on};
use tourbillon::{Context, RescheduleError, State, Timeout, Timer};

#[test]
fn one_that_fires_is_pending_running_fired() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let (give, get) = mpsc::channel::<Timeout>();
        let log = Log::new();
        let told = log.clone();
        let run = move |context: &Context<'_>| {
            let handle = get.recv().unwrap();
            told.add(handle.state());
            assert!(!handle.cancel(), "it has started");
            assert_eq!(handle.reschedule(MS), Err(RescheduleError::NotPending));
            assert_eq!((handle.deadline(), handle.remaining()), (None, None));
            assert_eq!(context.key(), handle.key());
            assert_eq!(context.timeout().unwrap().state(), State::Running);
            assert!(!context.again(MS), "it runs once");
            told.add(handle.state());
        };
        let handle = timer.schedule(SECOND, run).unwrap();
        give.send(handle.clone()).unwrap();
        assert_eq!(handle.state(), State::Pending);
        assert!(handle.is_pending() && timer.is_pending(handle.key()));
        clock.advance(SECOND - MS).unwrap();
        assert_eq!((handle.state(), handle.remaining()), (State::Pending, Some(MS)));
        clock.advance(MS).unwrap();
        assert_eq!(log.take(), [State::Running, State::Running], "{place}");
        assert_eq!(handle.state(), State::Fired);
        assert!(!handle.cancel() && !timer.cancel(handle.key()) && !handle.is_pending());
        assert_eq!(handle.state(), State::Fired, "asking changes nothing");
        drop(timer);
        assert_eq!(handle.state(), State::Fired, "nor does the end of the timer");
    }
}

#[test]
fn one_that_is_cancelled_or_handed_back_stays_so() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let cancelled = timer.schedule(SECOND, |_| unreachable!()).unwrap();
        let by_key = timer.schedule(SECOND, |_| unreachable!()).unwrap();
        let left = timer.schedule(HOUR, |_| unreachable!()).unwrap();
        assert!(cancelled.cancel() && !cancelled.cancel());
        assert!(timer.cancel(by_key.key()) && !timer.cancel(by_key.key()) && !by_key.cancel());
        clock.advance(SECOND).unwrap();
        let unfired = timer.stop();
        assert_eq!((unfired.len(), unfired[0].key()), (1, left.key()));
        assert_eq!(left.state(), State::HandedBack);
        drop(unfired);
        for (handle, state) in [
            (&cancelled, State::Cancelled),
            (&by_key, State::Cancelled),
            (&left, State::HandedBack),
        ] {
            assert!(
                !handle.cancel() && handle.reschedule(MS).is_err() && handle.deadline().is_none()
            );
            assert_eq!(handle.state(), state, "{place}");
        }
        accounted(&timer);
    }
}

#[test]
fn a_repeating_one_goes_round_and_its_handle_stays_good() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let log = Log::new();
        let (told, mut rounds) = (log.clone(), 0);
        let run = move |context: &Context<'_>| {
            rounds += 1;
            told.add((rounds, context.timeout().unwrap().state()));
            if rounds < 5 {
                // The last call counts.
                assert!(context.again(HOUR) && context.again(SECOND));
            }
        };
        let handle = timer.schedule_repeating(SECOND, run).unwrap();
        let first = handle.key();
        clock.advance(SECOND).unwrap();
        assert_eq!(handle.state(), State::Pending, "{place}: armed again");
        assert_eq!(handle.remaining(), Some(SECOND));
        assert_ne!(handle.key(), first);
        assert!(!timer.is_pending(first) && !timer.cancel(first), "each arming has its key");
        assert!(timer.is_pending(handle.key()));
        handle.reschedule(2 * SECOND).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!(log.take(), [(1, State::Running)]);
        clock.advance(HOUR).unwrap();
        assert_eq!(log.len(), 4);
        assert_eq!(handle.state(), State::Fired, "it did not ask to be armed again");
        let counts = timer.counts();
        assert_eq!((counts.armed, counts.fired), (5, 5), "every arming counts");
        assert!(!handle.cancel());
        accounted(&timer);
    }
}

#[test]
fn a_repeating_one_that_is_cancelled_while_it_runs_does_not_run_again() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let log = Log::new();
        let told = log.clone();
        let run = move |context: &Context<'_>| {
            let handle = context.timeout().unwrap();
            assert!(context.again(SECOND));
            told.add((handle.cancel(), handle.cancel(), handle.state()));
        };
        let handle = timer.schedule_repeating(SECOND, run).unwrap();
        clock.advance(HOUR).unwrap();
        assert_eq!(log.take(), [(true, false, State::Cancelled)], "{place}");
        assert_eq!(handle.state(), State::Cancelled);
        assert!(!handle.cancel());
        let counts = timer.counts();
        assert_eq!((counts.armed, counts.fired, counts.pending), (1, 1, 0));
        accounted(&timer);
    }
}

#[test]
fn a_repeating_one_that_is_cancelled_between_its_runs_does_not_run_again() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let repeat = |context: &Context<'_>| _ = context.again(SECOND);
        let handle = timer.schedule_repeating(SECOND, repeat).unwrap();
        clock.advance(3 * SECOND).unwrap();
        assert!(handle.cancel() && !handle.cancel());
        assert_eq!(handle.state(), State::Cancelled);
        clock.advance(HOUR).unwrap();
        let counts = timer.counts();
        assert_eq!((counts.armed, counts.fired, counts.cancelled), (4, 3, 1), "{place}");
        // And by the key that it has now.
        let other = timer.schedule_repeating(SECOND, repeat).unwrap();
        clock.advance(3 * SECOND).unwrap();
        assert!(timer.cancel(other.key()));
        assert_eq!(other.state(), State::Cancelled);
        accounted(&timer);
    }
}

/// Real time, milliseconds: cancels of a timer that repeats as fast as it can. Each is true once, and nothing runs
/// after it.
#[test]
fn a_repeating_one_is_cancelled_once_however_the_moment_falls() {
    for place in PLACES {
        let timer = running_on(place).tick(Duration::from_nanos(1)).build().unwrap();
        for round in 0..200_u32 {
            let log = Log::new();
            let told = log.clone();
            let run = move |context: &Context<'_>| {
                told.add(());
                context.again(Duration::ZERO);
            };
            let handle = timer.schedule_repeating(Duration::ZERO, run).unwrap();
            eventually(|| log.len() > round as usize % 8);
            assert!(handle.cancel(), "{place}: it repeats for ever");
            assert!(!handle.cancel());
            assert_eq!(handle.state(), State::Cancelled);
            // One run may be on its way.
            eventually(|| timer.is_empty());
        }
        timer.stop();
        let counts = timer.counts();
        assert_eq!(counts.handed_back, 0, "{place}: {counts:?}");
        accounted(&timer);
    }
}

#[test]
fn a_stale_key_answers_no_for_ever() {
    let (timer, clock) = virtual_on("driver");
    let stale: Vec<_> = (0..100).map(|_| timer.arm(SECOND, |_| ()).unwrap()).collect();
    let (cancelled, fired) = stale.split_at(50);
    assert!(cancelled.iter().all(|&key| timer.cancel(key)));
    clock.advance(SECOND).unwrap();
    // Others take their places, many times over.
    for _ in 0..50 {
        let fresh: Vec<_> = (0..100).map(|_| timer.arm(SECOND, |_| ()).unwrap()).collect();
        for &key in cancelled.iter().chain(fired) {
            assert!(!timer.cancel(key) && !timer.is_pending(key) && timer.deadline(key).is_none());
            assert_eq!(timer.reschedule(key, MS), Err(RescheduleError::NotPending));
        }
        assert_eq!(timer.len(), 100);
        assert!(fresh.iter().all(|&key| timer.cancel(key)));
    }
    accounted(&timer);
}

#[test]
fn a_key_of_another_timer_answers_no() {
    let (one, _clock) = virtual_on("driver");
    let (other, _clock) = virtual_on("driver");
    let many = Timer::builder().shards(64).build().unwrap();
    let keys: Vec<_> = (0..10).map(|_| one.arm(SECOND, |_| ()).unwrap()).collect();
    let others: Vec<_> = (0..10).map(|_| other.arm(SECOND, |_| ()).unwrap()).collect();
    for &key in &keys {
        assert!(!other.cancel(key) && !other.is_pending(key) && other.reschedule(key, MS).is_err());
        assert!(!many.cancel(key) && many.deadline(key).is_none());
    }
    // A shard that the other does not have.
    let far: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn({
                let many = many.clone();
                move || many.arm(HOUR, |_| ()).unwrap()
            })
        })
        .map(|thread| thread.join().unwrap())
        .collect();
    assert!(far.iter().all(|&key| !one.cancel(key) && one.reschedule(key, MS).is_err()));
    assert_eq!((one.len(), other.len(), many.len()), (10, 10, 4));
    assert!(keys.iter().zip(&others).all(|(one, other)| one != other));
}

#[test]
fn a_guard_cancels_and_a_handle_does_not() {
    let (timer, clock) = virtual_on("driver");
    drop(timer.schedule(SECOND, |_| ()).unwrap());
    assert_eq!(timer.len(), 1);
    let guard = timer.schedule(SECOND, |_| unreachable!()).unwrap().cancel_on_drop();
    guard.reschedule(2 * SECOND).unwrap();
    assert_eq!(guard.state(), State::Pending);
    drop(guard);
    assert_eq!(timer.len(), 1);
    let kept = timer.schedule(SECOND, |_| ()).unwrap().cancel_on_drop().keep();
    assert_eq!(timer.len(), 2);
    clock.advance(SECOND).unwrap();
    assert_eq!((kept.state(), timer.counts().fired), (State::Fired, 2));
    // A guard of one that has fired has nothing to cancel.
    drop(kept.cancel_on_drop());
    assert_eq!(timer.counts().cancelled, 1);
}

#[test]
fn the_pending_are_listed_with_their_deadlines() {
    let (timer, clock) = virtual_on("driver");
    let begin = clock.now();
    let mut expected: Vec<_> =
        (1..100).map(|n| (timer.arm(MS * n, |_| ()).unwrap(), begin + MS * n)).collect();
    clock.advance(MS * 50).unwrap();
    expected.drain(..50);
    let mut pending: Vec<_> =
        timer.pending().iter().map(|pending| (pending.key, pending.deadline)).collect();
    pending.sort_by_key(|&(_, deadline)| deadline);
    assert_eq!(pending, expected);
    let shown: usize = timer.snapshot().slots().map(|slot| slot.timers).sum();
    assert_eq!((shown, timer.len()), (49, 49));
}
