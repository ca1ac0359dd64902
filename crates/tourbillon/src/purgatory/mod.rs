//! `Purgatory`: holds operations until each either completes, when its condition holds, or expires.
//!
//! ```text
//!   keys, on watchers          nodes                               the timer's wheel
//!   ┌──────────────┐          ┌────────────────────────────┐
//!   │ "orders-0" ──┼──► list ─┼─► state, and while it rests │ ◄─── timeout
//!   │ "orders-1" ──┼──► list ─┤   the operation, its places │
//!   └──────────────┘          └────────────────────────────┘
//! ```
//!
//! A *node* contains an operation, and is reachable from its keys and its timer. A thread that tries the condition
//! takes the operation out of the node (`node.rs` has the table of transitions). The thread that ends an operation
//! first removes the node from every key and from the wheel, and then runs the operation's *action* (`on_complete` or
//! `on_expire`), with no lock held. Nothing stays behind, so there is nothing to purge.

mod error;
mod events;
mod inline_vec;
mod kafka;
mod list;
mod node;
mod operation;
mod request;
mod returned;
mod trampoline;
mod wait;
mod watched;
mod watchers;
mod watching;
mod work;

use std::convert::Infallible;
use std::fmt;
use std::hash::RandomState;
use std::sync::Arc;

use crate::Timer;
use crate::key_table::{choose, tables};
use crate::sync::atomic::{AtomicBool, Ordering::Release};
pub use error::{WaitError, WatchError};
pub use kafka::{Delayed, DelayedOperation};
pub use operation::{Operation, Outcome};
use request::Why;
use returned::Returned;
pub use wait::Wait;
pub use watched::Watched;
use watchers::Watchers;

/// Holds operations under keys until an event completes them or they expire.
///
/// Clones share the same purgatory, and any thread may use it.
///
/// - **Exactly once**: an operation is completed, expires or is handed back; exactly one of these, once. At the timeout
///   its condition is tried one last time; if the condition holds, the operation is completed.
/// - **No event is missed**: after changing something that a condition depends on, call [`check`](Purgatory::check).
///   Every watched operation then sees the change before it expires or is handed back, whatever else happens at that
///   moment. The exception is an operation that a cancel or a stop has already requested. For checks made inside a
///   condition, an operation whose condition is running is tried [at most once](Purgatory::check) more.
/// - **Nothing is left behind**: before its action runs, an operation is removed from every key and from the wheel,
///   with its memory.
/// - **No deadlock**: conditions and actions (`on_complete`, `on_expire`) run with no lock held, and may use the
///   purgatory. Actions run one after the other: a chain of actions that complete further operations takes no more
///   stack than a single action.
/// - It has no thread of its own: any number of purgatories share one [`Timer`] and its clock.
///
/// `K` is the type of the keys, and `O` that of the operations; a purgatory used only with [closures](Purgatory::when)
/// and [futures](Purgatory::wait) needs no operations. Keys are compared under a lock, so `Eq` must not use the
/// purgatory. No other user code runs under that lock: the drop of a key, for example, may use the purgatory.
///
/// Dropping the last clone stops the purgatory and drops the operations in it.
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
/// // Something arrives: check the operations that wait under that key.
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
    owner: Arc<PurgatoryOwner<K, O, S>>,
}

/// State shared by the clones. Dropping the last clone stops the purgatory.
struct PurgatoryOwner<K: Eq + Send + 'static, O: Operation, S> {
    core: Arc<Core<K, O>>,
    hasher: S,
}

impl<K: Eq + Send + 'static, O: Operation, S> Drop for PurgatoryOwner<K, O, S> {
    fn drop(&mut self) {
        for operation in self.core.stop(None) {
            planted!("purgatory.drop-with-the-last-clone-panics-out", drop(operation), {
                self.core.timer.contain(|| drop(operation));
            });
        }
    }
}

struct Core<K, O> {
    timer: Timer,
    watchers: Box<[Watchers<K, O>]>,
    /// Whether it was stopped. Each shard of keys records this too; the flag only saves later callers a call of the
    /// condition.
    stopped: AtomicBool,
}

impl<K: Eq + Send + 'static, O: Operation> Purgatory<K, O> {
    /// Creates a purgatory whose operations time out on `timer`.
    pub fn new(timer: &Timer) -> Self {
        Purgatory::with_hasher(timer, RandomState::new())
    }
}

impl<K: Eq + Send + 'static, O: Operation, S> Purgatory<K, O, S> {
    /// As [`new`](Purgatory::new), with another hasher. The default hasher resists keys chosen to collide.
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
        let watchers = (0..tables()).map(|_| Watchers::new()).collect();
        let core =
            Arc::new(Core { timer: timer.clone(), watchers, stopped: AtomicBool::new(false) });
        Purgatory { owner: Arc::new(PurgatoryOwner { core, hasher }) }
    }

    fn core(&self) -> &Arc<Core<K, O>> {
        &self.owner.core
    }
}

/// Inspecting and stopping.
impl<K: Eq + Send + 'static, O: Operation, S> Purgatory<K, O, S> {
    /// The number of entries under all keys: an operation counts once for each of its keys.
    pub fn watched(&self) -> usize {
        self.core().watchers.iter().map(|watchers| watchers.counts().0).sum()
    }

    /// The number of operations, closures and futures that are watched.
    pub fn delayed(&self) -> usize {
        let of = |watchers: &Watchers<K, O>| {
            planted!("purgatory.delayed-counts-keys", watchers.counts().0, watchers.counts().1)
        };
        self.core().watchers.iter().map(of).sum()
    }

    /// Stops the purgatory and returns every operation in it, each once.
    ///
    /// Waits and closures get [`Stopped`](WaitError::Stopped), and nothing is watched from now on. A second stop
    /// returns at once, with nothing. The timer continues to run. Conversely, if the timer is stopped, waits and
    /// closures get `Stopped` too, but operations stay, without a timeout, until this method is called.
    ///
    /// Like [`cancel_key`](Purgatory::cancel_key), it waits for conditions that other threads are trying. Inside a
    /// condition it does not wait: an operation whose condition is running is dropped if the condition does not hold.
    pub fn stop(&self) -> Vec<O> {
        let is_trying =
            planted!("purgatory.stop-waits-inside-a-condition", false, trampoline::is_trying());
        let returned = (!is_trying).then(Returned::new);
        let mut operations = self.core().stop(returned.as_ref());
        operations.extend(returned.into_iter().flat_map(|returned| returned.collect()));
        operations
    }
}

impl<K: Eq + Send + 'static, O: Operation> Core<K, O> {
    fn stop(&self, returned: Option<&Arc<Returned<O>>>) -> Vec<O> {
        planted!("purgatory.stop-is-not-remembered", (), self.stopped.store(true, Release));
        let mut operations = Vec::new();
        for watchers in &self.watchers {
            for (key, list) in watchers.close() {
                planted!(
                    "later.stop-ends-at-a-key-whose-drop-panics",
                    drop(key),
                    self.drop_key(key)
                );
                operations.extend(
                    list.into_entries().filter_map(|entry| entry.take(Why::Stopped, returned)),
                );
            }
        }
        operations
    }
}

impl<K, O> Core<K, O> {
    #[inline]
    fn watchers(&self, hash: u64) -> &Watchers<K, O> {
        choose(&self.watchers, hash)
    }

    /// Drops a key. The drop is user code, so the caller holds neither a lock nor an operation.
    #[inline]
    fn drop_key(&self, key: K) {
        if std::mem::needs_drop::<K>() {
            self.timer.contain(|| drop(key));
        }
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
