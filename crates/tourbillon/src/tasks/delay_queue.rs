//! `DelayQueue`: values that come out when their time has come, as a stream.
//!
//! It owns a wheel, which needs no lock, and one [`Sleep`] for the moment of the next: a million items are one timer of
//! the engine. The sleep is never later than the next item, once the queue was polled:
//!
//! | what happens | the sleep | the task that waits |
//! |---|---|---|
//! | an earlier item comes, or one is moved to earlier | moved to it | is woken when that is due |
//! | the earliest is removed, or moved to later | stays | may be woken once for nothing |
//! | the last is removed | taken out | is woken now: the stream ends |
//! | the last comes out | taken out | has it |

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

/// So many items are made ready, or handed down, in one poll: more would keep other tasks from their thread.
const BUDGET: usize = 1024;
/// The levels of the wheel, as the engine has them.
const SLOTS: u32 = 256;

/// Items that come out when their time has come, the earliest deadline first and equal ones in the order of their
/// insertion: the expiry side of a cache, for example.
///
/// Each has a key of yours, given to [`insert`](DelayQueue::insert), or one of the queue's own making, given by
/// [`push`](DelayQueue::push). A key that has come out or was removed is unknown, and whatever is asked about it
/// answers "no"; inserted again, it is a new item.
///
/// As a stream it gives items as they expire, never early, and ends when it is empty. It can go on after that: insert,
/// and poll it again. A task that waits for it is woken when an item is due, also one that was inserted later and is
/// due earlier, and when the last one is removed.
///
/// Any delay will do, for centuries. Every operation is O(1), but for the items that are due within one tick, which are
/// sorted; a million items are one timer of the engine, and a queue
/// that is empty is none. Its memory is kept for what comes next, until [`clear`](DelayQueue::clear).
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
    /// Who waits for the next item.
    waiting: Option<Waker>,
    /// The engine was stopped, and the stream has said so.
    stopped: bool,
    /// What the clock showed when it was last read: of a backlog, an item costs no reading.
    seen: Time,
    streak: Streak,
    /// The number of the next key of its own making.
    next_key: u64,
}

struct Item<K, V> {
    key: K,
    value: V,
}

/// An item whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<K, V> {
    /// Its key. The queue does not know it any more.
    pub key: K,
    /// What was inserted.
    pub value: V,
    /// When it was due.
    pub deadline: Instant,
}

impl<K: Hash + Eq + Clone, V> DelayQueue<K, V> {
    /// An empty queue, on the default engine.
    pub fn new() -> Self {
        DelayQueue::with(Global::here())
    }
}

impl<K: Hash + Eq + Clone, V> Default for DelayQueue<K, V> {
    fn default() -> Self {
        DelayQueue::new()
    }
}

/// Queues, on this timer.
impl Timer {
    /// An empty [`DelayQueue`]. If the timer is stopped, the stream gives an error once, and ends; what is in the queue
    /// stays there, to be removed. If there was no room for its timer, or no thread, the stream says so, and the next
    /// poll tries again.
    pub fn delay_queue<K: Hash + Eq + Clone, V>(&self) -> DelayQueue<K, V, Given> {
        DelayQueue::with(Given::on(self))
    }
}

/// What is in it.
impl<K: Hash + Eq + Clone, V, H: Home> DelayQueue<K, V, H> {
    fn with(home: H) -> Self {
        let sleep = Sleep::after(home, Duration::ZERO);
        let wheel = empty(sleep.tick());
        let streak = Streak::default();
        let (keys, seen) = (HashMap::new(), Time::ZERO);
        DelayQueue { wheel, keys, sleep, waiting: None, stopped: false, seen, streak, next_key: 0 }
    }

    /// Inserts an item that expires after so long. Gives the value that the key had, if it was there: that one will not
    /// expire. If the queue is to make the key, there is [`push`](DelayQueue::push).
    ///
    /// # Errors
    /// There is no memory for another; the item comes back, and nothing has changed.
    pub fn insert(&mut self, key: K, value: V, after: Duration) -> Result<Option<V>, Full<(K, V)>> {
        let now = self.sleep.now();
        self.insert_time(key, value, now + nanoseconds(after), now)
    }

    /// Inserts an item that expires at that moment, as [`insert`](DelayQueue::insert) does.
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
        // The map first: a key whose hash panics leaves everything as it was.
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

    /// Takes an item out: it will not expire. `None` if the key is not there.
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
        // Only now: the drop of a key is foreign code, and finds a queue that is whole.
        drop_contained(&self.sleep, known);
        item.map(|item| self.value_of(item))
    }

    /// The value of an item that has left, without its key.
    fn value_of(&self, item: Item<K, V>) -> V {
        planted!(
            "later.key-of-a-removed-item-panics-out",
            drop(item.key),
            drop_contained(&self.sleep, item.key)
        );
        item.value
    }

    /// Has an item expire so long after now instead. `false` if the key is not there, or there is no memory to move it:
    /// it expires when it was to.
    pub fn reset<Q>(&mut self, key: &Q, after: Duration) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = self.sleep.now();
        self.reset_time(key, now + nanoseconds(after), now)
    }

    /// Has an item expire at that moment instead, as [`reset`](DelayQueue::reset) does.
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

    /// Drops all items, and gives their memory back: none of them expires.
    pub fn clear(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        let mut items = std::mem::replace(&mut self.wheel, empty(self.sleep.tick()));
        planted!("more.clear-wakes-nobody", (), self.wake());
        // At the end: the drop of a key or a value finds a queue that is empty.
        drop_all(&self.sleep, keys, &mut items);
    }
}

/// What comes out.
impl<K: Hash + Eq + Clone, V, H: Home> DelayQueue<K, V, H> {
    /// Waits for the next item to expire. `None` if the queue is empty, now or while it waits.
    ///
    /// # Cancel safety
    /// An item is taken out when this gives it, and not before: dropped earlier, it loses none.
    ///
    /// # Panics
    /// As [`sleep`](super::sleep()), on the default engine.
    pub async fn next(&mut self) -> Option<H::Output<Expired<K, V>>> {
        poll_fn(|context| self.poll_expired(context)).await
    }

    /// [`next`](DelayQueue::next), for a future of your own. One poll takes a bounded time: if more than a thousand or
    /// so have to be handed down, it wakes its task to go on. After 128 items in a row it wakes its task and is pending
    /// once, so that a backlog does not keep other tasks from running.
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
                // What no clock will reach is at the end of time.
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

    /// The first item, if it is due as far as the clock was read, and how far the search came.
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

    /// The item was inserted or moved: the sleep must not be longer, if somebody waits.
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

    /// It is empty: nothing is to be pending for it.
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

/// Drops something of the user's. A panic is counted and reported.
#[inline]
fn drop_contained<T, H: Home>(sleep: &Sleep<H>, value: T) {
    if std::mem::needs_drop::<T>() {
        sleep.contain(|| drop(value));
    }
}

/// Drops what is in a queue, one by one: of two drops that panic, the second would end the process.
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

/// From the beginning of the engine's time, so that its ticks are the engine's.
fn empty<K, V>(tick: u64) -> OrderedWheel<Item<K, V>> {
    OrderedWheel::new(&Geometry::Hierarchical(vec![SLOTS]), tick).expect("an engine has a tick")
}

/// Ends when the queue is empty, and goes on when there is something in it again.
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
