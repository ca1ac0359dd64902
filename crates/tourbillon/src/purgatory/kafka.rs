//! Operations with the callbacks of Kafka's `DelayedOperation`, in which expiry completes too.

use super::operation::Operation;

/// An operation with the callbacks of Kafka's `DelayedOperation`.
///
/// Wrap it in [`Delayed`] to add it to a [`Purgatory`](crate::Purgatory).
/// [`on_complete`](DelayedOperation::on_complete) is called once, however the operation ends; if it expired,
/// [`on_expiration`](DelayedOperation::on_expiration) is called after that. For an [`Operation`], only one of the two
/// callbacks is called, so code ported from Kafka that answers in `onComplete` would have to answer in both.
pub trait DelayedOperation: Send + Sized + 'static {
    /// Returns whether the condition holds, as [`Operation::try_complete`].
    fn try_complete(&mut self) -> bool;

    /// Called when the condition holds or the timeout has passed.
    fn on_complete(&mut self);

    /// Called after [`on_complete`](DelayedOperation::on_complete) if the timeout has passed.
    fn on_expiration(&mut self);
}

/// A [`DelayedOperation`] as an [`Operation`].
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tourbillon::{Delayed, DelayedOperation, Purgatory, Timer, VirtualClock};
///
/// struct Fetch(mpsc::Sender<&'static str>);
/// impl DelayedOperation for Fetch {
///     fn try_complete(&mut self) -> bool { false }
///     fn on_complete(&mut self) { self.0.send("answered").unwrap() }
///     fn on_expiration(&mut self) { self.0.send("counted as expired").unwrap() }
/// }
///
/// let clock = VirtualClock::new();
/// let purgatory = Purgatory::new(&Timer::builder().clock(&clock).build()?);
/// let (log, said) = mpsc::channel();
/// purgatory.try_complete_else_watch(Delayed(Fetch(log)), ["key"], Duration::from_secs(5))?;
/// clock.advance(Duration::from_secs(5))?;
/// assert_eq!(said.iter().collect::<Vec<_>>(), ["answered", "counted as expired"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delayed<D>(pub D);

impl<D: DelayedOperation> Operation for Delayed<D> {
    fn try_complete(&mut self) -> bool {
        self.0.try_complete()
    }

    fn on_complete(mut self) {
        self.0.on_complete();
    }

    fn on_expire(mut self) {
        planted!(
            "fifth.delayed-expires-before-it-completes",
            {
                self.0.on_expiration();
                self.0.on_complete();
            },
            {
                planted!("purgatory.delayed-expires-without-an-answer", (), self.0.on_complete());
                self.0.on_expiration();
            }
        );
    }
}
