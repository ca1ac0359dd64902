//! A repeating timer for which there is no memory to stay in the wheel while it runs.

use tourbillon::{Backoff, Retried, State, Timer, VirtualClock};

use crate::allocator::without_large_blocks;
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
