//! Deliveries that are not sent yet.

use tourbillon_durable::Delivery;

/// Deliveries not yet sent to their taker. Dropping it releases them: due again at once, and no attempt is used up.
pub(crate) struct Unsent(Vec<Delivery>);

impl Unsent {
    pub(crate) fn new(deliveries: Vec<Delivery>) -> Self {
        Unsent(deliveries)
    }

    pub(crate) fn first(&self) -> Option<&Delivery> {
        self.0.first()
    }

    /// Marks the deliveries as sent. From then on they belong to their taker.
    pub(crate) fn detach(&mut self) {
        self.0.drain(..).for_each(|delivery| drop(delivery.detach()));
    }

    /// Removes the last delivery. It then belongs to the caller.
    pub(crate) fn take(&mut self) -> Option<Delivery> {
        self.0.pop()
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        for delivery in self.0.drain(..) {
            // If this release is lost, the delivery ends with its lease.
            drop(delivery.release());
        }
    }
}
