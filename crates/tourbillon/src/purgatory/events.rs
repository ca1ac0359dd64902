//! What happens under a key: a check, or its end.

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

/// So many are copied at a time.
const BATCH: usize = 16;

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
    /// and if it completes it, it is counted there. So this call may try one operation several times: once more after
    /// each trial during which others have checked its keys, as long as they go on. Inside another action the count is
    /// exact too; the actions run when the other has returned.
    ///
    /// Inside a condition it tries others as anywhere. One that is being tried at that moment, the caller's own too, is
    /// tried once more for it, but not for a check inside a condition that comes during that trial: two conditions that
    /// check each other's keys come to an end.
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

    /// Ends whoever waits under the key, and hands the operations back, in the order in which they came. They leave all
    /// their other keys too, and neither their completion nor their expiry will run. Waits and closures are told
    /// [`Cancelled`](crate::WaitError::Cancelled).
    ///
    /// For an operation whose condition another thread is trying at this moment it waits until that has returned, and
    /// has seen the checks that were made before: it has then been completed, or it is handed back, after the others.
    /// So do not hold a lock that a condition takes. Called inside a condition it waits for nobody, and leaves those
    /// alone that are being tried.
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

    /// Shows everybody who waits under the key, in batches, with no lock held.
    fn for_each<Q>(&self, key: &Q, mut show: impl FnMut(&dyn Waiter<O>))
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = hash(&self.owner.hasher, key);
        let watchers = self.core().watchers(hash);
        let mut walk = Walk::default();
        // Many keys have one.
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
