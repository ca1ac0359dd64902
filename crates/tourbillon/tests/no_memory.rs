//! What becomes of a timer that repeats when there is no memory for its mark in the wheel.
//!
//! The allocator refuses large blocks while it is told to: those of the wheel, which can do without.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tourbillon::{Backoff, Retried, State, Timer, VirtualClock};

const SECOND: Duration = Duration::from_secs(1);
const LARGE: usize = 2048;
static REFUSES: AtomicBool = AtomicBool::new(false);

struct Refusing;

#[global_allocator]
static REFUSING: Refusing = Refusing;

fn is_refused(size: usize) -> bool {
    size >= LARGE && REFUSES.load(SeqCst)
}

// SAFETY: every method passes its arguments on to `System`, whose contract is the same, or answers that there is no
// memory, as an allocator may.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise about `layout` is the one `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System` through the methods here, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as for `dealloc`, and the caller promises that `size` is not zero.
        unsafe { System.realloc(block, layout, size) }
    }
}

// One test, for one allocator.
#[test]
fn what_has_no_memory_to_run_again_ends_and_says_so() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(2).build().unwrap();
    let retry = timer.retry(Backoff::new(SECOND), |_| Err::<(), _>("no")).unwrap();
    let repeating = timer.schedule_repeating(SECOND, |context| _ = context.again(SECOND)).unwrap();
    REFUSES.store(true, SeqCst);
    clock.advance(SECOND * 5).unwrap();
    REFUSES.store(false, SeqCst);
    assert_eq!((timer.counts().fired, timer.len(), timer.check()), (2, 0, Ok(())));
    assert_eq!((repeating.state(), repeating.cancel()), (State::Fired, false));
    assert_eq!(retry.try_wait().unwrap(), Retried::Stopped);
    timer.arm(SECOND, |_| ()).unwrap();
    timer.arm(SECOND, |_| ()).expect("both places are free");
}
