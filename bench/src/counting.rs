//! The allocator that counts: bytes held now, and the most that were held since the last mark.
//!
//! A global allocator cannot be written without `unsafe`. It forwards every
//! call unchanged to the system's allocator and adds up the sizes that were asked for.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

// Relaxed everywhere: where bytes are asked for, one thread allocates, and the counters order nothing.
static COUNTS: AtomicBool = AtomicBool::new(true);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes held now.
pub fn live() -> usize {
    LIVE.load(Relaxed)
}

/// The most bytes held since [`mark`].
pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

/// Forgets the peak so far; returns the bytes held now.
pub fn mark() -> usize {
    PEAK.store(live(), Relaxed);
    live()
}

/// Counts no more, for a run with several threads: they would all write the counters.
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

// SAFETY: every method passes its arguments on to `System`, whose contract is the same, and returns its answer.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's promise about `layout` is the one `System` asks for.
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
        // While it moves, both blocks may exist: that is the peak of a vector that grows.
        grown(size);
        shrunk(layout.size());
        // SAFETY: as for `dealloc`, and the caller promises that `size` is not zero.
        unsafe { System.realloc(block, layout, size) }
    }
}
