//! The allocator that counts the bytes that are held now, for all threads of this test.
//!
//! The only file of this test with `unsafe`: a global allocator cannot be written without. It forwards every call
//! unchanged to the system's allocator and adds up the sizes that were asked for.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

// Relaxed: it is read when all threads have come to rest, and orders nothing.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes held now.
pub(crate) fn held() -> usize {
    HELD.load(Relaxed)
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every method passes its arguments on to `System`, whose contract is the same, and returns its answer.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
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
        HELD.fetch_add(size, Relaxed);
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as for `dealloc`, and the caller promises that `size` is not zero.
        unsafe { System.realloc(block, layout, size) }
    }
}
