//! The obvious delay queue without a library: a binary heap behind a mutex, and a condition variable.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

pub struct Heap {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    heap: BinaryHeap<Entry>,
    closed: bool,
}

struct Entry {
    at: Instant,
    value: u64,
}

impl Heap {
    pub fn new() -> Self {
        let state = State { heap: BinaryHeap::new(), closed: false };
        Heap { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub fn put_at(&self, at: Instant, value: u64) {
        let mut state = self.state.lock().unwrap();
        let earliest = state.heap.peek().is_none_or(|first| at < first.at);
        state.heap.push(Entry { at, value });
        drop(state);
        if earliest {
            self.changed.notify_one();
        }
    }

    /// Waits for a due value; `None` once the queue is closed.
    pub fn take(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap();
        loop {
            if state.closed {
                return None;
            }
            let now = Instant::now();
            state = match state.heap.peek() {
                Some(first) if first.at <= now => {
                    let value = state.heap.pop().map(|entry| entry.value);
                    // Without this, no waiting thread would learn of the values behind the first one.
                    if !state.heap.is_empty() {
                        self.changed.notify_one();
                    }
                    return value;
                }
                Some(first) => {
                    let left = first.at - now;
                    self.changed.wait_timeout(state, left).unwrap().0
                }
                None => self.changed.wait(state).unwrap(),
            };
        }
    }

    pub fn close(&self) {
        self.state.lock().unwrap().closed = true;
        self.changed.notify_all();
    }
}

/// The earliest entry is the greatest, because `BinaryHeap` pops the greatest first.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at).then_with(|| other.value.cmp(&self.value))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
