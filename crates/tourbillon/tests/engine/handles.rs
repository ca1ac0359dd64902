//! What a handle and a key report, at every point of a timer's life.

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
        assert_eq!(handle.key(), first, "one key for all runs");
        assert!(timer.is_pending(first));
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
        // And by its current key.
        let other = timer.schedule_repeating(SECOND, repeat).unwrap();
        clock.advance(3 * SECOND).unwrap();
        assert!(timer.cancel(other.key()));
        assert_eq!(other.state(), State::Cancelled);
        accounted(&timer);
    }
}

/// Real time, milliseconds: cancels of a timer that repeats as fast as it can. Each returns true once, and nothing runs
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
            // One run may be under way.
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
    // Other timers reuse their places, many times over.
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
    // In shards that the other engine does not have.
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
    // The guard of a timer that has fired has nothing to cancel.
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

#[test]
fn a_callback_whose_handles_are_gone_has_one_all_the_same() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let kept = Log::new();
        let keep = kept.clone();
        let run = move |context: &Context<'_>| {
            let handles = [context.timeout().unwrap(), context.timeout().unwrap()];
            assert!(handles.iter().all(|handle| handle.state() == State::Running));
            keep.add(handles[1].clone());
        };
        drop(timer.schedule(SECOND, run).unwrap());
        timer.arm(SECOND, |context| assert!(context.timeout().is_none(), "armed by key")).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!((timer.counts().fired, timer.counts().panicked), (2, 0), "{place}");
        let (inside, _others) = (kept.take(), [(); 3].map(|()| timer.schedule(SECOND, |_| ())));
        assert_eq!(inside[0].state(), State::Fired, "whoever came after it");
        drop(inside);
        timer.check().unwrap();
    }
}

#[test]
fn one_that_was_handed_back_and_is_run_by_hand_knows_it() {
    let (timer, _clock) = virtual_on("driver");
    let log = Log::new();
    let told = log.clone();
    let run = move |context: &Context<'_>| told.add(context.timeout().unwrap());
    let handle = timer.schedule(SECOND, run).unwrap();
    timer.stop().into_iter().for_each(|unfired| unfired.run());
    let inside = log.take().pop().unwrap();
    assert_eq!((inside.state(), handle.state()), (State::HandedBack, State::HandedBack));
    assert_eq!((inside.clone().state(), inside.key()), (State::HandedBack, handle.key()));
    assert!(!inside.cancel() && inside.reschedule(MS).is_err());
}

/// Handles that outlive their timers, while others come and go: none ever reports on another timer.
#[test]
fn no_handle_answers_for_another() {
    let (timer, clock) = virtual_on("driver");
    let mut kept: Vec<(Timeout, State)> = Vec::new();
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..20_000 {
        let handle = timer.schedule(MS * random.u32(0..4), |_| ()).unwrap();
        for _ in 0..random.usize(0..3) {
            kept.push((handle.clone(), State::Pending));
        }
        match random.u32(0..4) {
            0 => drop(handle),
            1 => {
                assert!(handle.cancel());
                kept.push((handle.clone(), State::Cancelled));
            }
            _ => kept.push((handle, State::Pending)),
        }
        if random.u32(0..8) == 0 {
            clock.advance(MS).unwrap();
        }
        for _ in 0..3 {
            let at = random.usize(0..kept.len().max(1));
            let Some((handle, last)) = kept.get_mut(at) else { break };
            let state = handle.state();
            assert!(*last == State::Pending || state == *last, "{last:?} and then {state:?}");
            assert_eq!(handle.deadline().is_some(), state == State::Pending);
            *last = state;
            match random.u32(0..3) {
                0 => drop(kept.swap_remove(at)),
                1 if handle.cancel() => *last = State::Cancelled,
                _ => {}
            }
        }
        if round % 1000 == 0 {
            timer.check().unwrap();
        }
    }
    clock.advance(SECOND).unwrap();
    for (handle, last) in &kept {
        let state = handle.state();
        assert!(
            matches!(state, State::Fired | State::Cancelled)
                && [state, State::Pending].contains(last)
        );
    }
    drop(kept);
    timer.check().unwrap();
    accounted(&timer);
}

#[test]
fn what_handles_need_is_given_back_with_the_last_of_them() {
    const MANY: usize = 10_000;
    let memory =
        |timer: &Timer| -> usize { timer.snapshot().shards.iter().map(|shard| shard.memory).sum() };
    let ends = [State::Fired, State::Cancelled, State::HandedBack];
    for (end, dropped_first) in ends.into_iter().flat_map(|end| [(end, false), (end, true)]) {
        let (timer, clock) = virtual_on("driver");
        let mut handles: Vec<Timeout> =
            (0..MANY).map(|_| timer.schedule(SECOND, |_| ()).unwrap()).collect();
        let keys: Vec<_> = handles.iter().map(Timeout::key).collect();
        if dropped_first {
            handles.clear();
        }
        let unfired = match end {
            State::Fired => {
                clock.advance(SECOND).unwrap();
                Vec::new()
            }
            State::Cancelled => {
                let others = handles.clone();
                assert!(keys.into_iter().all(|key| timer.cancel(key)));
                drop(others);
                Vec::new()
            }
            _ => timer.stop(),
        };
        assert!(handles.iter().all(|handle| handle.state() == end));
        drop((handles, unfired));
        timer.check().unwrap();
        timer.shrink();
        let left = memory(&timer);
        assert!(left < MANY, "{end:?} {dropped_first}: {left} bytes");
    }
}

#[test]
fn one_old_handle_does_not_keep_the_memory_of_a_crowd() {
    let (timer, _clock) = virtual_on("driver");
    let mut crowd: Vec<Timeout> = Vec::new();
    for n in 0..100_000 {
        let handle = timer.schedule(SECOND, |_| ()).unwrap();
        // Two handles, so that the cancel does not free the lease.
        crowd.extend((n == 50_000).then(|| handle.clone()));
        crowd.push(handle);
    }
    let old = crowd.remove(50_000);
    crowd.iter().for_each(|handle| _ = handle.cancel());
    drop(crowd);
    timer.shrink();
    let left = timer.snapshot().memory();
    assert!(left < 100_000, "{left} bytes");
    assert_eq!(old.state(), State::Cancelled);
    timer.check().unwrap();
}

/// Leases take memory for thousands only once there are thousands.
#[test]
fn one_handle_costs_no_memory_of_a_crowd() {
    let (timer, _clock) = virtual_on("driver");
    let keyed = timer.arm(SECOND, |_| ()).unwrap();
    let without = timer.snapshot().memory();
    timer.cancel(keyed);
    let _handle = timer.schedule(SECOND, |_| ()).unwrap();
    let more = timer.snapshot().memory() - without;
    assert!((1..1000).contains(&more), "{more} bytes for one lease");
}

#[test]
fn a_handle_that_was_dropped_leaves_no_memory() {
    let memory = |arm: fn(&Timer)| {
        let (timer, _clock) = virtual_on("driver");
        (0..20_000).for_each(|_| arm(&timer));
        timer.snapshot().memory()
    };
    let keys = memory(|timer| _ = timer.arm(HOUR, |_| ()).unwrap());
    let handles = memory(|timer| drop(timer.schedule(HOUR, |_| ()).unwrap()));
    assert!(handles < keys + keys / 50, "{handles} bytes with handles, {keys} without");
}
