//! The handle of a watched operation.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use super::Purgatory;
use super::error::WatchError;
use super::node::Control;
use super::operation::Operation;
use super::request::Why;
use super::returned::Returned;
use super::trampoline::is_trying;
use super::work::Own;

/// The handle of one operation of a [`Purgatory`].
///
/// Returned by [`Purgatory::watch`]. Dropping it changes nothing.
pub struct Watched<O> {
    /// `None` if it was completed before it was watched.
    entry: Option<Arc<dyn Control<O>>>,
}

/// Watching with a handle.
impl<K, O, S> Purgatory<K, O, S>
where
    K: Eq + Hash + Send + 'static,
    O: Operation,
    S: BuildHasher,
{
    /// As [`try_complete_else_watch`](Purgatory::try_complete_else_watch), but returns a handle of the operation.
    ///
    /// # Errors
    /// As [`try_complete_else_watch`](Purgatory::try_complete_else_watch); the error holds the operation.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tourbillon::{Operation, Purgatory, Timer};
    ///
    /// struct Fetch(mpsc::Sender<&'static str>);
    /// impl Operation for Fetch {
    ///     fn try_complete(&mut self) -> bool { false }
    ///     fn on_complete(self) { self.0.send("completed").unwrap() }
    ///     fn on_expire(self) { self.0.send("expired").unwrap() }
    /// }
    ///
    /// let purgatory = Purgatory::new(&Timer::new());
    /// let (answer, answers) = mpsc::channel();
    /// let minute = Duration::from_secs(60);
    /// let first = purgatory.watch(Fetch(answer.clone()), ["a", "b"], minute)?;
    /// let other = purgatory.watch(Fetch(answer), ["a"], minute)?;
    ///
    /// assert!(first.complete() && first.is_completed());
    /// assert_eq!(answers.try_recv(), Ok("completed"));
    /// assert!(!first.complete(), "it was completed before");
    ///
    /// assert!(other.cancel().is_some(), "it is handed back");
    /// assert!(other.is_over() && !other.is_completed());
    /// assert_eq!(purgatory.watched(), 0);
    /// # Ok::<(), tourbillon::WatchError<Fetch>>(())
    /// ```
    pub fn watch(
        &self,
        operation: O,
        keys: impl IntoIterator<Item = K>,
        timeout: Duration,
    ) -> Result<Watched<O>, WatchError<O>> {
        let (node, _) =
            self.add(Own(operation), keys, timeout).map_err(|error| error.map(|own| own.0))?;
        Ok(Watched { entry: node.map(|node| node as Arc<dyn Control<O>>) })
    }
}

impl<O> Watched<O> {
    /// Whether it was completed: by its condition, or [by hand](Watched::complete).
    ///
    /// Its `on_complete` may not have run yet.
    pub fn is_completed(&self) -> bool {
        self.ended().unwrap_or(false)
    }

    /// Whether it was completed, has expired, or was handed back.
    pub fn is_over(&self) -> bool {
        self.ended().is_some()
    }

    fn ended(&self) -> Option<bool> {
        let at_once = planted!("fourth.completed-at-once-is-never-over", None, Some(true));
        self.entry.as_ref().map_or(at_once, |entry| entry.ended())
    }

    /// Completes it now, whatever its condition returns. `false` if it is over or about to be handed back.
    ///
    /// [`on_complete`](Operation::on_complete) runs on this thread, or on the thread that is trying the condition at
    /// this moment.
    pub fn complete(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.force())
    }

    /// Takes it out of the purgatory; neither `on_complete` nor `on_expire` runs. `None` if it is over.
    ///
    /// If another thread is trying the condition, this call waits for that; if the condition holds, the operation is
    /// completed instead. Inside a condition this call does not wait, and an operation whose condition is running
    /// stays.
    pub fn cancel(&self) -> Option<O> {
        let is_trying =
            planted!("purgatory.handle-in-its-condition-waits-for-itself", false, is_trying());
        let returned = (!is_trying).then(Returned::new);
        let taken = self.entry.as_ref()?.take(Why::Cancelled, returned.as_ref());
        taken.or_else(|| {
            planted!(
                "fifth.operation-cancelled-in-a-trial-is-lost",
                None,
                returned?.collect().pop()
            )
        })
    }
}

impl<O> fmt::Debug for Watched<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}
