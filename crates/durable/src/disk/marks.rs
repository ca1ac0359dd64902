//! The removed rows of a bucket: a set of generations in memory, built from lists of markers (tombstones).
//!
//! Removing a row from the middle of a large tree rewrites its page; appending its generation to a list costs a few
//! bytes. When a row returns to the same bucket, another marker records that. The last marker wins.

use std::collections::BTreeMap;

use crate::codec::Marks;
use crate::record::Generation;

/// A set of generations, 64 to a word: the generations of a bucket are close together.
#[derive(Clone, Debug, Default)]
pub(super) struct Removed {
    words: BTreeMap<u64, u64>,
}

impl Removed {
    pub(super) fn contains(&self, generation: Generation) -> bool {
        let word = self.words.get(&(generation.0 >> 6)).copied().unwrap_or(0);
        word >> (generation.0 & 63) & 1 == 1
    }

    pub(super) fn set(&mut self, generation: Generation, removed: bool) {
        let (at, bit) = (generation.0 >> 6, 1 << (generation.0 & 63));
        if removed {
            *self.words.entry(at).or_default() |= bit;
        } else if let Some(word) = self.words.get_mut(&at) {
            *word &= !bit;
            if *word == 0 {
                self.words.remove(&at);
            }
        }
    }

    /// The first generations at or after `first`, at most `limit`.
    pub(super) fn from(&self, first: u64, limit: usize) -> Vec<u64> {
        let words = self.words.range(first >> 6..);
        let bits = words.flat_map(|(&at, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at << 6 | bit)
        });
        bits.skip_while(|&generation| generation < first).take(limit).collect()
    }

    pub(super) fn apply(&mut self, marks: &Marks) {
        marks.0.iter().for_each(|&(generation, removed)| self.set(generation, removed));
    }

    /// Its size in words, for the memory limit.
    pub(super) fn words(&self) -> usize {
        self.words.len()
    }
}
