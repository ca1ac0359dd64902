//! A feed: broadcasts items from the runtime's thread to readers, without ever blocking the thread.
//!
//! A slow reader loses the oldest items and gets their number.
//!
//! | field of a reader | the runtime's thread | the reader |
//! |---|---|---|
//! | `items` | appends; drops the oldest beyond the limit | takes the first |
//! | `lost` | counts what it dropped | takes the number first |
//! | `waker`, `filled` | wakes, with no lock held | waits |

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, lock, wait};

/// Maximum number of items that wait for one reader.
const LIMIT: usize = 1024;

/// Selects the items that a reader wants.
type Wanted<T> = Box<dyn Fn(&T) -> bool + Send + Sync>;

pub(crate) struct Feed<T> {
    state: Mutex<State<T>>,
    /// The number of readers. If it is zero, the thread skips the lock. May lag by one turn.
    readers: AtomicUsize,
    /// How many recent items a new reader receives.
    keeps: usize,
}

struct State<T> {
    readers: Vec<Weak<Reader<T>>>,
    kept: VecDeque<T>,
    closed: bool,
}

pub(crate) struct Reader<T> {
    wanted: Wanted<T>,
    state: Mutex<Waiting<T>>,
    filled: Condvar,
}

struct Waiting<T> {
    items: VecDeque<T>,
    lost: u64,
    waker: Option<Waker>,
    closed: bool,
}

/// What a reader receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard<T> {
    /// The next item.
    Item(T),
    /// The reader was slow: this many items were dropped here.
    Lost(u64),
}

impl<T: Clone> Feed<T> {
    pub(crate) fn new(keeps: usize) -> Self {
        let state = State { readers: Vec::new(), kept: VecDeque::new(), closed: false };
        Feed { state: Mutex::new(state), readers: AtomicUsize::new(0), keeps }
    }

    /// Whether there may be a reader.
    pub(crate) fn is_heard(&self) -> bool {
        // Relaxed, pairs with nothing: a late read misses only items that predate the reader.
        self.readers.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn listen(&self, wanted: Wanted<T>) -> Arc<Reader<T>> {
        let mut state = lock(&self.state);
        let items = state.kept.iter().filter(|item| wanted(item)).cloned().collect();
        let waiting = Waiting { items, lost: 0, waker: None, closed: state.closed };
        let reader =
            Arc::new(Reader { wanted, state: Mutex::new(waiting), filled: Condvar::new() });
        state.readers.push(Arc::downgrade(&reader));
        self.readers.store(state.readers.len(), Ordering::Relaxed);
        reader
    }

    /// Sends an item to every reader that wants it.
    pub(crate) fn tell(&self, item: &T) {
        for reader in self.living(|state, keeps| {
            state.kept.extend((keeps > 0).then(|| item.clone()));
            if state.kept.len() > keeps {
                state.kept.pop_front();
            }
        }) {
            if (reader.wanted)(item) {
                reader.push(item.clone());
            }
        }
    }

    /// Ends the feed: no item follows.
    pub(crate) fn close(&self) {
        for reader in self.living(|state, _| state.closed = true) {
            let mut state = lock(&reader.state);
            state.closed = true;
            let waker = state.waker.take();
            drop(state);
            reader.filled.notify_all();
            waker.into_iter().for_each(wake);
        }
    }

    /// Applies `change`, drops the dead readers and returns the live ones.
    fn living(&self, change: impl FnOnce(&mut State<T>, usize)) -> Vec<Arc<Reader<T>>> {
        let mut state = lock(&self.state);
        change(&mut state, self.keeps);
        let readers: Vec<_> = state.readers.iter().filter_map(Weak::upgrade).collect();
        state.readers.retain(|reader| reader.strong_count() > 0);
        self.readers.store(state.readers.len(), Ordering::Relaxed);
        readers
    }
}

impl<T> Reader<T> {
    fn push(&self, item: T) {
        let mut state = lock(&self.state);
        state.items.push_back(item);
        if state.items.len() > LIMIT {
            state.items.pop_front();
            state.lost += 1;
        }
        let waker = state.waker.take();
        drop(state);
        self.filled.notify_one();
        waker.into_iter().for_each(wake);
    }

    /// Waits for the next item, at most `limit`. `None` if the time has passed or no item follows.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Option<Heard<T>> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = lock(&self.state);
        loop {
            if let Some(heard) = state.take() {
                return Some(heard);
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if state.closed || left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            state = wait(&self.filled, state, left);
        }
    }

    /// Polls for the next item, and registers the waker if there is none yet. `None` if no item follows.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Heard<T>>> {
        // Wakers are foreign code: cloned and dropped with no lock held.
        let waker = context.waker().clone();
        let mut state = lock(&self.state);
        if let Some(heard) = state.take() {
            return Poll::Ready(Some(heard));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        let before = state.waker.replace(waker);
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl<T> Waiting<T> {
    fn take(&mut self) -> Option<Heard<T>> {
        match std::mem::take(&mut self.lost) {
            0 => self.items.pop_front().map(Heard::Item),
            lost => Some(Heard::Lost(lost)),
        }
    }
}

/// Wakes and contains a panic. A waker is foreign code and must not end the thread that others wait for.
fn wake(waker: Waker) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // The payload's own drop may panic.
        std::mem::forget(panic);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reader_loses_the_oldest_and_learns_how_many() {
        let feed = Feed::new(2);
        (0..5).for_each(|n| feed.tell(&n));
        assert!(!feed.is_heard());
        let (all, even) = (feed.listen(Box::new(|_| true)), feed.listen(Box::new(|n| n % 2 == 0)));
        assert!(feed.is_heard());
        assert_eq!(all.wait(None), Some(Heard::Item(3)), "what is kept comes first");
        (5..5 + LIMIT).for_each(|n| feed.tell(&n));
        assert_eq!(all.wait(None), Some(Heard::Lost(1)));
        assert_eq!(all.wait(None), Some(Heard::Item(5)));
        assert_eq!(even.wait(None), Some(Heard::Item(4)));
        assert_eq!(even.wait(None), Some(Heard::Item(6)));
        drop(even);
        feed.close();
        assert_eq!((1..LIMIT).filter_map(|_| all.wait(None)).count(), LIMIT - 1);
        assert_eq!(all.wait(None), None, "closed");
        drop(all);
        feed.tell(&9);
        assert!(!feed.is_heard());
        let late = feed.listen(Box::new(|_| true));
        assert_eq!(late.wait(Some(Duration::ZERO)), Some(Heard::Item(4 + LIMIT)));
    }
}
