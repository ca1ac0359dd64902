//! Handles shared by several threads, while their timer fires and others take its place.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;

use super::{MS, explore};
use crate::{State, Timeout, Timer, VirtualClock};

/// Asserts that the state of a handle never goes back, and is never the state of another timer.
fn watch(handle: &Timeout) -> State {
    let mut last = handle.state();
    for _ in 0..3 {
        let again = handle.clone().state();
        let goes_on = match last {
            State::Pending => true,
            State::Running => matches!(again, State::Running | State::Fired),
            ended => again == ended,
        };
        assert!(goes_on, "{last:?} and then {again:?}");
        last = again;
    }
    last
}

#[test]
fn a_shared_handle_answers_for_its_own_timer() {
    explore(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(1).on_driver().build().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let count = ran.clone();
        let run = move |_: &crate::Context<'_>| _ = count.fetch_add(1, SeqCst);
        let handle = Arc::new(timer.schedule(MS, run).unwrap());
        let time = {
            let clock = clock.clone();
            thread::spawn(move || clock.advance(MS).unwrap())
        };
        let watcher = {
            let handle = handle.clone();
            thread::spawn(move || watch(&handle))
        };
        let others = {
            let timer = timer.clone();
            // These timers reuse the freed place, and stay pending.
            thread::spawn(move || [(); 2].map(|()| timer.schedule(MS * 9, |_| ()).unwrap()))
        };
        let cancelled = handle.cancel();
        let seen = watcher.join().unwrap();
        let others = others.join().unwrap();
        time.join().unwrap();
        assert!(others.iter().all(|other| other.state() == State::Pending));
        let end = if cancelled { State::Cancelled } else { State::Fired };
        assert_eq!((handle.state(), ran.load(SeqCst)), (end, usize::from(!cancelled)));
        assert!([State::Pending, State::Running, end].contains(&seen));
        drop((handle, others));
        timer.check().unwrap();
    });
}
