//! Asking for memory, and giving it back, without ending the program when there is none.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::OutOfMemory;

/// Makes room for `count` more. What is small doubles; what is large grows by a quarter, because then the memory that
/// is held and not used is worth more than a few more steps. By an eighth it would be copied twice as often, and
/// whoever starts or hands down a timer then waits for it.
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

/// An array in a box of its own, without a stop on the stack.
pub(crate) fn boxed<X, const N: usize>(
    make: impl FnMut() -> X,
) -> Result<Box<[X; N]>, OutOfMemory> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(N).map_err(|_| OutOfMemory)?;
    vec.resize_with(N, make);
    vec.into_boxed_slice().try_into().map_err(|_| OutOfMemory)
}

/// Asks for so many bytes in one piece, and gives them back: who is promised them piece by piece may be promised more
/// than there are, and is ended when they are written to.
pub(crate) fn probe(bytes: usize) -> Result<(), OutOfMemory> {
    let mut vec = Vec::<u8>::new();
    vec.try_reserve_exact(bytes).map_err(|_| OutOfMemory)?;
    // What is never used need not be asked for, and compilers know that.
    core::hint::black_box(vec);
    Ok(())
}

/// Gives back what a vector holds and does not use, if there is the memory for a copy of the rest. The tempting
/// `shrink_to_fit` ends the program if there is not.
pub(crate) fn tighten<X>(vec: &mut Vec<X>) {
    let mut copy = Vec::new();
    if vec.len() < vec.capacity() && copy.try_reserve_exact(vec.len()).is_ok() {
        copy.append(vec);
        *vec = copy;
    }
}
