//! The events of a key: a check or a cancellation.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use super::Purgatory;
use super::node::Waiter;
use super::operation::Operation;
use super::request::Why;
use super::returned::Returned;
use super::trampoline::is_trying;
use super::watchers::Walk;
use crate::key_table::hash;

/// The number of entries copied at a time.
const BATCH: usize = 16;

/// Events.
impl<K, O, S> Purgatory<K, O, S>
where
    K: Eq + Hash + Send + 'static,
    O: Operation,
    S: BuildHasher,
{
    /// Tries the conditions of the operations under the key, in order of arrival; returns how many this call completed.
    ///
    /// Call it after a change that these conditions depend on.
    ///
    /// If another thread is trying an operation's condition, this call does not wait: that thread tries it once more,
    /// and counts the operation if that completes it. Likewise, this call may try a condition several times, as long as
    /// other threads check the operation's keys while it is tried. Inside an action, too, the count is exact; the
    /// actions of the completed operations run after that action has returned.
    ///
    /// Inside a condition, other operations are tried as usual. An operation whose condition is running at that moment,
    /// including the caller's own, is tried once more. Checks made by conditions during that further try cause no other
    /// one, so two conditions that check each other's keys terminate.
    pub fn check<Q>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut completed = 0;
        self.for_each(key, |entry| {
            let met = entry.check();
            completed += planted!("more.check-counts-whom-it-tried", 1, usize::from(met));
        });
        completed
    }

    /// Removes the operations watched under the key and returns them in order of arrival.
    ///
    /// They are removed from all their other keys too, and neither `on_complete` nor `on_expire` is called. Waits and
    /// closures get [`Cancelled`](crate::WaitError::Cancelled).
    ///
    /// If another thread is trying an operation's condition, this call waits until the condition has returned and has
    /// seen all earlier checks. The operation is then completed, or returned after the others. So do not hold a lock
    /// that a condition takes. Inside a condition, the call does not wait, and skips operations whose condition is
    /// running.
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
        let is_trying =
            planted!("third.cancel-inside-a-condition-waits-for-itself", false, is_trying());
        let returned = (!is_trying).then(Returned::new);
        let mut operations = Vec::new();
        self.for_each(key, |entry| {
            operations.extend(entry.take(Why::Cancelled, returned.as_ref()));
        });
        planted!("purgatory.cancel-does-not-wait", drop(returned), {
            operations.extend(returned.into_iter().flat_map(|returned| returned.collect()));
        });
        operations
    }

    /// Visits every entry under the key, in batches, with no lock held.
    fn for_each<Q>(&self, key: &Q, mut show: impl FnMut(&dyn Waiter<O>))
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = hash(&self.owner.hasher, key);
        let watchers = self.core().watchers(hash);
        let mut walk = Walk::default();
        // Many keys have only one entry.
        let mut first = [None];
        watchers.walk(hash, key, &mut walk, &mut first);
        let [Some(first)] = first else { return };
        show(&*first);
        drop(first);
        if walk.done {
            return;
        }
        let mut batch = [const { None }; BATCH];
        while planted!(
            "purgatory.last-batch-not-tried",
            watchers.walk(hash, key, &mut walk, &mut batch) && !walk.done,
            watchers.walk(hash, key, &mut walk, &mut batch)
        ) {
            batch.iter_mut().map_while(Option::take).for_each(|entry| show(&*entry));
        }
    }
}
