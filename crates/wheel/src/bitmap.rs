//! A set of small integers with an O(1) search for the next member. Holds the occupied slots.
//!
//! Each slot has one bit, and a summary has one bit for each nonzero word. The summary is a single word if that
//! suffices, otherwise a smaller bitmap. 256 slots, the default, take four words and a summary; a million slots take
//! three bitmaps and a summary.

use alloc::vec::Vec;

use crate::OutOfMemory;

/// A bitmap with more words than this has a bitmap as its summary.
const PLAIN_WORDS: usize = 64;

#[derive(Default)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    /// A bit for each nonzero word; unused if the summary is a bitmap. A loop over the few words would be simpler, but
    /// its length varies, and each exit is mispredicted.
    top: u64,
    /// At most one. It is in a vector, because a vector's allocation can fail without aborting the program.
    summary: Vec<Bitmap>,
}

impl Bitmap {
    /// An empty set of numbers below `len`.
    pub(crate) fn new(len: usize) -> Result<Self, OutOfMemory> {
        let count = len.div_ceil(64);
        let mut words = Vec::new();
        words.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
        words.resize(count, 0);
        let mut summary = Vec::new();
        if count > PLAIN_WORDS {
            summary.try_reserve_exact(1).map_err(|_| OutOfMemory)?;
            summary.push(Bitmap::new(count)?);
        }
        Ok(Bitmap { words, top: 0, summary })
    }

    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        let word = (number / 64) as usize;
        self.words[word] |= 1 << (number % 64);
        match self.summary.as_mut_slice() {
            [summary] => summary.insert(number / 64),
            _ => self.top |= 1 << (word % 64),
        }
    }

    /// The fast path of `insert`, without a function call.
    ///
    /// Changes nothing and returns `None` if the summary is a bitmap.
    #[inline(always)]
    pub(crate) fn insert_flat(&mut self, number: u32) -> Option<()> {
        let at = (number / 64) as usize;
        let word = self.words.get_mut(at).filter(|_| self.summary.is_empty())?;
        *word |= 1 << (number % 64);
        self.top |= 1 << (at % 64);
        Some(())
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let word = (number / 64) as usize;
        self.words[word] &= !(1 << (number % 64));
        if self.words[word] == 0 {
            match self.summary.as_mut_slice() {
                [summary] => summary.remove(number / 64),
                _ => self.top &= !(1 << (word % 64)),
            }
        }
    }

    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.words.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// The least number that is not below `from`.
    #[inline]
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        let first = (from / 64) as usize;
        let word = *self.words.get(first)? & (u64::MAX << (from % 64));
        if word != 0 {
            return Some(from / 64 * 64 + word.trailing_zeros());
        }
        let found = match self.summary.as_slice() {
            [summary] => summary.next(from / 64 + 1)? as usize,
            _ => match self.top & (u64::MAX << (first % 64) << 1) {
                0 => return None,
                later => later.trailing_zeros() as usize,
            },
        };
        Some(found as u32 * 64 + self.words[found].trailing_zeros())
    }

    /// The next member after `here` in cyclic order; `here` itself is the last candidate.
    #[inline]
    pub(crate) fn after(&self, here: u32) -> Option<u32> {
        if !self.summary.is_empty() {
            return self.next(here + 1).or_else(|| self.next(0));
        }
        let word = *self.words.get((here / 64) as usize)? & (u64::MAX << (here % 64) << 1);
        if word != 0 {
            return Some(here / 64 * 64 + word.trailing_zeros());
        }
        if self.top == 0 {
            return None;
        }
        // From the next word on, and around to this one.
        let next = here / 64 + 1;
        let at = (next + self.top.rotate_right(next).trailing_zeros()) % 64;
        Some(at * 64 + self.words[at as usize].trailing_zeros())
    }

    /// All members in cyclic order after `here`; `here` itself comes last.
    #[inline]
    pub(crate) fn round(&self, here: u32) -> impl Iterator<Item = u32> {
        let after = core::iter::successors(self.next(here + 1), |&last| self.next(last + 1));
        let before = core::iter::successors(self.next(0), |&last| self.next(last + 1));
        after.chain(before.take_while(move |&number| number <= here))
    }

    pub(crate) fn memory(&self) -> usize {
        let above = self.summary.iter().map(|summary| size_of::<Bitmap>() + summary.memory());
        let above: usize = above.sum();
        self.words.capacity() * size_of::<u64>() + above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_number_is_found_across_words_and_summaries() {
        for len in [1, 2, 63, 64, 65, 256, 257, 4_096, 5_000, 1 << 20] {
            let mut map = Bitmap::new(len as usize).unwrap();
            assert_eq!(map.next(0), None);
            let mut members = alloc::vec![0, len / 3, len / 2, len - 1];
            members.dedup();
            for &member in &members {
                map.insert(member);
            }
            for from in (0..len).step_by(1 + len as usize / 777) {
                assert_eq!(
                    map.next(from),
                    members.iter().copied().find(|&m| m >= from),
                    "{from} of {len}"
                );
                assert_eq!(map.contains(from), members.contains(&from));
                assert_eq!(map.after(from), map.round(from).next(), "after {from} of {len}");
            }
            assert!(map.round(0).eq(members.iter().skip(1).chain(&members[..1]).copied()));
            assert!(map.round(len - 1).eq(members.iter().copied()));
            for &member in &members {
                map.remove(member);
                map.remove(member);
            }
            assert_eq!(map.next(0), None, "{len}");
        }
    }
}
