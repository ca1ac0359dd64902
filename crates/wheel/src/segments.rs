//! A vector that grows without moving what it holds.
//!
//! Elements live in segments of `1 << BITS`; only the first one grows like a `Vec`, so a small wheel stays
//! small and a large one never copies itself: growing holds no second copy and makes no pause. Every growth
//! is fallible, and a failed one changes nothing.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::OutOfMemory;

pub(crate) struct Segments<X, const BITS: u32> {
    segments: Vec<Vec<X>>,
    len: usize,
}

impl<X, const BITS: u32> Segments<X, BITS> {
    const SEGMENT: usize = 1 << BITS;

    pub(crate) const fn new() -> Self {
        Segments { segments: Vec::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn capacity(&self) -> usize {
        match self.segments.as_slice() {
            [] => 0,
            [only] => only.capacity(),
            more => more.len() * Self::SEGMENT,
        }
    }

    pub(crate) fn push(&mut self, value: X) -> Result<(), OutOfMemory> {
        if self.len == self.capacity() {
            self.grow(self.len + 1)?;
        }
        self.segments[self.len >> BITS].push(value);
        self.len += 1;
        Ok(())
    }

    /// Makes room for `additional` more. What was allocated before a failure is kept, and empty.
    pub(crate) fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        let wanted = self.len.checked_add(additional).ok_or(OutOfMemory)?;
        // Asked for at once, an absurd size is refused at once; segment by segment it might be granted until
        // the machine is full.
        let missing = wanted.saturating_sub(self.capacity());
        Vec::<X>::new().try_reserve_exact(missing).map_err(|_| OutOfMemory)?;
        while self.capacity() < wanted {
            self.grow(wanted)?;
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, wanted: usize) -> Result<(), OutOfMemory> {
        if self.segments.len() <= 1 && self.capacity() < Self::SEGMENT {
            let target = wanted.max(self.capacity() * 2).clamp(16, Self::SEGMENT);
            if self.segments.is_empty() {
                self.segments.try_reserve(1).map_err(|_| OutOfMemory)?;
                self.segments.push(Vec::new());
            }
            let first = &mut self.segments[0];
            return first.try_reserve_exact(target - first.len()).map_err(|_| OutOfMemory);
        }
        let mut segment = Vec::new();
        segment.try_reserve_exact(Self::SEGMENT).map_err(|_| OutOfMemory)?;
        self.segments.try_reserve(1).map_err(|_| OutOfMemory)?;
        self.segments.push(segment);
        Ok(())
    }

    /// Drops all but the first `len` elements and gives back the memory behind them.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
        }
        self.segments.truncate(self.len.div_ceil(Self::SEGMENT));
        if let Some(last) = self.segments.last_mut() {
            last.truncate(self.len - ((self.len - 1) >> BITS << BITS));
        }
        // Only a segment that is the only one may be short: `capacity` counts on it.
        if let [only] = self.segments.as_mut_slice() {
            only.shrink_to_fit();
        }
        self.segments.shrink_to_fit();
    }

    pub(crate) fn memory(&self) -> usize {
        self.capacity() * size_of::<X>() + self.segments.capacity() * size_of::<Vec<X>>()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &X> {
        self.segments.iter().flatten()
    }
}

impl<X, const BITS: u32> Index<usize> for Segments<X, BITS> {
    type Output = X;
    #[inline(always)]
    fn index(&self, index: usize) -> &X {
        &self.segments[index >> BITS][index & (Self::SEGMENT - 1)]
    }
}

impl<X, const BITS: u32> IndexMut<usize> for Segments<X, BITS> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut X {
        &mut self.segments[index >> BITS][index & (Self::SEGMENT - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_segments_and_shrinks_to_what_it_holds() {
        let mut numbers: Segments<usize, 5> = Segments::new();
        for n in 0..100 {
            numbers.push(n).unwrap();
        }
        assert_eq!((numbers.len(), numbers.capacity()), (100, 128));
        assert!((0..100).all(|n| numbers[n] == n));
        for keep in [64, 33, 32, 20, 0] {
            numbers.truncate(keep);
            assert_eq!(numbers.len(), keep);
            assert!(numbers.iter().copied().eq(0..keep));
            numbers.push(keep).unwrap();
            assert_eq!(numbers[keep], keep, "it grows again after {keep}");
        }
    }

    #[test]
    fn a_reservation_is_used() {
        let mut numbers: Segments<u8, 5> = Segments::new();
        numbers.reserve(70).unwrap();
        assert_eq!(numbers.capacity(), 96);
        assert_eq!(numbers.reserve(usize::MAX), Err(OutOfMemory));
    }
}
