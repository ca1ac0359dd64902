//! The operations of a purgatory.

use std::convert::Infallible;

/// A request that waits for a condition, and either completes or expires.
///
/// Either [`on_complete`](Operation::on_complete) or [`on_expire`](Operation::on_expire) is called, once, and takes the
/// operation; or neither is called, and [`cancel_key`](crate::Purgatory::cancel_key) or
/// [`stop`](crate::Purgatory::stop) returns the operation. If the timer is stopped, an operation continues to wait for
/// its condition, without a timeout: stop the purgatory to get it back.
///
/// An operation is never used by two threads at once, so it needs no lock of its own. Its code runs with no lock of the
/// purgatory held, and may use the purgatory.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
/// use std::sync::{Arc, mpsc};
/// use tourbillon::Operation;
///
/// /// Waits until enough replicas have a record.
/// struct Replicated {
///     confirmed: Arc<AtomicUsize>,
///     needed: usize,
///     answer: mpsc::Sender<Result<(), &'static str>>,
/// }
///
/// impl Operation for Replicated {
///     fn try_complete(&mut self) -> bool {
///         self.confirmed.load(SeqCst) >= self.needed
///     }
///
///     fn on_complete(self) {
///         let _ = self.answer.send(Ok(()));
///     }
///
///     fn on_expire(self) {
///         let _ = self.answer.send(Err("not replicated in time"));
///     }
/// }
/// ```
pub trait Operation: Send + Sized + 'static {
    /// Returns whether the condition holds. Once it returns true, the operation completes, whatever else happens.
    ///
    /// So a condition may take what it waits for.
    ///
    /// It is called before the operation is watched and once more after that, at every check of one of its keys, again
    /// for checks made while it runs, and a last time at the timeout; never by two threads at once. It should be short,
    /// and only test, or take what it finds: [a check inside it](crate::Purgatory::check) causes at most one further
    /// call. A panic counts as not met: the timer counts and reports it, and the operation continues to wait.
    fn try_complete(&mut self) -> bool;

    /// Called when the condition holds, on the thread that tried it, after the operation has left the purgatory.
    fn on_complete(self);

    /// Called when the timeout has passed and the condition does not hold.
    ///
    /// Runs where the timer's callbacks run, or on the thread that was trying the condition at that moment.
    fn on_expire(self);
}

/// The operation type of a purgatory that is used only with closures and futures.
impl Operation for Infallible {
    fn try_complete(&mut self) -> bool {
        match *self {}
    }

    fn on_complete(self) {
        match self {}
    }

    fn on_expire(self) {
        match self {}
    }
}

/// The result of adding an operation to a purgatory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its condition held, and this call completed it. If it held at once, no timer was armed and nothing was watched.
    Completed,
    /// It is being watched. Another thread may already have completed, expired or removed it.
    Watched,
}
