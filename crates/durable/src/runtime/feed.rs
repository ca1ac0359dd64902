//! A feed: what the runtime's thread tells those who listen. It waits for nobody: a reader that is slow loses the
//! oldest items and is told how many.
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

/// The most items that wait for a reader.
const LIMIT: usize = 1024;

/// Which items a reader wants.
type Wanted<T> = Box<dyn Fn(&T) -> bool + Send + Sync>;

pub(crate) struct Feed<T> {
    state: Mutex<State<T>>,
    /// How many readers there are, for the thread that need not lock to find none. It may be late by a turn.
    readers: AtomicUsize,
    /// How many of the last items a new reader gets.
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

/// What a reader gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard<T> {
    /// The next one.
    Item(T),
    /// The reader was slow, and so many were lost here.
    Lost(u64),
}

impl<T: Clone> Feed<T> {
    pub(crate) fn new(keeps: usize) -> Self {
        let state = State { readers: Vec::new(), kept: VecDeque::new(), closed: false };
        Feed { state: Mutex::new(state), readers: AtomicUsize::new(0), keeps }
    }

    /// Whether somebody may listen.
    pub(crate) fn is_heard(&self) -> bool {
        // Pairs with nothing: an item that is told a turn too late is one from before the reader came.
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

    /// Tells an item to everybody who wants it.
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

    /// Nothing follows.
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

    /// The readers that are there; those that are gone are forgotten.
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

    /// Waits for the next item, no longer than `limit`. `None`: it has passed, or nothing follows.
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

    /// The next item, or a waker that is woken when it is there; `None`: nothing follows.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Heard<T>>> {
        // Wakers are cloned and dropped with no lock held: they are foreign code.
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

/// The waker of a task is foreign code: its panic must not end the thread that others wait for.
fn wake(waker: Waker) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // What it carries may panic when it is dropped.
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
