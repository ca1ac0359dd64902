//! Closing with deliveries in progress, and limits. In real time where one thread waits for another.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tourbillon_durable::memory::MemoryStore;
use tourbillon_durable::store::{Head, Loaded, Op, Query, Snapshot, Store, StoreError};
use tourbillon_durable::{Conflict, Durable, Limits, Refused};

use crate::{SECOND, memory_with, seconds, take};

/// A store that outlives its runtime and whose commits block on `gate`.
#[derive(Clone)]
struct Gated {
    inner: Arc<Mutex<MemoryStore>>,
    gate: Arc<Mutex<()>>,
    /// Notified when a commit reaches the gate.
    waits: Sender<()>,
}

impl Gated {
    fn inner(&self) -> MutexGuard<'_, MemoryStore> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Gated {
    fn open(&mut self) -> Result<Head, StoreError> {
        self.inner().open()
    }

    fn commit(&mut self, epoch: u64, ops: &[Op]) -> Result<(), StoreError> {
        let _ = self.waits.send(());
        drop(self.gate.lock());
        self.inner().commit(epoch, ops)
    }

    fn load(&mut self, query: &Query) -> Result<Loaded, StoreError> {
        self.inner().load(query)
    }

    fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        self.inner().snapshot()
    }
}

#[test]
fn what_is_handed_out_while_it_closes_is_given_back() {
    let (waits, waiting) = channel();
    let inner = Arc::new(Mutex::new(MemoryStore::new()));
    let store = Gated { inner, gate: Arc::default(), waits };
    let durable = Durable::builder().with_store(store.clone()).unwrap();
    let queue = durable.queue("orders").unwrap().lease(3600 * SECOND).unwrap();
    queue.schedule(seconds(0).key("a").unwrap()).wait().unwrap();
    while waiting.try_recv().is_ok() {}
    let closed = store.gate.lock().unwrap();
    let receive = queue.receive(1, 20 * SECOND);
    waiting.recv_timeout(20 * SECOND).unwrap();
    // While the hand-out is being written, its taker goes away, and then the runtime is closed.
    drop(receive);
    let closing = thread::spawn({
        let durable = durable.clone();
        move || durable.close()
    });
    while !durable.is_closed() {
        thread::sleep(Duration::from_millis(1));
    }
    drop(closed);
    closing.join().unwrap();
    drop((durable, queue));

    let durable = Durable::builder().with_store(store).unwrap();
    let queue = durable.queue("orders").unwrap();
    let [again] = take(&queue).try_into().unwrap();
    assert_eq!((again.key(), again.attempt()), ("a", 2));
}

#[test]
fn the_number_of_timers_is_limited() {
    let (_clock, durable, queue) = memory_with(Limits { timers: 3, ..Limits::default() });
    let other = durable.queue("other").unwrap();
    let key = |key: &str| seconds(60).key(key).unwrap();
    queue.schedule(key("a")).wait().unwrap();
    other.schedule(key("b")).wait().unwrap();
    let many = vec![seconds(1), seconds(2)];
    let refused = queue.schedule_all(many, Conflict::Refuse).wait().unwrap_err();
    assert_eq!((refused.reason, refused.timers.len()), (Refused::TooMany, 2));
    queue.schedule(key("c")).wait().unwrap();
    assert_eq!(queue.schedule(key("d")).wait().unwrap_err().reason, Refused::TooMany);
    // A replacement does not increase the count.
    queue.replace(key("a")).wait().unwrap();
    // Cancelled timers do not count, even while they are remembered. Cleared timers do not count either.
    queue.cancel("a").wait().unwrap();
    queue.schedule(key("d")).wait().unwrap();
    assert_eq!(queue.replace(key("a")).wait().unwrap_err().reason, Refused::TooMany);
    other.clear().wait().unwrap();
    queue.replace(key("a")).wait().unwrap();
    assert_eq!(other.schedule(key("b")).wait().unwrap_err().reason, Refused::TooMany);
}

#[test]
fn what_waits_and_what_is_out_is_limited_in_bytes() {
    let large = vec![b'x'; 100_000];
    let limits = Limits { waiting_bytes: 1 << 20, out_bytes: 1 << 20, ..Limits::default() };
    let (_clock, _durable, queue) = memory_with(limits);
    for _ in 0..40 {
        queue.schedule(seconds(0).payload(large.clone())).wait().unwrap();
    }
    let mut taken = 0;
    loop {
        let deliveries = take(&queue);
        if deliveries.is_empty() {
            break;
        }
        // A receive stops with the first timer that exceeds the limit.
        assert!(deliveries.len() <= 11, "{}", deliveries.len());
        taken += deliveries.len();
        deliveries.into_iter().for_each(|delivery| assert_eq!(delivery.ack().wait(), Ok(None)));
    }
    assert_eq!(taken, 40);
}
