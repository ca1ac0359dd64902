//! A hash table for keys of any type; the caller computes the hash.
//!
//! The table is used under a lock. The caller hashes a key before locking and passes the hash, so growing and shrinking
//! run no user code; under the lock, keys are only compared. Keys with the same hash share a chain, so a hash alone
//! never identifies a key. Removed keys and values are returned, so that the caller drops them without the lock.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::{Entry, VacantEntry};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

/// A table with a greater capacity than this shrinks when most of it is empty.
const CROWD: usize = 1 << 10;

/// The hash of a key, mixed over all bits because the user's hasher may be weak.
#[inline]
pub(crate) fn hash<S: BuildHasher, Q: Hash + ?Sized>(hasher: &S, key: &Q) -> u64 {
    let spread = hasher.hash_one(key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    spread ^ (spread >> 32)
}

/// The table that a hash belongs to. The number of tables is a power of two.
#[inline]
pub(crate) fn choose<T>(tables: &[T], hash: u64) -> &T {
    // Uses neither the lowest nor the highest bits, because the table itself uses those.
    &tables[(hash >> 40) as usize & (tables.len() - 1)]
}

/// The number of tables: so many that two threads seldom use the same one.
pub(crate) fn tables() -> usize {
    if cfg!(any(loom, shuttle)) {
        return 2;
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors * 4).next_power_of_two().min(256)
}

pub(crate) struct KeyTable<K, V> {
    chains: ByHash<Chain<K, V>>,
}

/// The keys with the same hash: nearly always a single key.
pub(crate) struct Chain<K, V> {
    first: (K, V),
    more: More<K, V>,
}

/// The further keys of a chain. Boxed, because they are nearly always absent: an empty `Option<Box>` is a third of the
/// size of a `Vec`, which keeps the table's array of chains small.
type More<K, V> = Option<Box<Vec<(K, V)>>>;

/// The place of a key: its value if it is present, otherwise where to insert it.
pub(crate) enum Spot<'a, K, V> {
    Taken(&'a mut V),
    Free(Free<'a, K, V>),
}

/// Where a key can be inserted.
pub(crate) enum Free<'a, K, V> {
    Alone(VacantEntry<'a, u64, Chain<K, V>>),
    /// Another key has the same hash.
    Beside(&'a mut More<K, V>),
}

/// Returned by `look` in [`take`](KeyTable::take): whether the value stays in the table.
pub(crate) struct Stays(pub(crate) bool);

impl<'a, K, V> Free<'a, K, V> {
    /// Inserts the key. Runs no user code.
    #[inline]
    pub(crate) fn put(self, key: K, value: V) -> &'a mut V {
        match self {
            Free::Alone(vacant) => {
                &mut vacant.insert(Chain { first: (key, value), more: None }).first.1
            }
            Free::Beside(more) => {
                let more = more.get_or_insert_default();
                more.push((key, value));
                let place = more.len() - 1;
                &mut more[place].1
            }
        }
    }
}

impl<K, V> KeyTable<K, V> {
    pub(crate) fn new() -> Self {
        KeyTable { chains: HashMap::default() }
    }

    #[inline]
    pub(crate) fn get_mut<Q>(&mut self, hash: u64, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let chain = self.chains.get_mut(&hash)?;
        if chain.first.0.borrow() == key {
            return Some(&mut chain.first.1);
        }
        let more = planted!("blind.colliding-key-is-not-found", None, chain.more.as_mut())?;
        let pair = more.iter_mut().find(|pair| pair.0.borrow() == key)?;
        Some(&mut pair.1)
    }

    /// Finds the place of a key. Keys are compared here, not during the insertion.
    #[inline]
    pub(crate) fn spot(&mut self, hash: u64, key: &K) -> Spot<'_, K, V>
    where
        K: Eq,
    {
        let chain = match self.chains.entry(hash) {
            Entry::Vacant(vacant) => return Spot::Free(Free::Alone(vacant)),
            Entry::Occupied(occupied) => occupied.into_mut(),
        };
        if chain.first.0 == *key {
            return Spot::Taken(&mut chain.first.1);
        }
        let more = planted!("keyed.colliding-key-is-put-twice", None, chain.more.as_ref());
        let place = more.and_then(|more| more.iter().position(|pair| pair.0 == *key));
        match (place, &mut chain.more) {
            (Some(place), Some(more)) => Spot::Taken(
                &mut more
                    [planted!("fifth.third-of-three-colliding-keys-replaces-the-second", 0, place)]
                .1,
            ),
            (_, more) => Spot::Free(Free::Beside(more)),
        }
    }

    /// Calls `look` with the values of this hash; returns its first `Some`.
    #[inline]
    pub(crate) fn find<R>(
        &mut self,
        hash: u64,
        mut look: impl FnMut(&mut V) -> Option<R>,
    ) -> Option<R> {
        let chain = self.chains.get_mut(&hash)?;
        if let Some(found) = look(&mut chain.first.1) {
            return Some(found);
        }
        let more =
            planted!("more.retry-of-a-colliding-key-is-not-tried", None, chain.more.as_mut());
        more?.iter_mut().find_map(|pair| look(&mut pair.1))
    }

    /// As `find`, but removes the value and its key unless `look` says to keep them. A large table that is mostly empty
    /// releases memory.
    #[inline]
    pub(crate) fn take<R>(
        &mut self,
        hash: u64,
        mut look: impl FnMut(&mut V) -> Option<(R, Stays)>,
    ) -> Option<(R, Option<(K, V)>)> {
        // `entry` reserves capacity even if nothing is found. Skip it, so that an emptied table stays without memory.
        if self.chains.is_empty() {
            return None;
        }
        let Entry::Occupied(mut occupied) = self.chains.entry(hash) else { return None };
        let chain = occupied.get_mut();
        if let Some((found, Stays(stays))) = look(&mut chain.first.1) {
            if stays {
                return Some((found, None));
            }
            let next = chain.more.as_mut().and_then(|more| more.pop());
            if let Some(next) = planted!("keyed.colliding-key-goes-with-the-first", None, next) {
                let removed = planted!(
                    "fourth.other-of-two-colliding-keys-goes",
                    next,
                    std::mem::replace(&mut chain.first, next)
                );
                return Some((found, Some(removed)));
            }
            let chain = occupied.remove();
            self.shrink();
            return Some((found, Some(chain.first)));
        }
        let more = chain.more.as_mut()?;
        let met = |(place, pair): (usize, &mut (K, V))| Some((place, look(&mut pair.1)?));
        let (place, (found, Stays(stays))) = more.iter_mut().enumerate().find_map(met)?;
        Some((
            found,
            (planted!("third.value-leaves-a-chain-at-its-first-look", true, !stays)).then(|| {
                let place =
                    planted!("sixth.last-key-of-a-chain-goes-for-another", more.len() - 1, place);
                more.swap_remove(place)
            }),
        ))
    }

    /// Shrinks the table if seven eighths of its capacity are free, so the cost is amortized.
    #[inline]
    fn shrink(&mut self) {
        let (len, room) = (self.chains.len(), self.chains.capacity());
        if planted!("keyed.crowd-of-keys-keeps-its-memory", false, room > CROWD && len < room / 8) {
            self.chains.shrink_to(len * 2);
        } else if len == 0 && room > 16 {
            self.chains = HashMap::default();
        }
    }

    /// Empties the table and returns its contents.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let chains = std::mem::take(&mut self.chains);
        chains.into_values().flat_map(|chain| {
            std::iter::once(chain.first).chain(
                planted!("keyed.clear-forgets-colliding-keys", None, chain.more)
                    .into_iter()
                    .flat_map(|more| *more),
            )
        })
    }
}

/// A map from hashes.
pub(crate) type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// A hasher that returns the hash it is given.
#[derive(Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are hashed")
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_hash_are_told_apart() {
        let mut table = KeyTable::new();
        for key in ["a", "b", "c"] {
            let Spot::Free(free) = table.spot(7, &key) else { panic!("{key} is there") };
            assert_eq!(free.put(key, key.to_owned()), key);
        }
        for key in ["a", "b", "c"] {
            assert!(matches!(table.spot(7, &key), Spot::Taken(value) if value == key));
        }
        assert_eq!(table.get_mut(7, "c").map(|value| value.as_str()), Some("c"));
        assert!(table.get_mut(7, "d").is_none() && table.get_mut(8, "a").is_none());
        assert_eq!(table.find(7, |value| (value == "b").then_some(1)), Some(1));

        // Takes the first value, one in the middle, and the last.
        let take = |key| move |value: &mut String| (value == key).then_some(((), Stays(false)));
        let taken = table.take(7, take("a")).and_then(|taken| taken.1);
        assert_eq!(taken.map(|pair| pair.0), Some("a"));
        assert!(table.take(7, take("a")).is_none());
        assert!(table.get_mut(7, "b").is_some() && table.get_mut(7, "c").is_some());
        assert_eq!(table.take_all().count(), 2);
        assert!(table.get_mut(7, "b").is_none());
    }

    #[test]
    fn a_crowd_of_keys_leaves_no_memory_behind() {
        let mut table = KeyTable::new();
        for hash in 0..100_000 {
            let Spot::Free(free) = table.spot(hash, &hash) else { panic!("{hash} is there") };
            free.put(hash, ());
        }
        let room = table.chains.capacity();
        let go = |(): &mut ()| Some(((), Stays(false)));
        for hash in 0..99_900 {
            assert!(table.take(hash, go).is_some());
        }
        assert!(table.chains.capacity() < room / 64, "{} of {room}", table.chains.capacity());
        for hash in 99_900..100_000 {
            assert!(table.get_mut(hash, &hash).is_some() && table.take(hash, go).is_some());
        }
        assert_eq!(table.chains.capacity(), 0);
        assert!(table.take(7, go).is_none());
        assert_eq!(table.chains.capacity(), 0, "who is looked for in vain takes no room");
    }

    #[test]
    fn a_poor_hasher_is_spread() {
        #[derive(Default)]
        struct Poor(u64);
        impl Hasher for Poor {
            fn finish(&self) -> u64 {
                self.0
            }
            fn write(&mut self, bytes: &[u8]) {
                self.0 += u64::from(bytes[0]);
            }
        }
        let hasher = BuildHasherDefault::<Poor>::default();
        let tables: [usize; 16] = std::array::from_fn(|n| n);
        let mut met = [0; 16];
        for key in 0..=255_u8 {
            met[*choose(&tables, hash(&hasher, &key))] += 1;
        }
        assert!(met.iter().all(|&keys| (4..=64).contains(&keys)), "{met:?}");
    }
}
