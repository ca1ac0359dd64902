//! Deliveries on their way.

use tourbillon_durable::Delivery;

/// Deliveries that are not yet their taker's: dropped, they are due again at once, and no attempt is used up.
pub(crate) struct Unsent(Vec<Delivery>);

impl Unsent {
    pub(crate) fn new(deliveries: Vec<Delivery>) -> Self {
        Unsent(deliveries)
    }

    pub(crate) fn first(&self) -> Option<&Delivery> {
        self.0.first()
    }

    /// They are sent: they are their taker's.
    pub(crate) fn detach(&mut self) {
        self.0.drain(..).for_each(|delivery| drop(delivery.detach()));
    }

    /// Takes the last out: it is the caller's.
    pub(crate) fn take(&mut self) -> Option<Delivery> {
        self.0.pop()
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        for delivery in self.0.drain(..) {
            // An answer that is lost means that the lease decides.
            drop(delivery.release());
        }
    }
}
