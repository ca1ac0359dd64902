//! Timers for which there is no memory: to enter the wheel, or to stay in it while they run.

use tourbillon::{Backoff, Retried, ScheduleError, State, Timer, VirtualClock};

use crate::allocator::{held, without_large_blocks};
use crate::alone;
use crate::common::SECOND;

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
