//! Timers for which there is no memory, to enter the wheel or to stay in it while they run; and a queue that has none
//! to sort the values of a tick.

use std::time::Duration;

use tourbillon::{Backoff, DelayQueue, Retried, ScheduleError, State, Timer, VirtualClock};

use crate::allocator::{held, with_refusals, without_large_blocks};
use crate::alone;
use crate::common::asleep::spawn_asleep;
use crate::common::{SECOND, within};

#[test]
fn what_has_no_memory_to_run_again_ends_and_says_so() {
    let _alone = alone();
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().limit(2).build().unwrap();
    let retry = timer.retry(Backoff::new(SECOND), |_| Err::<(), _>("no")).unwrap();
    let repeating = timer.schedule_repeating(SECOND, |context| _ = context.again(SECOND)).unwrap();
    without_large_blocks(|| clock.advance(SECOND * 5).unwrap());
    assert_eq!((timer.counts().fired, timer.len(), timer.check()), (2, 0, Ok(())));
    assert_eq!((repeating.state(), repeating.cancel()), (State::Fired, false));
    assert_eq!(retry.try_wait().unwrap(), Retried::Stopped);
    timer.arm(SECOND, |_| ()).unwrap();
    timer.arm(SECOND, |_| ()).expect("both places are free");
}

#[test]
fn a_timer_for_which_there_is_no_memory_leaves_nothing_behind() {
    let _alone = alone();
    let timer = Timer::builder().clock(&VirtualClock::new()).on_driver().limit(1).build().unwrap();
    let refused = || {
        let error = timer.schedule(SECOND, |_| ()).expect_err("the wheel has no memory yet");
        assert!(matches!(error, ScheduleError::Full(_)));
    };
    without_large_blocks(|| {
        refused();
        let before = held();
        (0..100).for_each(|_| refused());
        assert_eq!(held(), before);
    });
    assert_eq!((timer.counts().armed, timer.len(), timer.check()), (0, 0, Ok(())));
    timer.schedule(SECOND, |_| ()).expect("the place is free");
}

/// How often there is no memory before there is.
const REFUSALS: usize = 3;

/// A queue whose values are all due at once. The thread that takes the first one sorts them.
fn crowd(after: Duration) -> (DelayQueue<usize>, VirtualClock) {
    let clock = VirtualClock::new();
    let queue = Timer::builder().clock(&clock).queue().unwrap();
    (0..200).for_each(|number| _ = queue.put(after, number).unwrap());
    (queue, clock)
}

#[test]
fn an_advance_goes_on_once_a_value_can_be_taken() {
    let _alone = alone();
    let (queue, clock) = crowd(SECOND);
    let own = queue.clone();
    let taker = spawn_asleep(move || with_refusals(REFUSALS, || own.take()));
    within(move || clock.advance(SECOND).unwrap());
    assert_eq!((taker.join().unwrap(), queue.len(), queue.check()), (Ok(0), 199, Ok(())));
}

#[test]
fn a_value_that_is_due_already_is_taken_while_the_clock_stands_still() {
    let _alone = alone();
    let (queue, _clock) = crowd(Duration::ZERO);
    let own = queue.clone();
    assert_eq!(within(move || with_refusals(REFUSALS, || own.take())), Ok(0));
    assert_eq!((queue.len(), queue.check()), (199, Ok(())));
}
