//! A store that fails: the errors for callers, and recovery in the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use tourbillon::VirtualClock;
use tourbillon_durable::memory::{MemoryStore, Survival};
use tourbillon_durable::store::{Head, Loaded, Op, Query, Snapshot, Store, StoreError};
use tourbillon_durable::values::Retry;
use tourbillon_durable::{
    Durable, Error, Health, Heard, NewTimer, Notice, Queue, Refused, Webhook,
};

use crate::{SECOND, poll_once, seconds, take};

const WORKS: u8 = 0;
/// The next commit fails, and its frame is lost.
const LOSES: u8 = 1;
/// The next commit fails, and its frame is on disk.
const FAILS: u8 = 2;
/// The next commit panics.
const PANICS: u8 = 3;
/// Every operation fails.
const DOWN: u8 = 4;
/// Every commit fails, until the store has been opened a thousand times.
const OPENS: u8 = 5;

/// The mode of one operation after the failure of this one.
const fn then(mode: u8, next: u8) -> u8 {
    mode | next << 4
}

struct Fragile {
    inner: MemoryStore,
    mode: Arc<AtomicU8>,
    opens: Arc<AtomicU32>,
}

impl Fragile {
    fn new(mode: &Arc<AtomicU8>) -> Self {
        Fragile { inner: MemoryStore::new(), mode: mode.clone(), opens: Arc::default() }
    }
}

impl Store for Fragile {
    fn open(&mut self) -> Result<Head, StoreError> {
        if self.opens.fetch_add(1, SeqCst) > 1000 {
            let _ = self.mode.compare_exchange(OPENS, WORKS, SeqCst, SeqCst);
        }
        match self.mode.load(SeqCst) {
            DOWN => Err(StoreError::Failed("no space left on device".into())),
            _ => self.inner.open(),
        }
    }

    fn commit(&mut self, epoch: u64, ops: &[Op]) -> Result<(), StoreError> {
        let modes = self.mode.load(SeqCst);
        let (mode, next) = (modes & 15, modes >> 4);
        if mode == WORKS {
            return self.inner.commit(epoch, ops);
        }
        self.inner.write(epoch, ops)?;
        let survival = if mode == FAILS { Survival::Whole } else { Survival::Lost };
        self.inner.crash(|| survival);
        if mode != DOWN && mode != OPENS {
            self.mode.store(next, SeqCst);
        }
        assert!(mode != PANICS, "a page is damaged");
        Err(StoreError::Failed("no space left on device".into()))
    }

    fn load(&mut self, query: &Query) -> Result<Loaded, StoreError> {
        self.inner.load(query)
    }

    fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        self.inner.snapshot()
    }
}

fn fragile() -> (VirtualClock, Queue, Arc<AtomicU8>) {
    let (clock, durable, mode) = fragile_durable();
    (clock, durable.queue("orders").unwrap(), mode)
}

fn fragile_durable() -> (VirtualClock, Durable, Arc<AtomicU8>) {
    let (clock, mode) = (VirtualClock::new(), Arc::new(AtomicU8::new(WORKS)));
    let durable = Durable::builder().clock(&clock).with_store(Fragile::new(&mode)).unwrap();
    (clock, durable, mode)
}

#[test]
fn what_was_in_a_failed_commit_is_unknown_and_the_next_request_works() {
    for (fails, there) in [(LOSES, false), (FAILS, true), (PANICS, false)] {
        let (clock, queue, mode) = fragile();
        queue.schedule(seconds(60).key("before").unwrap()).wait().unwrap();
        mode.store(fails, SeqCst);
        let failed = queue.schedule(seconds(60).key("in it").unwrap()).wait().unwrap_err();
        assert!(matches!(failed.reason, Refused::Request(Error::Unknown(_))), "{failed}");
        assert_eq!(failed.timers.len(), 1);
        assert_eq!(queue.get("in it").wait().unwrap().is_some(), there);
        queue.schedule(seconds(60).key("after").unwrap()).wait().unwrap();
        clock.advance(60 * SECOND).unwrap();
        assert_eq!(take(&queue).len(), 2 + usize::from(there));
    }
}

#[test]
fn while_the_store_is_down_nothing_happens_and_those_who_wait_keep_waiting() {
    let (clock, queue, mode) = fragile();
    queue.schedule(seconds(60)).wait().unwrap();
    let waiting = queue.receive(1, 3600 * SECOND);
    mode.store(DOWN, SeqCst);
    assert!(queue.schedule(seconds(1)).wait().is_err());
    let refused = queue.count().wait().unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused}");
    clock.advance(59 * SECOND).unwrap();
    let later = queue.receive(1, 3600 * SECOND);
    mode.store(WORKS, SeqCst);
    // The runtime retries opening the store at least once a second.
    clock.advance(SECOND).unwrap();
    assert_eq!(waiting.wait().unwrap().len(), 1, "handed out by the store that was opened anew");
    assert_eq!(queue.count().wait().unwrap().unwrap().delivering, 0, "and dropped unanswered");
    clock.advance(2 * SECOND).unwrap();
    assert_eq!(later.wait().unwrap().len(), 1);
}

#[test]
fn health_and_notices_tell_of_a_failure_and_of_its_end() {
    let (clock, mode) = (VirtualClock::new(), Arc::new(AtomicU8::new(WORKS)));
    let durable = Durable::builder().clock(&clock).with_store(Fragile::new(&mode)).unwrap();
    let queue = durable.queue("orders").unwrap();
    let mut watch = durable.notices();
    assert_eq!((durable.health(), watch.next_within(Duration::ZERO)), (Health::Ready, None));
    mode.store(DOWN, SeqCst);
    assert!(queue.schedule(seconds(1)).wait().is_err());
    let Health::Failing(why) = durable.health() else { panic!("{:?}", durable.health()) };
    assert!(why.contains("no space left on device"), "{why}");
    clock.advance(60 * SECOND).unwrap();
    mode.store(WORKS, SeqCst);
    clock.advance(SECOND).unwrap();
    assert_eq!(durable.health(), Health::Ready);
    for mut watch in [watch, durable.notices()] {
        let Some(Heard::Item(Notice::Failed(why))) = watch.next_within(Duration::ZERO) else {
            panic!("a failure is told")
        };
        assert!(why.contains("no space left on device"), "{why}");
        let next = [(); 2].map(|()| watch.next_within(Duration::ZERO));
        assert_eq!(next, [Some(Heard::Item(Notice::Reopened)), None]);
    }
    durable.clone().close();
    assert_eq!(durable.health(), Health::Closed);
}

#[test]
fn a_wait_that_ends_while_the_store_is_down_ends_in_time() {
    let (clock, queue, mode) = fragile();
    let mut waiting = queue.receive(1, 10 * SECOND);
    mode.store(DOWN, SeqCst);
    assert!(queue.schedule(seconds(1)).wait().is_err());
    let mut at_once = queue.receive(1, Duration::ZERO);
    let mut longer = queue.receive(1, 60 * SECOND);
    clock.advance(9 * SECOND).unwrap();
    assert!(matches!(poll_once(&mut at_once), Poll::Ready(Ok(none)) if none.is_empty()));
    assert!(poll_once(&mut waiting).is_pending());
    clock.advance(SECOND).unwrap();
    assert!(matches!(poll_once(&mut waiting), Poll::Ready(Ok(none)) if none.is_empty()));
    mode.store(WORKS, SeqCst);
    clock.advance(SECOND).unwrap();
    assert!(poll_once(&mut longer).is_pending());
    queue.schedule(seconds(0)).wait().unwrap();
    assert_eq!(longer.wait().unwrap().len(), 1);
}

/// Opening it again and again at once would keep a processor busy.
#[test]
fn a_store_that_opens_and_cannot_commit_is_opened_once_a_second() {
    let (clock, mode) = (VirtualClock::new(), Arc::new(AtomicU8::new(WORKS)));
    let store = Fragile::new(&mode);
    let opens = store.opens.clone();
    let durable = Durable::builder().clock(&clock).with_store(store).unwrap();
    let queue = durable.queue("orders").unwrap();
    queue.schedule(seconds(0)).wait().unwrap();
    mode.store(OPENS, SeqCst);
    let waiting = queue.receive(1, 3600 * SECOND);
    clock.advance(60 * SECOND).unwrap();
    // After 10 ms, 20 ms and so on, then once a second.
    let opened = opens.load(SeqCst);
    assert!((60..75).contains(&opened), "{opened}");
    mode.store(WORKS, SeqCst);
    clock.advance(SECOND).unwrap();
    // Acknowledged, because a delivery that is dropped is given back by a further commit.
    let [held] = waiting.wait().unwrap().try_into().unwrap();
    held.ack().wait().unwrap();
    // It has committed, so it is opened at once after the next failure.
    mode.store(LOSES, SeqCst);
    assert!(queue.schedule(seconds(1)).wait().is_err());
    assert!(queue.count().wait().is_ok());
}

#[test]
fn a_store_that_does_not_open_says_so() {
    let store = Fragile::new(&Arc::new(AtomicU8::new(DOWN)));
    let refused = Durable::builder().with_store(store).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the store was not opened: the store failed: no space left on device; open it anew"
    );
}

/// A waker is foreign code, called on the runtime's thread, which serves every caller.
#[test]
fn a_waker_that_panics_harms_nobody_else() {
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: std::sync::Arc<Self>) {
            panic!("a waker that panics");
        }
    }
    let (clock, _durable, queue) = crate::memory();
    let waker = std::sync::Arc::new(Panics).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut receive = std::pin::pin!(queue.receive(1, std::time::Duration::from_secs(5)));
    assert!(receive.as_mut().poll(&mut context).is_pending());
    clock.advance(6 * crate::SECOND).unwrap();
    queue.schedule(crate::seconds(1)).wait().unwrap();
    assert!(
        receive.as_mut().poll(&mut context).is_ready(),
        "it was answered before its waker was called"
    );
}

fn pushed(key: &str) -> NewTimer {
    let webhook = Webhook::new("http://localhost/").unwrap();
    seconds(0).key(key).unwrap().webhook(webhook).unwrap()
}

/// The process continues, and so do its agents: the deliveries they hold are handed out to nobody else.
#[test]
fn agents_keep_what_they_have_when_the_store_fails() {
    let (clock, durable, mode) = fragile_durable();
    let queue = durable.queue("orders").unwrap();
    queue.schedule(pushed("a")).wait().unwrap();
    let [held] = durable.push(9, Duration::ZERO, SECOND).wait().unwrap().try_into().unwrap();
    mode.store(FAILS, SeqCst);
    assert!(queue.schedule(seconds(60)).wait().is_err());
    let others = durable.push(9, 5 * SECOND, SECOND);
    clock.advance(5 * SECOND).unwrap();
    assert!(others.wait().unwrap().is_empty());
    assert_eq!(held.attempt(), 1);
    held.ack().wait().unwrap();
}

/// The hand-out is on disk, but no agent received it: it is retried at once.
#[test]
fn what_no_agent_was_told_of_is_handed_out_again() {
    let (_clock, durable, mode) = fragile_durable();
    let queue = durable.queue("orders").unwrap();
    queue.schedule(pushed("a")).wait().unwrap();
    mode.store(FAILS, SeqCst);
    let [told] = durable.push(9, 60 * SECOND, SECOND).wait().unwrap().try_into().unwrap();
    assert_eq!(told.attempt(), 2);
}

/// The hand-out is on disk, but no taker received it: it is handed out again at once, even if it had one attempt only.
#[test]
fn what_no_taker_was_told_of_uses_up_no_attempt() {
    let retry = Retry { attempts: 1, ..Retry::default() };
    for fails in [FAILS, then(FAILS, LOSES), then(FAILS, FAILS)] {
        let (clock, durable, mode) = fragile_durable();
        let queue = durable.queue("orders").unwrap();
        // The store is opened anew in a process whose agents are at work.
        queue.schedule(pushed("held")).wait().unwrap();
        let [held] = durable.push(9, Duration::ZERO, SECOND).wait().unwrap().try_into().unwrap();
        for key in ["pull", "push"] {
            let timer = if key == "push" { pushed(key) } else { seconds(0).key(key).unwrap() };
            queue.schedule(timer.retry(retry).unwrap()).wait().unwrap();
            let begin = durable.now();
            mode.store(fails, SeqCst);
            let taker = match key {
                "push" => durable.push(9, SECOND, SECOND),
                _ => queue.receive(9, SECOND),
            };
            clock.advance(2 * SECOND).unwrap();
            let [told] = taker.wait().unwrap().try_into().unwrap();
            assert_eq!(told.key(), key);
            assert!(told.attempt() > 1, "the store has the hand-out that was not answered");
            // A second failure is followed by a delay.
            let late = told.handed().since(begin).millis();
            assert!(late <= if fails == FAILS { 0 } else { 10 }, "{late} ms");
            told.ack().wait().unwrap();
        }
        held.ack().wait().unwrap();
    }
}

/// Only a restart of the process goes by the wall clock.
#[test]
fn a_store_that_fails_leaves_leases_their_time_wherever_the_clock_is_set() {
    const HOUR: Duration = Duration::from_secs(3600);
    for (fails, forward) in [(LOSES, true), (FAILS, true), (LOSES, false), (FAILS, false)] {
        let (clock, queue, mode) = fragile();
        let queue = queue.lease(600 * SECOND).unwrap();
        queue.schedule(seconds(0)).wait().unwrap();
        let [held] = take(&queue).try_into().unwrap();
        clock.advance(60 * SECOND).unwrap();
        let now = clock.wall_now();
        clock.set_wall(if forward { now + HOUR } else { now - HOUR }).unwrap();
        // An extension that is lost leaves the lease as it was.
        mode.store(LOSES, SeqCst);
        assert!(held.extend(HOUR).wait().is_err());
        mode.store(fails, SeqCst);
        assert!(queue.schedule(seconds(7200)).wait().is_err());
        clock.advance(539 * SECOND).unwrap();
        let delivering = || queue.count().wait().unwrap().unwrap().delivering;
        assert_eq!(delivering(), 1, "forward: {forward}");
        clock.advance(2 * SECOND).unwrap();
        assert_eq!(delivering(), 0, "forward: {forward}");
        held.ack().wait().unwrap();
    }
}
