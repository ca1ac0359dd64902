//! An allocator that counts the bytes currently held by all threads of this test.
//!
//! The only file of this test with `unsafe`: a global allocator needs it. It forwards every call unchanged to the
//! system's allocator and adds up the requested sizes. It refuses large blocks to a thread that requests this.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

// Relaxed: it is read when all threads are idle, and orders nothing.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes held now.
pub(crate) fn held() -> usize {
    HELD.load(Relaxed)
}

/// Blocks of this size or more are refused. The blocks of a wheel, whose allocation may fail, are larger.
const LARGE: usize = 2048;

thread_local! {
    /// How many of the next large blocks are refused.
    static REFUSALS: Cell<usize> = const { Cell::new(0) };
}

/// Runs `act` on this thread while large allocations fail.
pub(crate) fn without_large_blocks(act: impl FnOnce()) {
    with_refusals(usize::MAX, act);
}

/// Runs `act` on this thread; this number of large allocations fails at first. Asserts that some did.
pub(crate) fn with_refusals<R>(number: usize, act: impl FnOnce() -> R) -> R {
    REFUSALS.set(number);
    let result = act();
    assert!(REFUSALS.replace(0) < number, "no large block was refused");
    result
}

fn is_refused(size: usize) -> bool {
    let refuse = |left: &Cell<usize>| {
        let refused = size >= LARGE && left.get() > 0;
        left.set(left.get() - usize::from(refused));
        refused
    };
    REFUSALS.try_with(refuse).unwrap_or(false)
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every method passes its arguments on to `System`, whose contract is the same, and returns its result; or
// reports that memory is exhausted, as an allocator may.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return null_mut();
        }
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promise about `layout` is the one `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `block` came from `System` through the methods here, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return null_mut();
        }
        HELD.fetch_add(size, Relaxed);
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as for `dealloc`, and the caller promises that `size` is not zero.
        unsafe { System.realloc(block, layout, size) }
    }
}
