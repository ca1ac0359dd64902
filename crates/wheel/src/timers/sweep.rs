//! Merges nearly empty chunks.
//!
//! A cancel leaves a gap, which the next timer of its slot fills. If none is inserted, nearly empty chunks remain.
//! There are too many when fewer than [`FEW`] timers are pending for each chunk, not counting one chunk of each ring.
//! Then an operation that allocates a chunk first examines a few chunks, in the order of the pool, and empties one with
//! at most `FEW` references: they move to the head of their ring. Every stop of the hand does the same; a failed
//! allocation examines all chunks. A slot that is being scanned is left alone.
//!
//! A count in each chunk would find them directly, but costs one more write for each start and cancel, and a branch
//! misprediction for each chunk.

use super::Timers;
#[cfg(doc)]
use crate::chunks::FEW;
use crate::position::NONE;

/// The number of chunks examined at a time.
const LOOKS: usize = 4;

impl<T> Timers<T> {
    /// If there are too many chunks, examines a few and empties the first that is nearly empty.
    #[inline]
    pub(crate) fn sweep(&mut self) {
        if self.nodes.pending() < self.chunks.least() {
            let _ = (0..LOOKS).any(|_| self.empty_one());
        }
    }

    /// Examines all chunks after a failed allocation. Returns whether one was freed.
    #[cold]
    pub(crate) fn sweep_all(&mut self) -> bool {
        let free = self.chunks.free_len();
        for _ in 0..self.chunks.len() {
            self.empty_one();
        }
        self.chunks.free_len() > free
    }

    /// Examines the next chunk. Returns whether it was emptied.
    #[cold]
    fn empty_one(&mut self) -> bool {
        let (chunk, number) = self.chunks.next_look();
        let Some(slot) = self.slots.get_mut(number as usize) else { return false };
        if planted!("wheel.swept-while-looked-through", false, self.scan.is_of(number)) {
            return false;
        }
        let Some(few) = self.chunks.take_few(slot.head_mut(), chunk) else { return false };
        for node in few.into_iter().filter(|&node| node != NONE) {
            let position = self.chunks.add(slot.head_mut(), number, node);
            let position = position.expect("a chunk has just been freed");
            let node = self.nodes.node_mut(node);
            planted!("wheel.moved-reference-not-told", (), node.set_position(position));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::chunks::{CHUNK, FEW};
    use crate::{HashedWheel, HierarchicalWheel, Key, Kind, Progress, Time, Wheel};
    use alloc::vec::Vec;

    const TIMERS: usize = 100 * CHUNK;

    fn start<K: Kind>(wheel: &mut Wheel<usize, K>, count: usize, due: u64) -> Vec<Key> {
        (0..count).map(|n| wheel.insert(Time::from(due), n).unwrap()).collect()
    }

    /// After most timers of a slot are cancelled, in any order, another slot reuses its chunks.
    fn chunks_come_back<K: Kind>(wheel: impl Fn() -> Wheel<usize, K>) {
        // Each stride is coprime to the number of timers, so every timer is visited once.
        for stride in [1, 3, 7, 31, 33, 77, 501, 6399] {
            let mut wheel = wheel();
            let keys = start(&mut wheel, TIMERS, 300);
            let all = wheel.timers().chunks.len();
            assert_eq!(all - wheel.timers().chunks.free_len(), 100, "all are full");
            let order = || (0..TIMERS).map(|n| n * stride % TIMERS);
            for n in order().filter(|n| n % CHUNK != 0) {
                assert_eq!(wheel.cancel(keys[n]), Some(n));
            }
            wheel.check().unwrap();
            assert_eq!(wheel.timers().chunks.least(), 99 * FEW, "one timer in each chunk");
            let more = start(&mut wheel, 20 * CHUNK, 600);
            wheel.check().unwrap();
            assert_eq!(wheel.timers().chunks.len(), all, "there are enough, stride {stride}");
            for n in order().filter(|n| n % CHUNK == 0) {
                assert_eq!(wheel.cancel(keys[n]), Some(n));
            }
            assert!(more.iter().enumerate().all(|(n, &key)| wheel.cancel(key) == Some(n)));
            wheel.check().unwrap();
            assert_eq!(wheel.timers().chunks.free_len(), wheel.timers().chunks.len());
        }
    }

    #[test]
    fn chunks_come_back_on_both_kinds() {
        chunks_come_back(|| HierarchicalWheel::new(Time::ZERO));
        chunks_come_back(|| HashedWheel::new(Time::ZERO));
    }

    /// Timers that stay do not prevent the gaps of the others from being filled.
    #[test]
    fn gaps_are_filled_beside_timers_that_stay() {
        let mut wheel = HierarchicalWheel::new(Time::ZERO);
        start(&mut wheel, CHUNK, 300);
        let mut keys = start(&mut wheel, TIMERS, 300);
        // With this many timers, the nearly empty chunks do not count as too many.
        start(&mut wheel, 10 * TIMERS, 600);
        let before = wheel.timers().chunks.len();
        let mut random = 1_u64;
        for _ in 0..20 * TIMERS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let n = (random >> 33) as usize % TIMERS;
            assert!(wheel.cancel(keys[n]).is_some());
            keys[n] = wheel.insert(Time::from(300), n).unwrap();
        }
        wheel.check().unwrap();
        let more = wheel.timers().chunks.len() - before;
        assert!(more <= 100, "{more} chunks more");
    }

    #[test]
    fn gaps_are_filled() {
        for stride in [1, 7, 501] {
            let mut wheel = HierarchicalWheel::new(Time::ZERO);
            let mut keys = start(&mut wheel, TIMERS, 300);
            for n in (0..10 * TIMERS).map(|n| n * stride % TIMERS) {
                assert_eq!(wheel.cancel(keys[n]), Some(n));
                keys[n] = wheel.insert(Time::from(300), n).unwrap();
            }
            wheel.check().unwrap();
            let chunks = wheel.timers().chunks.len();
            assert!(chunks < 200, "{chunks} chunks, stride {stride}");
        }
    }

    #[test]
    fn a_slot_that_is_looked_through_is_left_alone() {
        let mut wheel = HashedWheel::with_slots(Time::ZERO, 1, 8).unwrap();
        let keys = start(&mut wheel, TIMERS, 16);
        for n in (0..TIMERS).filter(|n| n % CHUNK != 0) {
            assert_eq!(wheel.cancel(keys[n]), Some(n));
        }
        assert_eq!(wheel.advance(Time::from(16), 10), Progress::More);
        let all = wheel.timers().chunks.len();
        start(&mut wheel, 20 * CHUNK, 1001);
        assert!(wheel.timers().chunks.len() > all, "what holds little may not be moved");
        wheel.check().unwrap();
        assert_eq!(wheel.advance(Time::from(16), usize::MAX), Progress::Done);
        let fired = core::iter::from_fn(|| wheel.pop()).count();
        assert_eq!((fired, wheel.len()), (100, 20 * CHUNK));
        wheel.check().unwrap();
    }
}
