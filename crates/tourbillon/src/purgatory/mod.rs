//! `Purgatory`: operations that are completed when a condition holds, or expire; exactly one of the two.
//!
//! ```text
//!   keys, on shelves          nodes                               the timer's wheel
//!   ┌──────────────┐          ┌────────────────────────────┐
//!   │ "orders-0" ──┼──► list ─┼─► state, and while it rests │ ◄─── timeout
//!   │ "orders-1" ──┼──► list ─┤   the operation, its places │
//!   └──────────────┘          └────────────────────────────┘
//! ```
//!
//! A node is known under its keys and to its timer. Who tries its condition takes the operation out of it (`node.rs`
//! has the table of what may happen then), and who ends it takes it out of every key and of the wheel first, and then
//! runs its action, with no lock held. Nothing of it stays behind: there is nothing to purge.

mod basket;
mod error;
mod few;
mod list;
mod node;
mod operation;
mod shelf;
mod turn;
mod wait;
mod work;

use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::time::Duration;

use crate::Timer;
use crate::key_table::{choose, hash, tables};
use crate::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use basket::Basket;
pub use error::{WaitError, WatchError};
use node::{Entry, Node, Why};
pub use operation::{Operation, Outcome};
use shelf::{Shelf, Walk};
use wait::Letter;
pub use wait::Wait;
use work::{Own, When, Work};

/// Holds operations that wait for something, each watched under keys, until an event on one of the keys completes them
/// or their time is up. Clones are the same purgatory, and any thread may use it.
///
/// - **Exactly once**: an operation is completed, expires, or is handed back; one of them, once. At the timeout its
///   condition is tried one last time: if it holds, the operation is completed.
/// - **No event is missed**: whoever changes something that a condition looks at calls [`check`](Purgatory::check)
///   after that, and the operation sees the change, whatever else happens at that moment.
/// - **Over means gone**: at once from every key and from the wheel, with its memory, before its action runs.
/// - **No deadlock**: conditions and actions run with no lock held, and may use the purgatory. An action that completes
///   others, which complete others, takes no more stack than one: actions run one after the other.
/// - It has no thread of its own: any number of them share one [`Timer`], and its clock.
///
/// `K` is the type of the keys, and `O` of the operations; a purgatory that is only used with
/// [closures](Purgatory::when) and [futures](Purgatory::wait) needs none. Under a lock keys are compared, and nothing
/// else: `Eq` must not use the purgatory.
///
/// Dropping the last clone stops it: operations that wait are dropped.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
/// use std::sync::{Arc, mpsc};
/// use std::time::Duration;
/// use tourbillon::{Operation, Outcome, Purgatory, Timer, VirtualClock};
///
/// /// A request that waits until enough bytes have arrived.
/// struct Fetch {
///     bytes: Arc<AtomicUsize>,
///     least: usize,
///     answer: mpsc::Sender<String>,
/// }
///
/// impl Operation for Fetch {
///     fn try_complete(&mut self) -> bool {
///         self.bytes.load(SeqCst) >= self.least
///     }
///     fn on_complete(self) {
///         self.answer.send(format!("{} bytes", self.bytes.load(SeqCst))).unwrap();
///     }
///     fn on_expire(self) {
///         self.answer.send("not enough".to_owned()).unwrap();
///     }
/// }
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let purgatory = Purgatory::new(&timer);
/// let (answer, answers) = mpsc::channel();
/// let bytes = Arc::new(AtomicUsize::new(0));
/// for least in [100, 1000] {
///     let fetch = Fetch { bytes: bytes.clone(), least, answer: answer.clone() };
///     let outcome = purgatory.try_complete_else_watch(fetch, ["orders-0"], Duration::from_secs(5))?;
///     assert_eq!(outcome, Outcome::Watched);
/// }
///
/// // Something arrives: whoever waits for it under that key is tried.
/// bytes.store(120, SeqCst);
/// assert_eq!(purgatory.check("orders-0"), 1);
/// assert_eq!(answers.try_recv()?, "120 bytes");
///
/// clock.advance(Duration::from_secs(5))?;
/// assert_eq!(answers.try_recv()?, "not enough");
/// assert_eq!((purgatory.delayed(), timer.len()), (0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Purgatory<K, O = Infallible, S = RandomState>
where
    K: Eq + Send + 'static,
    O: Operation,
{
    owner: Arc<Owner<K, O, S>>,
}

/// What the clones share: the last of them stops it.
struct Owner<K: Eq + Send + 'static, O: Operation, S> {
    core: Arc<Core<K, O>>,
    hasher: S,
}

impl<K: Eq + Send + 'static, O: Operation, S> Drop for Owner<K, O, S> {
    fn drop(&mut self) {
        for operation in self.core.stop(None) {
            self.core.timer.contain(|| drop(operation));
        }
    }
}

struct Core<K, O> {
    timer: Timer,
    shelves: Box<[Shelf<K, O>]>,
    /// Whether it was stopped. Each shelf knows for itself, and this spares who comes later a trial.
    stopped: AtomicBool,
}

impl<K: Eq + Send + 'static, O: Operation> Purgatory<K, O> {
    /// A purgatory whose operations expire by that timer.
    pub fn new(timer: &Timer) -> Self {
        Purgatory::with_hasher(timer, RandomState::new())
    }
}

impl<K: Eq + Send + 'static, O: Operation, S> Purgatory<K, O, S> {
    /// A purgatory that hashes its keys with another hasher. The default withstands keys that were chosen to collide.
    ///
    /// ```
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    /// use tourbillon::{Purgatory, Timer};
    ///
    /// type Hasher = BuildHasherDefault<DefaultHasher>;
    /// let purgatory: Purgatory<u64, std::convert::Infallible, Hasher> =
    ///     Purgatory::with_hasher(&Timer::new(), Hasher::default());
    /// assert_eq!(purgatory.check(&7), 0);
    /// ```
    pub fn with_hasher(timer: &Timer, hasher: S) -> Self {
        let shelves = (0..tables()).map(|_| Shelf::new()).collect();
        let core =
            Arc::new(Core { timer: timer.clone(), shelves, stopped: AtomicBool::new(false) });
        Purgatory { owner: Arc::new(Owner { core, hasher }) }
    }

    fn core(&self) -> &Arc<Core<K, O>> {
        &self.owner.core
    }
}

/// Waiting.
impl<K, O, S> Purgatory<K, O, S>
where
    K: Eq + Hash + Send + 'static,
    O: Operation,
    S: BuildHasher,
{
    /// Completes the operation if its condition holds; otherwise watches it under the keys until a
    /// [`check`](Purgatory::check) of one of them completes it or the time is up. A key that is given twice counts once.
    ///
    /// The condition is tried first, when there is neither a timer nor anything watched, and once more when there is,
    /// so that an event in between is not missed. Inside another action, what is completed here is *decided* here, and
    /// its own action runs when the other has returned.
    ///
    /// # Errors
    /// There are no keys, the purgatory or its timer was stopped, or the timer is full or could not be started. The
    /// operation comes back, and is watched nowhere.
    pub fn try_complete_else_watch(
        &self,
        operation: O,
        keys: impl IntoIterator<Item = K>,
        timeout: Duration,
    ) -> Result<Outcome, WatchError<O>> {
        let added = self.add(Own(operation), keys, timeout);
        added.map(|(_, outcome)| outcome).map_err(|error| error.map(|own| own.0))
    }

    /// [`try_complete_else_watch`](Purgatory::try_complete_else_watch) with closures: `condition` gives a value when it
    /// holds, and `then` is called once, with the value or with why there is none. A stop or a cancelled key tells it,
    /// and hands nothing back.
    ///
    /// # Errors
    /// As there; the closures come back.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex, mpsc};
    /// use std::time::Duration;
    /// use tourbillon::{Purgatory, Timer, VirtualClock, WaitError};
    ///
    /// let clock = VirtualClock::new();
    /// let purgatory: Purgatory<u32> = Purgatory::new(&Timer::builder().clock(&clock).build()?);
    /// let queue = Arc::new(Mutex::new(Vec::new()));
    /// let (told, outcomes) = mpsc::channel();
    /// for _ in 0..2 {
    ///     // A condition may take what it waited for: it is then delivered, for certain.
    ///     let (take, told) = (queue.clone(), told.clone());
    ///     let condition = move || take.lock().unwrap().pop();
    ///     purgatory.when([1], Duration::from_secs(1), condition, move |outcome| told.send(outcome).unwrap())?;
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
        let added = self.add(When::new(condition, then), keys, timeout);
        added
            .map(|(_, outcome)| outcome)
            .map_err(|error| error.map(|when| (when.condition, when.then)))
    }

    /// Waits until `condition` gives a value, or until the time is up. It is tried now, and from now on it is watched,
    /// polled or not.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws it at once from all its keys and from the wheel. A value that was given already, or
    /// that another thread's trial gives at that moment, is dropped with it.
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
        let sender = letter.clone();
        let then = move |outcome| sender.put(outcome);
        match self.add(When::new(condition, then), keys, timeout) {
            Ok((node, _)) => Wait::new(letter, node.map(|node| node as _)),
            Err(error) => {
                letter.put(Err(WaitError::from(&error)));
                Wait::new(letter, None)
            }
        }
    }

    /// Tries, and watches if need be. The node, if there is one.
    #[expect(clippy::type_complexity, reason = "a node and what became of it")]
    fn add<W: Work<O>>(
        &self,
        mut work: W,
        keys: impl IntoIterator<Item = K>,
        timeout: Duration,
    ) -> Result<(Option<Arc<Node<K, O, W>>>, Outcome), WatchError<W>> {
        let core = self.core();
        let keys = self.hashed(keys);
        if keys.is_empty() {
            return Err(WatchError::NoKeys(work));
        }
        // Pairs with the store of a stop: who comes after it is refused.
        if core.stopped.load(Acquire) {
            return Err(WatchError::Stopped(work));
        }
        if turn::attempt(&core.timer, 0, || work.attempt()) {
            turn::act(&core.timer, move || work.complete());
            return Ok((None, Outcome::Completed));
        }
        Node::watch(core, work, keys, timeout).map(|(node, outcome)| (Some(node), outcome))
    }

    /// Each key once, with its hash.
    fn hashed(&self, keys: impl IntoIterator<Item = K>) -> Vec<(u64, K)> {
        let with_hash = |key| (hash(&self.owner.hasher, &key), key);
        let mut all: Vec<(u64, K)> = keys.into_iter().map(with_hash).collect();
        if all.len() > 16 {
            // So that equal ones are near each other.
            all.sort_by_key(|&(hash, _)| hash);
        }
        let mut n = 1;
        while n < all.len() {
            let (before, this) = (&all[..n], &all[n]);
            let near = before.iter().rev().take_while(|other| n < 16 || other.0 == this.0);
            let mut near = near;
            if near.any(|other| other == this) {
                all.remove(n);
            } else {
                n += 1;
            }
        }
        all
    }
}

/// Events.
impl<K, O, S> Purgatory<K, O, S>
where
    K: Eq + Hash + Send + 'static,
    O: Operation,
    S: BuildHasher,
{
    /// Something has happened under the key: tries whoever waits there, in the order in which they came, and completes
    /// those whose condition holds. Returns how many this call has completed.
    ///
    /// One whose condition another thread is trying at this moment is not waited for: that thread tries it once more,
    /// and if it completes it, it is counted there. Inside another action the count is exact too; the actions run when
    /// the other has returned.
    pub fn check<Q>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut completed = 0;
        self.for_each(key, |entry| completed += usize::from(entry.check()));
        completed
    }

    /// Ends whoever waits under the key, and hands the operations back, in the order in which they came. They leave all
    /// their other keys too, and neither their completion nor their expiry will run. Waits and closures are told
    /// [`Cancelled`](WaitError::Cancelled).
    ///
    /// For an operation whose condition another thread is trying at this moment it waits until that has returned: it
    /// has then been completed, or it is handed back, after the others. So do not hold a lock that a condition takes.
    /// Called inside a condition it waits for nobody, and leaves those alone that are being tried.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tourbillon::{Operation, Purgatory, Timer};
    /// struct Never;
    /// impl Operation for Never {
    ///     fn try_complete(&mut self) -> bool { false }
    ///     fn on_complete(self) { unreachable!() }
    ///     fn on_expire(self) { unreachable!() }
    /// }
    /// let purgatory = Purgatory::new(&Timer::new());
    /// purgatory.try_complete_else_watch(Never, ["a", "b"], Duration::from_secs(60))?;
    /// assert_eq!(purgatory.watched(), 2);
    /// assert_eq!(purgatory.cancel_key("a").len(), 1);
    /// assert_eq!(purgatory.watched(), 0);
    /// # Ok::<(), tourbillon::WatchError<Never>>(())
    /// ```
    pub fn cancel_key<Q>(&self, key: &Q) -> Vec<O>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let basket = (!turn::is_trying_any()).then(Basket::new);
        let mut operations = Vec::new();
        self.for_each(key, |entry| {
            operations.extend(entry.take(Why::Cancelled, basket.as_ref()));
        });
        operations.extend(basket.into_iter().flat_map(|basket| basket.collect()));
        operations
    }

    /// Shows everybody who waits under the key, in batches, with no lock held.
    fn for_each<Q>(&self, key: &Q, mut show: impl FnMut(&dyn Entry<O>))
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = hash(&self.owner.hasher, key);
        let shelf = self.core().shelf(hash);
        let (mut walk, mut batch) = (Walk::default(), Vec::new());
        while shelf.walk(hash, key, &mut walk, &mut batch) {
            batch.drain(..).for_each(|entry| show(&*entry));
        }
    }
}

/// Looking, and stopping.
impl<K: Eq + Send + 'static, O: Operation, S> Purgatory<K, O, S> {
    /// How many entries there are under all keys: an operation counts once for each of its keys.
    pub fn watched(&self) -> usize {
        self.core().shelves.iter().map(|shelf| shelf.counts().0).sum()
    }

    /// How many wait: operations, closures and futures.
    pub fn delayed(&self) -> usize {
        self.core().shelves.iter().map(|shelf| shelf.counts().1).sum()
    }

    /// Stops the purgatory and hands back every operation that waits, each once. Waits and closures are told
    /// [`Stopped`](WaitError::Stopped); from now on nothing is watched. A second stop returns nothing. The timer goes
    /// on.
    ///
    /// As [`cancel_key`](Purgatory::cancel_key), it waits for conditions that other threads are trying at this moment.
    /// Called inside a condition it waits for nobody, and those that are being tried are dropped if their condition
    /// does not hold.
    pub fn stop(&self) -> Vec<O> {
        let basket = (!turn::is_trying_any()).then(Basket::new);
        let mut operations = self.core().stop(basket.as_ref());
        operations.extend(basket.into_iter().flat_map(|basket| basket.collect()));
        operations
    }
}

impl<K: Eq + Send + 'static, O: Operation> Core<K, O> {
    fn stop(&self, basket: Option<&Arc<Basket<O>>>) -> Vec<O> {
        self.stopped.store(true, Release);
        let mut operations = Vec::new();
        for shelf in &self.shelves {
            for (key, list) in shelf.close() {
                self.timer.contain(|| drop(key));
                operations.extend(
                    list.into_entries().filter_map(|entry| entry.take(Why::Stopped, basket)),
                );
            }
        }
        operations
    }
}

impl<K, O> Core<K, O> {
    #[inline]
    fn shelf(&self, hash: u64) -> &Shelf<K, O> {
        choose(&self.shelves, hash)
    }
}

impl<K: Eq + Send + 'static, O: Operation, S> Clone for Purgatory<K, O, S> {
    fn clone(&self) -> Self {
        Purgatory { owner: self.owner.clone() }
    }
}

impl<K: Eq + Send + 'static, O: Operation, S> fmt::Debug for Purgatory<K, O, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Purgatory");
        debug
            .field("watched", &self.watched())
            .field("delayed", &self.delayed())
            .finish_non_exhaustive()
    }
}
