//! The straightforward implementation: one map of lists under one mutex, and a task with a sleep for each operation.
//!
//! The thread that completes an operation marks it, removes it from the lists of all its keys by linear search, and
//! aborts its task. Two threads may try a condition at once, but only one completes the operation.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use super::contestant::{Contestant, Flags, Time};

/// Under virtual time, this many tasks at a time are polled for the first time.
const TOGETHER: usize = 64;

pub struct Plain {
    map: Arc<Map>,
    runtime: Runtime,
    time: Time,
    added: AtomicUsize,
}

struct Map {
    lists: Mutex<HashMap<u64, Vec<Arc<Waiting>>>>,
    flags: &'static Flags,
    /// How often tasks were polled.
    polls: AtomicUsize,
}

struct Waiting {
    number: u32,
    keys: [u64; 3],
    over: AtomicBool,
    sleep: OnceLock<AbortHandle>,
}

impl Map {
    /// Marks an operation and removes it from all keys; `false` if it was already marked.
    fn end(&self, waiting: &Arc<Waiting>) -> bool {
        if waiting.over.swap(true, AcqRel) {
            return false;
        }
        let mut lists = self.lists.lock().unwrap();
        for key in waiting.keys {
            let Some(list) = lists.get_mut(&key) else { continue };
            if let Some(place) = list.iter().position(|other| Arc::ptr_eq(other, waiting)) {
                list.remove(place);
            }
            if list.is_empty() {
                lists.remove(&key);
            }
        }
        true
    }

    fn complete(&self, waiting: &Arc<Waiting>) -> bool {
        let completed = self.flags.is_set(waiting.number) && self.end(waiting);
        if completed {
            waiting.sleep.get().map(AbortHandle::abort);
        }
        completed
    }
}

impl Contestant for Plain {
    const NAME: &'static str = "map of lists";
    const SETTINGS: &'static str =
        "Mutex<HashMap<Key, Vec<Arc<Op>>>>, std's hasher; a tokio task with a sleep each";

    fn new(flags: &'static Flags, time: Time) -> Self {
        let runtime = match time {
            Time::Virtual => Builder::new_current_thread().enable_time().start_paused(true).build(),
            Time::Real => Builder::new_multi_thread().worker_threads(1).enable_time().build(),
        };
        let map = Map { lists: Mutex::default(), flags, polls: AtomicUsize::new(0) };
        let runtime = runtime.expect("a runtime");
        Plain { map: Arc::new(map), runtime, time, added: AtomicUsize::new(0) }
    }

    fn add(&self, number: u32, keys: [u64; 3], timeout: Duration) {
        if self.map.flags.is_set(number) {
            return;
        }
        let (over, sleep) = (AtomicBool::new(false), OnceLock::new());
        let waiting = Arc::new(Waiting { number, keys, over, sleep });
        {
            let mut lists = self.map.lists.lock().unwrap();
            for key in keys {
                lists.entry(key).or_default().push(waiting.clone());
            }
        }
        let (map, own) = (self.map.clone(), waiting.clone());
        let task = self.runtime.spawn(async move {
            map.polls.fetch_add(1, Relaxed);
            tokio::time::sleep(timeout).await;
            map.polls.fetch_add(1, Relaxed);
            if !map.complete(&own) && map.end(&own) {
                map.flags.count_expired();
            }
        });
        let _ = waiting.sleep.set(task.abort_handle());
        if self.map.complete(&waiting) {
            return;
        }
        if self.time == Time::Virtual && self.added.fetch_add(1, Relaxed) % TOGETHER == TOGETHER - 1
        {
            self.runtime.block_on(tokio::task::yield_now());
        }
    }

    fn check(&self, key: u64) -> usize {
        let waiting = self.map.lists.lock().unwrap().get(&key).cloned().unwrap_or_default();
        waiting.iter().filter(|waiting| self.map.complete(waiting)).count()
    }

    fn pass(&self, by: Duration) {
        self.runtime.block_on(async {
            self.settle().await;
            tokio::time::advance(by).await;
            self.settle().await;
        });
    }
}

impl Plain {
    /// Yields until no task is polled any more. Each yield polls only some tasks.
    async fn settle(&self) {
        loop {
            let before = self.map.polls.load(Relaxed);
            tokio::task::yield_now().await;
            if self.map.polls.load(Relaxed) == before {
                return;
            }
        }
    }
}
