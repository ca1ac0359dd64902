//! A sample of faults and twins, because trying all takes too long. A hash of the source chooses it.
//!
//! The same source always selects the same ones, so a failure can be reproduced. Any change to the source selects
//! others.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use crate::shell::{Outcome, root, tracked};

/// A pseudo-random selection, determined by a seed.
pub(crate) struct Sample {
    seed: u64,
}

impl Sample {
    /// A sample with this seed.
    pub(crate) fn with_seed(seed: u64) -> Self {
        Sample { seed }
    }

    /// A sample with the hash of all files of the repository as its seed.
    pub(crate) fn of_source() -> Outcome<Self> {
        Ok(Sample { seed: hash_files(|_| true)? })
    }

    /// The seed, to reproduce the selection.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Selects at most `most`, keeping their order.
    pub(crate) fn choose<T>(&self, all: Vec<T>, most: usize) -> Vec<T> {
        let rank = |index: usize| {
            let mut hasher = DefaultHasher::new();
            (self.seed, index).hash(&mut hasher);
            hasher.finish()
        };
        let mut ranks: Vec<u64> = (0..all.len()).map(rank).collect();
        ranks.sort_unstable();
        let last = most.min(ranks.len()).checked_sub(1).map(|last| ranks[last]);
        let all = all.into_iter().enumerate();
        all.filter(|(index, _)| last.is_some_and(|last| rank(*index) <= last))
            .map(|(_, one)| one)
            .collect()
    }
}

/// A hash of the selected files of the repository and of their names.
pub(crate) fn hash_files(is_chosen: impl Fn(&Path) -> bool) -> Outcome<u64> {
    let mut hasher = DefaultHasher::new();
    for file in tracked()?.into_iter().filter(|file| is_chosen(file)) {
        file.hash(&mut hasher);
        std::fs::read(root().join(&file)).unwrap_or_default().hash(&mut hasher);
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_chooses_the_same_again_and_another_others() {
        let choose = |seed| Sample::with_seed(seed).choose((0..100).collect(), 10);
        assert_eq!(choose(1), choose(1));
        assert_eq!(choose(1).len(), 10);
        assert_ne!(choose(1), choose(2));
        assert_eq!(Sample::with_seed(1).choose(vec![1, 2], 10), [1, 2]);
        assert!(Sample::with_seed(1).choose(vec![1, 2], 0).is_empty());
    }
}
