//! A counting allocator: the bytes held now, and the peak since the last mark.
//!
//! A global allocator cannot be written without `unsafe`. This one forwards every call unchanged to the system's
//! allocator and adds up the requested sizes.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

// Relaxed everywhere: only one thread allocates while bytes are measured, and nothing is synchronized through the
// counters.
static COUNTS: AtomicBool = AtomicBool::new(true);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes held now.
pub fn live() -> usize {
    LIVE.load(Relaxed)
}

/// The peak of the bytes held since [`mark`].
pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

/// Resets the peak; returns the bytes held now.
pub fn mark() -> usize {
    PEAK.store(live(), Relaxed);
    live()
}

/// Stops counting, for runs with several threads, which would contend on the counters.
pub fn stop() {
    COUNTS.store(false, Relaxed);
}

fn grown(bytes: usize) {
    if !COUNTS.load(Relaxed) {
        return;
    }
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    if live > PEAK.load(Relaxed) {
        PEAK.store(live, Relaxed);
    }
}

fn shrunk(bytes: usize) {
    if COUNTS.load(Relaxed) {
        LIVE.fetch_sub(bytes, Relaxed);
    }
}

pub struct Counting;

// SAFETY: every method passes its arguments to `System`, whose contract is the same, and returns the result.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's promise about `layout` is the one that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        shrunk(layout.size());
        // SAFETY: `block` came from `System` through the methods here, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may exist during the move: that is the peak of a growing vector.
        grown(size);
        shrunk(layout.size());
        // SAFETY: as for `dealloc`, and the caller promises that `size` is not zero.
        unsafe { System.realloc(block, layout, size) }
    }
}
