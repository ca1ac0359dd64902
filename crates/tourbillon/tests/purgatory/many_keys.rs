//! An operation under many keys, some with equal hashes: it is watched once under each of them.

use std::hash::{BuildHasher, Hasher};

use crate::common::{Log, SECOND};
use crate::{End, Flag, Op};
use tourbillon::{Outcome, Purgatory, Timer, VirtualClock};

/// A hasher with this many distinct hashes.
#[derive(Clone)]
struct Hashes(u64);

struct Hashing(u64, u64);

impl BuildHasher for Hashes {
    type Hasher = Hashing;

    fn build_hasher(&self) -> Hashing {
        Hashing(self.0, 0)
    }
}

impl Hasher for Hashing {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.1 = self.1.wrapping_mul(31).wrapping_add(byte.into()));
    }

    fn finish(&self) -> u64 {
        // Spread over all bits, as by a good hasher.
        (self.1 % self.0).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

#[test]
fn each_of_many_keys_is_watched_whatever_their_hashes() {
    let timer = Timer::builder().clock(&VirtualClock::new()).on_driver().build().unwrap();
    for hashes in [1, 2, 5, 1_000_003] {
        let purgatory: Purgatory<u64, Op, Hashes> = Purgatory::with_hasher(&timer, Hashes(hashes));
        for count in [1, 2, 3, 4, 15, 16, 17, 18, 30, 40] {
            // Some of them twice: a repeated key counts once, wherever it is repeated.
            let twice = |key: u64| std::iter::repeat_n(key, if key % 3 == 0 { 2 } else { 1 });
            let keys = || (0..count).flat_map(twice).chain((0..count).filter(|key| key % 5 == 0));
            for checked in 0..count {
                let (flag, log) = (Flag::new(), Log::new());
                let op = Op::flagged(1, &flag, &log);
                let watched = purgatory.try_complete_else_watch(op, keys(), SECOND);
                assert!(matches!(watched, Ok(Outcome::Watched)));
                let place = format!("{hashes} hashes, key {checked} of {count}");
                assert_eq!(purgatory.watched() as u64, count, "{place}");
                flag.set();
                assert_eq!(purgatory.check(&checked), 1, "{place}");
                assert_eq!(log.take(), [(1, End::Completed)], "{place}");
                assert_eq!((purgatory.watched(), purgatory.delayed()), (0, 0), "{place}");
            }
        }
    }
}
