//! Selects the first rows of an order, with memory for the selected rows only.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::record::{Place, Record};

/// Keeps the least rows pushed, at most `limit`.
pub(super) struct Least<K> {
    limit: usize,
    heap: BinaryHeap<Keyed<K>>,
}

struct Keyed<K>(K, (Place, Record));

impl<K: Ord> Least<K> {
    pub(super) fn new(limit: usize) -> Self {
        Least { limit, heap: BinaryHeap::new() }
    }

    pub(super) fn push(&mut self, key: K, row: (Place, Record)) {
        self.heap.push(Keyed(key, row));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    pub(super) fn into_rows(self) -> Vec<(Place, Record)> {
        self.heap.into_sorted_vec().into_iter().map(|Keyed(_, row)| row).collect()
    }
}

impl<K: Ord> PartialEq for Keyed<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<K: Ord> Eq for Keyed<K> {}
impl<K: Ord> PartialOrd for Keyed<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<K: Ord> Ord for Keyed<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
