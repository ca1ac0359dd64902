//! Opening a store with deliveries that are out. In real time, because one thread waits for another.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tourbillon_durable::memory::MemoryStore;
use tourbillon_durable::store::{Head, Loaded, Op, Query, Snapshot, Store, StoreError};
use tourbillon_durable::{Conflict, Durable, Error, Limits};

use crate::{SECOND, poll_once, seconds};

/// A store that outlives its runtime.
struct Slow {
    inner: Arc<Mutex<MemoryStore>>,
    /// Each load tells of itself and waits for permission, for as long as anybody is there to give it.
    gate: Option<(Sender<()>, Receiver<()>)>,
}

impl Slow {
    fn inner(&self) -> MutexGuard<'_, MemoryStore> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Slow {
    fn open(&mut self) -> Result<Head, StoreError> {
        self.inner().open()
    }

    fn commit(&mut self, epoch: u64, ops: &[Op]) -> Result<(), StoreError> {
        self.inner().commit(epoch, ops)
    }

    fn load(&mut self, query: &Query) -> Result<Loaded, StoreError> {
        if let Some((comes, may)) = &self.gate {
            let _ = (comes.send(()), may.recv());
        }
        self.inner().load(query)
    }

    fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        self.inner().snapshot()
    }
}

#[test]
fn requests_to_a_store_that_opens_take_bounded_memory() {
    let inner = Arc::new(Mutex::new(MemoryStore::new()));
    let store = Slow { inner: inner.clone(), gate: None };
    let durable = Durable::builder().with_store(store).unwrap();
    let queue = durable.queue("orders").unwrap().lease(3600 * SECOND).unwrap();
    let timers = (0..9).map(|_| seconds(0)).collect();
    queue.schedule_all(timers, Conflict::Refuse).wait().unwrap();
    for _ in 0..9 {
        let [delivery] = queue.receive(1, 20 * SECOND).wait().unwrap().try_into().unwrap();
        delivery.detach();
    }
    durable.close();

    let ((comes, coming), (permits, may)) = (channel(), channel());
    let limits = Limits { page: 1, ..Limits::default() };
    let store = Slow { inner, gate: Some((comes, may)) };
    let durable = Durable::builder().limits(limits).with_store(store).unwrap();
    let queue = durable.queue("orders").unwrap();
    // Each may need 20 MB of an answer, and 64 MiB may wait.
    let large = || queue.receive(100_000, Duration::ZERO);
    let waiting = [large(), large(), large()];
    for _ in 0..6 {
        permits.send(()).unwrap();
        coming.recv_timeout(20 * SECOND).unwrap();
    }
    let next = poll_once(&mut large());
    drop(permits);
    assert!(matches!(next, Poll::Ready(Err(Error::Full))), "{next:?}");
    for receive in waiting {
        assert!(receive.wait().unwrap().is_empty());
    }
}
