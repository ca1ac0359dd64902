//! What waits in a purgatory.

use std::convert::Infallible;

/// A request that must wait for something: it is completed when its condition holds, or expires.
///
/// Exactly one of [`on_complete`](Operation::on_complete) and [`on_expire`](Operation::on_expire) is called, once, and
/// takes the operation; or it is handed back by [`cancel_key`](crate::Purgatory::cancel_key) or
/// [`stop`](crate::Purgatory::stop), and neither is. If the timer is stopped, an operation goes on waiting for its
/// condition, with no timeout any more: stop the purgatory to have it back.
///
/// The operation is never used by two threads at once, so it needs no lock of its own. All its code runs with no lock
/// of the purgatory's held, and may use the purgatory.
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
    /// Whether the condition holds. Once it has said so the operation completes, whatever happens meanwhile: a
    /// condition may take what it waited for.
    ///
    /// It is tried before the operation is watched and once more after that, by every check of one of its keys, and one
    /// last time at the timeout, and again for checks that come during a trial; never by two threads at once. It should
    /// be short, and only look, or take what it finds: [a check inside of it](crate::Purgatory::check) is granted once.
    /// One that panics counts as not met: the panic is counted and reported by the timer, and the operation goes on
    /// waiting.
    fn try_complete(&mut self) -> bool;

    /// The condition holds: runs on the thread that has found out, after the operation has left the purgatory.
    fn on_complete(self);

    /// The timeout came first: runs where the timer's callbacks run, or on the thread that was trying the condition at
    /// that moment.
    fn on_expire(self);
}

/// Of a purgatory that is used with closures and futures alone.
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

/// What has become of an operation that was given to a purgatory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its condition held: it was completed by this call. If it held at once, no timer was armed and nothing watched.
    Completed,
    /// It is watched. It may have been completed, expired or handed back by another thread since.
    Watched,
}
