//! A cache whose entries expire, stored only in a `DelayQueue`.
//!
//! `cargo run -p tourbillon --features tasks --example cache`
//!
//! One task waits for entries to expire, while other code reads and writes. Each read extends the life of its entry.
//! This works on any runtime; here the runtime is a plain `block_on`, and time is real.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_lite::future;
use tourbillon::tasks::{self, DelayQueue, Expired};

/// Entries expire this long after they were last read.
const IDLE: Duration = Duration::from_millis(300);

#[derive(Clone)]
struct Cache {
    entries: Arc<Mutex<DelayQueue<&'static str, u32>>>,
    began: Instant,
}

impl Cache {
    fn new() -> Self {
        Cache { entries: Arc::default(), began: Instant::now() }
    }

    fn insert(&self, key: &'static str, value: u32) {
        // The task that waits for the next expiry wakes in time, even if this entry is the next to expire.
        self.entries().insert(key, value, IDLE).expect("there is memory");
        self.say(&format!("insert {key} = {value}"));
    }

    fn get(&self, key: &str) -> Option<u32> {
        let mut entries = self.entries();
        let value = entries.get(key).copied();
        // This has no effect on an expired key.
        entries.reset(key, IDLE);
        drop(entries);
        self.say(&format!("read   {key}: {value:?}"));
        value
    }

    /// The next entry that expires, or `None` when the cache is empty.
    async fn expired(&self) -> Option<Expired<&'static str, u32>> {
        poll_fn(|context| self.entries().poll_expired(context)).await
    }

    fn entries(&self) -> MutexGuard<'_, DelayQueue<&'static str, u32>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, what: &str) {
        println!("{:>5} ms  {what}", self.began.elapsed().as_millis());
    }
}

fn main() {
    let cache = Cache::new();
    cache.insert("ada", 1815);
    cache.insert("grace", 1906);
    let janitor = async {
        let mut order = Vec::new();
        while let Some(entry) = cache.expired().await {
            assert!(Instant::now() >= entry.deadline, "never early");
            cache.say(&format!("        {} has expired", entry.key));
            order.push(entry.key);
        }
        order
    };
    let readers = async {
        for _ in 0..3 {
            tasks::sleep(Duration::from_millis(150)).await;
            assert_eq!(cache.get("ada"), Some(1815), "every read keeps it alive");
        }
        assert_eq!(cache.get("grace"), None, "nobody has read it for too long");
        tasks::sleep(Duration::from_millis(100)).await;
        cache.insert("edsger", 1930);
    };
    let (order, ()) = future::block_on(future::zip(janitor, readers));
    assert_eq!(order, ["grace", "ada", "edsger"]);
    cache.say("the cache is empty");
}
