//! Allocation that can fail without aborting the program.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::OutOfMemory;

/// Reserves room for `count` more elements. A small vector doubles; a large one grows by a quarter, to hold less unused
/// memory. With an eighth, copies would be twice as frequent, and the start or cascade that grows the vector waits for
/// each copy.
pub(crate) fn grow_by<X>(vec: &mut Vec<X>, count: usize) -> Result<(), OutOfMemory> {
    if vec.capacity() - vec.len() >= count {
        return Ok(());
    }
    let more = match vec.len() * size_of::<X>() {
        0..0x1_0000 => vec.len().max(8),
        _ => vec.len() / 4,
    };
    let roomy = vec.try_reserve_exact(more.max(count));
    roomy.or_else(|_| vec.try_reserve_exact(count)).map_err(|_| OutOfMemory)
}

/// Allocates a boxed array without building it on the stack.
pub(crate) fn boxed<X, const N: usize>(
    make: impl FnMut() -> X,
) -> Result<Box<[X; N]>, OutOfMemory> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(N).map_err(|_| OutOfMemory)?;
    vec.resize_with(N, make);
    vec.into_boxed_slice().try_into().map_err(|_| OutOfMemory)
}

/// Allocates `bytes` in one piece and frees them. With overcommit, many small allocations may together exceed the
/// available memory and still succeed, and the process is killed when it writes to them; a single large allocation is
/// refused.
pub(crate) fn probe(bytes: usize) -> Result<(), OutOfMemory> {
    let mut vec = Vec::<u8>::new();
    vec.try_reserve_exact(bytes).map_err(|_| OutOfMemory)?;
    // Without a use, the compiler removes the allocation.
    core::hint::black_box(vec);
    Ok(())
}

/// Releases the unused capacity of a vector, if there is memory for a copy of its elements. If there is not,
/// `shrink_to_fit` would abort the program.
pub(crate) fn tighten<X>(vec: &mut Vec<X>) {
    let mut copy = Vec::new();
    if vec.len() < vec.capacity() && copy.try_reserve_exact(vec.len()).is_ok() {
        copy.append(vec);
        *vec = copy;
    }
}
