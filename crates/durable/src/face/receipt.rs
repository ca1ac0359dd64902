//! Receipts: pending answers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::error::Error;
use crate::runtime::Slot;

/// The pending answer to a request. Once it resolves, the reported outcome is durable.
///
/// Block on it with [`wait`](Receipt::wait), or await it on any runtime. Dropping it does not cancel the request.
///
/// ```
/// use std::time::Duration;
/// use tourbillon_durable::{Durable, NewTimer};
///
/// let durable = Durable::memory()?;
/// let jobs = durable.queue("jobs")?;
/// let mut receipt = jobs.schedule(NewTimer::after(Duration::from_secs(60)).key("a")?);
/// let scheduled = receipt.wait_for(Duration::from_secs(10)).expect("soon")?;
/// assert_eq!(scheduled.key.as_str(), "a");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is durable until the receipt has been waited for or awaited"]
pub struct Receipt<T, E = Error> {
    slot: Arc<Slot<Result<T, E>>>,
}

impl<T, E> Receipt<T, E> {
    pub(super) fn new() -> (Self, Arc<Slot<Result<T, E>>>) {
        let slot = Arc::new(Slot::new());
        (Receipt { slot: slot.clone() }, slot)
    }

    /// A receipt that is already resolved.
    pub(super) fn ready(answer: Result<T, E>) -> Self {
        let (receipt, slot) = Receipt::new();
        slot.fill(answer);
        receipt
    }

    /// Blocks until the answer arrives.
    ///
    /// # Errors
    /// The error of the request.
    pub fn wait(self) -> Result<T, E> {
        self.slot
            .wait(None)
            .expect("every request is answered, and the answer was not taken before")
    }

    /// Blocks for at most `limit` of real time. `None` if the answer is still pending or was already taken.
    pub fn wait_for(&mut self, limit: Duration) -> Option<Result<T, E>> {
        self.slot.wait(Some(limit))
    }
}

impl<T, E> Future for Receipt<T, E> {
    type Output = Result<T, E>;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.slot.poll(context)
    }
}

impl<T, E> std::fmt::Debug for Receipt<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Receipt")
    }
}
