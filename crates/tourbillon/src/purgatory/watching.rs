//! Adding operations, closures and futures to a purgatory.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::Purgatory;
use super::error::{WaitError, WatchError};
use super::inline_vec::InlineVec;
use super::node::{Node, Withdraw};
use super::operation::{Operation, Outcome};
use super::trampoline::{attempt, catch_up};
use super::wait::{Letter, Wait};
use super::work::{Listen, Own, Then, When, Work};
use crate::key_table::{ByHash, hash};
use crate::sync::atomic::Ordering::Acquire;

/// From this many keys on, duplicates are found by hash.
const MANY: usize = 16;

/// Waiting.
impl<K, O, S> Purgatory<K, O, S>
where
    K: Eq + Hash + Send + 'static,
    O: Operation,
    S: BuildHasher,
{
    /// Completes the operation if its condition holds; otherwise watches it under the keys.
    ///
    /// It is watched until a [`check`](Purgatory::check) of one of the keys completes it or `timeout` has passed. A
    /// duplicate key counts once.
    ///
    /// The condition is tried first, before anything is watched or armed, and once more afterwards, so that an event in
    /// between is not missed. Inside another operation's action (`on_complete` or `on_expire`), completion is *decided*
    /// at once, but this operation's own action runs after the other one has returned. So an action or a condition must
    /// never wait for another operation's action to run. A [`Wait`], in contrast, is ready at once, even there.
    ///
    /// # Errors
    /// There are no keys, the purgatory or its timer was stopped, or the timer is full or could not be started. The
    /// error holds the operation, which is watched under no key.
    pub fn try_complete_else_watch(
        &self,
        operation: O,
        keys: impl IntoIterator<Item = K>,
        timeout: Duration,
    ) -> Result<Outcome, WatchError<O>> {
        let added = self.add(Own(operation), keys, timeout);
        added.map(|(_, outcome)| outcome).map_err(|error| error.map(|own| own.0))
    }

    /// As [`try_complete_else_watch`](Purgatory::try_complete_else_watch), with closures.
    ///
    /// `condition` returns a value when it holds. `then` is called once, with the value or with the reason why there is
    /// none. It is also called when the purgatory is stopped or the key is cancelled; those calls then return no
    /// operation for it.
    ///
    /// # Errors
    /// As [`try_complete_else_watch`](Purgatory::try_complete_else_watch); the error holds the closures.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex, mpsc};
    /// use std::time::Duration;
    /// use tourbillon::{Purgatory, Timer, VirtualClock, WaitError};
    ///
    /// let clock = VirtualClock::new();
    /// let purgatory: Purgatory<u32> = Purgatory::new(&Timer::builder().clock(&clock).build()?);
    /// let queue = Arc::new(Mutex::new(Vec::new()));
    /// let (report, outcomes) = mpsc::channel();
    /// for _ in 0..2 {
    ///     // A condition may take what it waits for: once it returns a value, delivery is certain.
    ///     let (take, report) = (queue.clone(), report.clone());
    ///     let condition = move || take.lock().unwrap().pop();
    ///     purgatory.when([1], Duration::from_secs(1), condition, move |outcome| report.send(outcome).unwrap())?;
    /// }
    /// queue.lock().unwrap().push("job");
    /// assert_eq!(purgatory.check(&1), 1);
    /// assert_eq!(outcomes.recv()?, Ok("job"));
    /// clock.advance(Duration::from_secs(1))?;
    /// assert_eq!(outcomes.recv()?, Err(WaitError::Expired));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn when<T, C, F>(
        &self,
        keys: impl IntoIterator<Item = K>,
        timeout: Duration,
        condition: C,
        then: F,
    ) -> Result<Outcome, WatchError<(C, F)>>
    where
        T: Send + 'static,
        C: FnMut() -> Option<T> + Send + 'static,
        F: FnOnce(Result<T, WaitError>) + Send + 'static,
    {
        let added = self.add(When::new(condition, Then(then)), keys, timeout);
        added
            .map(|(_, outcome)| outcome)
            .map_err(|error| error.map(|when| (when.condition, when.listener.0)))
    }

    /// Returns a future that waits until `condition` returns a value, or until `timeout` has passed.
    ///
    /// The condition is tried now, and is watched from now on, whether or not the future is polled.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws it at once from all its keys and from the wheel. A value that the condition has
    /// already returned, or is returning on another thread at that moment, is dropped with the future.
    ///
    /// ```
    /// # use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    /// # use std::sync::Arc;
    /// # use std::time::Duration;
    /// # use tourbillon::{Purgatory, Timer, WaitError};
    /// # fn block_on<F: std::future::Future>(future: F) -> F::Output {
    /// #     struct Thread(std::thread::Thread);
    /// #     impl std::task::Wake for Thread {
    /// #         fn wake(self: Arc<Self>) { self.0.unpark() }
    /// #     }
    /// #     let waker = Arc::new(Thread(std::thread::current())).into();
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
    /// #             std::task::Poll::Ready(output) => return output,
    /// #             std::task::Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// let purgatory: Purgatory<&str> = Purgatory::new(&Timer::new());
    /// let stock = Arc::new(AtomicUsize::new(0));
    /// let seen = stock.clone();
    /// let enough = move || Some(seen.load(SeqCst)).filter(|&stock| stock >= 3);
    /// let wait = purgatory.wait(["stock"], Duration::from_secs(60), enough);
    ///
    /// let other = purgatory.clone();
    /// std::thread::spawn(move || {
    ///     stock.store(5, SeqCst);
    ///     other.check("stock");
    /// });
    /// assert_eq!(block_on(wait), Ok(5));
    ///
    /// let never = purgatory.wait(["stock"], Duration::from_millis(5), || None::<u32>);
    /// assert_eq!(block_on(never), Err(WaitError::Expired));
    /// ```
    pub fn wait<T, C>(
        &self,
        keys: impl IntoIterator<Item = K>,
        timeout: Duration,
        condition: C,
    ) -> Wait<T>
    where
        T: Send + 'static,
        C: FnMut() -> Option<T> + Send + 'static,
    {
        let letter = Letter::new();
        match self.add(When::new(condition, letter.clone()), keys, timeout) {
            Ok((node, _)) => {
                let entry = node.map(|node| Arc::downgrade(&(node as Arc<dyn Withdraw>)));
                Wait::new(letter, entry)
            }
            Err(error) => {
                let (why, timer) = (WaitError::from(&error), &self.core().timer);
                planted!("fourth.condition-of-a-refused-wait-panics-out", drop(error), {
                    timer.contain(|| drop(error));
                });
                letter.clone().hear(Err(why), timer);
                Wait::new(letter, None)
            }
        }
    }

    /// Tries the operation, and watches it if necessary. Returns the node, if there is one.
    #[expect(clippy::type_complexity, reason = "a node and what became of it")]
    pub(super) fn add<W: Work<O>>(
        &self,
        mut work: W,
        keys: impl IntoIterator<Item = K>,
        timeout: Duration,
    ) -> Result<(Option<Arc<Node<K, O, W>>>, Outcome), WatchError<W>> {
        let core = self.core();
        let mut hashed = InlineVec::new();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.hash(keys, &mut hashed))) {
            // Dropped here, not while unwinding, where a second panic would abort.
            hashed.for_each(|(_, key)| core.drop_key(key));
            core.timer.contain(|| drop(work));
            resume_unwind(panic);
        }
        if hashed.is_empty() {
            return Err(WatchError::NoKeys(work));
        }
        // Acquire pairs with the Release store in `stop`: later operations are refused.
        if core.stopped.load(Acquire) {
            hashed.for_each(|(_, key)| core.drop_key(key));
            return Err(WatchError::Stopped(work));
        }
        if attempt(&core.timer, || work.attempt()) {
            work.complete(&core.timer);
            // A wait that is not polled yet has no action to run, so nothing has run the actions that were queued while
            // its condition was tried. Run them here.
            planted!("purgatory.actions-of-the-first-trial-stay", (), catch_up());
            hashed.for_each(|(_, key)| core.drop_key(key));
            return Ok((None, Outcome::Completed));
        }
        let watched = Node::watch(core, work, hashed, timeout);
        if watched.is_err() {
            // This thread no longer holds an operation, so it runs the queued actions.
            planted!("later.actions-of-a-refused-stay", (), catch_up());
        }
        watched.map(|(node, outcome)| (Some(node), outcome))
    }

    /// Hashes the keys and removes duplicates.
    fn hash(&self, keys: impl IntoIterator<Item = K>, all: &mut InlineVec<(u64, K)>) {
        let mut count = 0;
        // The index of the first key with each hash, for many keys: comparing each pair would be quadratic.
        let mut first = ByHash::default();
        for key in keys {
            let hashed = (hash(&self.owner.hasher, &key), key);
            let known = if count < MANY {
                all.iter().any(|other| *other == hashed)
            } else {
                if first.is_empty() {
                    planted!(
                        "fifth.early-key-that-comes-again-late-counts-twice",
                        (),
                        first.extend(all.iter().enumerate().map(|(place, other)| (other.0, place)))
                    );
                }
                match first.entry(hashed.0) {
                    Entry::Vacant(vacant) => {
                        planted!("purgatory.late-key-not-remembered", (), {
                            vacant.insert(count);
                        });
                        false
                    }
                    // If a different key has the same hash, compare all: that is rare.
                    Entry::Occupied(place) => {
                        planted!(
                            "purgatory.same-hash-taken-for-same-key",
                            true,
                            all.get(*place.get()).is_some_and(|other| *other == hashed)
                                || all.iter().any(|other| *other == hashed)
                        )
                    }
                }
            };
            if known {
                self.core().drop_key(hashed.1);
                continue;
            }
            all.push(hashed);
            count += 1;
        }
    }
}
