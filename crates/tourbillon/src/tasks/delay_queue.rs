//! `DelayQueue`: a stream of values, each of which expires at its deadline.
//!
//! The queue owns a wheel, which needs no lock, and one [`Sleep`] for the next deadline: a million items cost the
//! engine one timer. After the first poll, the sleep is never later than the next item:
//!
//! | event | the sleep | the waiting task |
//! |---|---|---|
//! | an earlier item is inserted, or an item moves to earlier | moves to that item | is woken when the item is due |
//! | the earliest item is removed, or moves to later | stays | may be woken once spuriously |
//! | the last item is removed | is disarmed | is woken at once: the stream ends |
//! | the last item expires | is disarmed | receives the item |

mod capacity;
mod look;
mod own_keys;

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::future::poll_fn;
use std::hash::Hash;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_core::Stream;
use tourbillon_wheel::{self as wheel, Full, Progress, Time};

use super::host::{Given, Global, Home, SleepError};
use super::sleep::Sleep;
use super::streak::Streak;
use crate::clock::nanoseconds;
use crate::engine::shard::{AGAIN, Taken};
use crate::engine::wheels::Geometry;
use crate::ordered::OrderedWheel;
use crate::timer::Timer;
pub use own_keys::QueueKey;

/// The largest number of items that one poll cascades or makes ready; more would starve the thread's other tasks.
const BUDGET: usize = 1024;
/// The number of slots in each level, as in the engine's default wheel.
const SLOTS: u32 = 256;

/// A queue of items that expire, the earliest deadline first.
///
/// For example, it expires the entries of a cache. Items with equal deadlines expire in the order in which they were
/// inserted or moved.
///
/// Each item has a key, which either the caller passes to [`insert`](DelayQueue::insert) or the queue generates and
/// [`push`](DelayQueue::push) returns. Once an item has expired or was removed, its key is no longer in the queue, and
/// every lookup returns `None` or `false`. Inserting the same key again makes a new item.
///
/// As a stream, the queue yields items as they expire, never early, and ends when it is empty. A stream that has ended
/// continues once an item is inserted and the queue is polled again. A waiting task is woken when an item is due,
/// including an item that was inserted after the task began to wait, and when the last item is removed.
///
/// A delay may be centuries long. Every operation is O(1), except that the items due within one tick are sorted. A
/// million items use one timer of the engine, and an empty queue uses none. The queue keeps its memory for later items
/// until [`clear`](DelayQueue::clear).
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock, tasks};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let mut sessions = timer.delay_queue();
/// sessions.insert("ada", 1, Duration::from_secs(30))?;
/// sessions.insert("bob", 2, Duration::from_secs(30))?;
/// sessions.insert("cyd", 3, Duration::from_secs(90))?;
/// sessions.reset("bob", Duration::from_secs(60));
/// assert_eq!(sessions.remove("cyd"), Some(3));
///
/// tasks::block_on(&clock, async {
///     while let Some(session) = sessions.next().await {
///         let session = session?;
///         println!("{} was idle for too long", session.key);
///     }
///     Ok::<_, tasks::SleepError>(())
/// })??;
/// assert_eq!(clock.elapsed(), Duration::from_secs(60));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DelayQueue<K, V, H: Home = Global> {
    wheel: OrderedWheel<Item<K, V>>,
    keys: HashMap<K, wheel::Key>,
    sleep: Sleep<H>,
    /// The task that waits for the next item.
    waiting: Option<Waker>,
    /// Whether the engine was stopped and the stream has yielded the error.
    stopped: bool,
    /// The last reading of the clock. Items of a backlog expire without another reading.
    seen: Time,
    streak: Streak,
    /// The number of the next generated key.
    next_key: u64,
}

struct Item<K, V> {
    key: K,
    value: V,
}

/// An item that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<K, V> {
    /// The item's key, which is no longer in the queue.
    pub key: K,
    /// The value that was inserted.
    pub value: V,
    /// The item's deadline.
    pub deadline: Instant,
}

impl<K: Hash + Eq + Clone, V> DelayQueue<K, V> {
    /// Creates an empty queue on the default engine.
    pub fn new() -> Self {
        DelayQueue::with(Global::here())
    }
}

impl<K: Hash + Eq + Clone, V> Default for DelayQueue<K, V> {
    fn default() -> Self {
        DelayQueue::new()
    }
}

/// Delay queues on this timer.
impl Timer {
    /// Creates an empty [`DelayQueue`] on this timer.
    ///
    /// If the timer is stopped, the stream yields one error and ends; the items stay in the queue and can be removed.
    /// If the limit on timers is reached or the driver's thread cannot start, the stream yields the error, and the next
    /// poll tries again.
    pub fn delay_queue<K: Hash + Eq + Clone, V>(&self) -> DelayQueue<K, V, Given> {
        DelayQueue::with(Given::on(self))
    }
}

/// Inserting, moving and removing items.
impl<K: Hash + Eq + Clone, V, H: Home> DelayQueue<K, V, H> {
    fn with(home: H) -> Self {
        let sleep = Sleep::after(home, Duration::ZERO);
        let wheel = empty(sleep.tick());
        let streak = Streak::default();
        let (keys, seen) = (HashMap::new(), Time::ZERO);
        DelayQueue { wheel, keys, sleep, waiting: None, stopped: false, seen, streak, next_key: 0 }
    }

    /// Inserts an item that expires after the given delay.
    ///
    /// Returns the key's previous value, if there was one; the previous item does not expire. To have the queue
    /// generate the key, use [`push`](DelayQueue::push).
    ///
    /// # Errors
    /// If memory is exhausted. The error holds the item, and the queue is unchanged.
    pub fn insert(&mut self, key: K, value: V, after: Duration) -> Result<Option<V>, Full<(K, V)>> {
        let now = self.sleep.now();
        self.insert_time(key, value, now + nanoseconds(after), now)
    }

    /// Inserts an item that expires at the given instant, as [`insert`](DelayQueue::insert) does.
    ///
    /// # Errors
    /// As [`insert`](DelayQueue::insert).
    pub fn insert_at(
        &mut self,
        key: K,
        value: V,
        at: impl Into<Instant>,
    ) -> Result<Option<V>, Full<(K, V)>> {
        self.insert_time(key, value, self.sleep.time(at.into()), self.sleep.now())
    }

    fn insert_time(
        &mut self,
        key: K,
        value: V,
        deadline: Time,
        now: Time,
    ) -> Result<Option<V>, Full<(K, V)>> {
        if self.keys.try_reserve(1).is_err() {
            return Err(Full((key, value)));
        }
        self.wheel.catch_up(now);
        // The map comes first: if hashing the key panics, the queue is unchanged.
        let entry = self.keys.entry(key);
        let item = Item { key: entry.key().clone(), value };
        let new = self.wheel.insert(deadline, now, item);
        let new = new.map_err(|Full(item)| Full((item.key, item.value)))?;
        let old = match entry {
            Entry::Occupied(mut entry) => {
                let old = entry.insert(new);
                planted!("tasks.delay-queue-leaves-what-was-replaced", None, self.wheel.cancel(old))
            }
            Entry::Vacant(entry) => {
                entry.insert(new);
                None
            }
        };
        self.sleep_no_longer_than(new);
        Ok(old.map(|item| self.value_of(item)))
    }

    /// Removes an item, so that it does not expire. `None` if the key is unknown.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (known, key) = self.keys.remove_entry(key)?;
        let item = self.wheel.cancel(key);
        if planted!("tasks.delay-queue-removes-the-last-in-silence", false, self.keys.is_empty()) {
            self.wake();
        }
        // Dropped last: the drop of a key is user code, and must find a consistent queue.
        drop_contained(&self.sleep, known);
        item.map(|item| self.value_of(item))
    }

    /// Drops the key of a removed item and returns its value.
    fn value_of(&self, item: Item<K, V>) -> V {
        planted!(
            "later.key-of-a-removed-item-panics-out",
            drop(item.key),
            drop_contained(&self.sleep, item.key)
        );
        item.value
    }

    /// Moves an item's deadline to the given delay from now.
    ///
    /// Returns `false` if the key is unknown or memory is exhausted; the item then keeps its deadline.
    pub fn reset<Q>(&mut self, key: &Q, after: Duration) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = self.sleep.now();
        self.reset_time(key, now + nanoseconds(after), now)
    }

    /// Moves an item's deadline to the given instant, as [`reset`](DelayQueue::reset) does.
    pub fn reset_at<Q>(&mut self, key: &Q, at: impl Into<Instant>) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.reset_time(key, self.sleep.time(at.into()), self.sleep.now())
    }

    fn reset_time<Q>(&mut self, key: &Q, deadline: Time, now: Time) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(&key) = self.keys.get(key) else { return false };
        if self.wheel.reschedule(key, deadline, now).is_err() {
            return false;
        }
        planted!("more.item-reset-to-earlier-is-late", (), self.sleep_no_longer_than(key));
        true
    }

    /// Drops all items and releases their memory. None of them expires.
    pub fn clear(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        planted!("tasks.cleared-queue-makes-its-keys-anew", self.next_key = 0, ());
        let mut items = std::mem::replace(&mut self.wheel, empty(self.sleep.tick()));
        planted!("more.clear-wakes-nobody", (), self.wake());
        // Dropped last, so that the drop of a key or a value finds an empty queue.
        drop_all(&self.sleep, keys, &mut items);
    }
}

/// Receiving expired items.
impl<K: Hash + Eq + Clone, V, H: Home> DelayQueue<K, V, H> {
    /// Waits for the next item to expire. `None` if the queue is empty, or becomes empty during the wait.
    ///
    /// # Cancel safety
    /// An item leaves the queue only when this future returns it, so dropping the future loses none.
    ///
    /// # Panics
    /// As [`sleep`](super::sleep()), on the default engine.
    pub async fn next(&mut self) -> Option<H::Output<Expired<K, V>>> {
        poll_fn(|context| self.poll_expired(context)).await
    }

    /// Polls for the next item to expire: [`next`](DelayQueue::next) for handwritten futures.
    ///
    /// A poll takes bounded time: if about a thousand items or more must cascade, the poll wakes its task and continues
    /// in the next poll. After 128 items in a row it wakes its task and returns `Pending` once, so that a backlog does
    /// not starve other tasks.
    pub fn poll_expired(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<H::Output<Expired<K, V>>>> {
        let mut streak = std::mem::take(&mut self.streak);
        let polled = streak.poll(context.waker(), || self.poll_item(context));
        self.streak = streak;
        polled
    }

    fn poll_item(&mut self, context: &Context<'_>) -> Poll<Option<H::Output<Expired<K, V>>>> {
        if self.wheel.has_gathered() {
            if let (_, Some(item)) = self.pop() {
                return Poll::Ready(Some(H::output(Ok(item))));
            }
        }
        loop {
            self.seen = self.sleep.now();
            let (progress, item) = self.pop();
            if let Some(item) = item {
                return Poll::Ready(Some(H::output(Ok(item))));
            }
            let stopped = planted!("more.stopped-stream-never-ends", false, self.stopped);
            if self.keys.is_empty() || stopped {
                return Poll::Ready(None);
            }
            if progress == Progress::More {
                self.wait(context.waker());
                planted!(
                    "tasks.delay-queue-does-not-go-on-after-its-budget",
                    (),
                    context.waker().wake_by_ref()
                );
                return Poll::Pending;
            }
            let due = match progress {
                Progress::OutOfMemory => self.seen + AGAIN,
                // If all deadlines are beyond the reach of any clock, sleep until the end of time.
                _ => self.wheel.upcoming(self.seen).unwrap_or(Time::MAX),
            };
            if self.sleep.due() != due {
                self.sleep.move_to(due);
            }
            match self.sleep.poll_outcome(context.waker()) {
                Some(Ok(())) => {}
                Some(Err(wrong)) => return Poll::Ready(Some(self.fail(wrong))),
                None => {
                    self.wait(context.waker());
                    return Poll::Pending;
                }
            }
        }
    }

    /// Takes the first item if it is due at the clock's last reading. Also returns the progress of the search.
    fn pop(&mut self) -> (Progress, Option<Expired<K, V>>) {
        let progress = self.wheel.gather(self.seen, BUDGET);
        let taken = if progress == Progress::Done { self.wheel.pop(self.seen) } else { None };
        (progress, taken.map(|taken| self.expired(taken)))
    }

    fn expired(&mut self, taken: Taken<Item<K, V>>) -> Expired<K, V> {
        let Taken { value: Item { key, value }, deadline, .. } = taken;
        planted!("tasks.delay-queue-knows-a-key-that-came-out", (), {
            let known = self.keys.remove_entry(&key);
            drop_contained(&self.sleep, known);
        });
        if self.keys.is_empty() {
            let waker = planted!("third.emptied-queue-keeps-its-waker", None, self.rest());
            self.sleep.contain(|| drop(waker));
        }
        Expired { key, value, deadline: self.sleep.instant(deadline) }
    }

    fn fail(&mut self, wrong: SleepError) -> H::Output<Expired<K, V>> {
        let stopped = wrong == SleepError::Stopped;
        self.stopped = planted!("tasks.delay-queue-ends-for-want-of-room", true, stopped);
        H::output(Err(wrong))
    }

    /// Moves the sleep earlier if a task waits and this item, just inserted or moved, is due before it.
    fn sleep_no_longer_than(&mut self, key: wheel::Key) {
        let Some(due) = self.wheel.due(key) else { return };
        let earlier = planted!(
            "tasks.delay-queue-sleeps-past-an-earlier-item",
            false,
            due < self.sleep.due()
        );
        if self.waiting.is_some() && earlier {
            self.sleep.move_to(due);
        }
    }

    fn wait(&mut self, waker: &Waker) {
        let own = |waiting: &Waker| waiting.will_wake(waker);
        let own = planted!(
            "tasks.delay-queue-keeps-the-first-waker",
            self.waiting.is_some(),
            self.waiting.as_ref().is_some_and(own)
        );
        if !own {
            let old = self.waiting.replace(waker.clone());
            self.sleep.contain(|| drop(old));
        }
    }

    /// Disarms the sleep of an empty queue and wakes the waiting task.
    fn wake(&mut self) {
        if let Some(waker) = self.rest() {
            self.sleep.contain(|| waker.wake());
        }
    }
}

impl<K, V, H: Home> DelayQueue<K, V, H> {
    fn rest(&mut self) -> Option<Waker> {
        self.sleep.rest();
        self.waiting.take()
    }
}

impl<K, V, H: Home> Drop for DelayQueue<K, V, H> {
    fn drop(&mut self) {
        let waker = self.rest();
        self.sleep.contain(|| drop(waker));
        drop_all(&self.sleep, std::mem::take(&mut self.keys), &mut self.wheel);
    }
}

/// Drops a user's value. A panic is counted and reported.
#[inline]
fn drop_contained<T, H: Home>(sleep: &Sleep<H>, value: T) {
    if std::mem::needs_drop::<T>() {
        sleep.contain(|| drop(value));
    }
}

/// Drops the items of a queue one by one: during an unwind, a second panicking drop would abort the process.
fn drop_all<K, V, H: Home>(
    sleep: &Sleep<H>,
    keys: HashMap<K, wheel::Key>,
    items: &mut OrderedWheel<Item<K, V>>,
) {
    if std::mem::needs_drop::<Item<K, V>>() {
        keys.into_keys().for_each(|key| drop_contained(sleep, key));
        let all = items.keys();
        for Item { key, value } in all.into_iter().filter_map(|key| items.cancel(key)) {
            drop_contained(sleep, key);
            drop_contained(sleep, value);
        }
    }
}

/// Creates an empty wheel whose time begins with the engine's, so that their ticks coincide.
fn empty<K, V>(tick: u64) -> OrderedWheel<Item<K, V>> {
    OrderedWheel::new(&Geometry::Hierarchical(vec![SLOTS]), tick).expect("an engine has a tick")
}

/// Ends when the queue is empty, and continues once an item is inserted.
///
/// # Cancel safety
/// As [`DelayQueue::next`].
impl<K: Hash + Eq + Clone + Unpin, V: Unpin, H: Home> Stream for DelayQueue<K, V, H> {
    type Item = H::Output<Expired<K, V>>;

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<H::Output<Expired<K, V>>>> {
        self.get_mut().poll_expired(context)
    }
}

impl<K, V, H: Home> fmt::Debug for DelayQueue<K, V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue").field("len", &self.keys.len()).finish_non_exhaustive()
    }
}
