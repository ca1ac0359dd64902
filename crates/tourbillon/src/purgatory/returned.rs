//! Where a cancel or a stop waits for operations whose condition another thread is trying at that moment.
//!
//! Who tries gets a ticket with the request to have the operation back. It puts the operation into `Returned`, or it
//! drops the ticket because the operation was completed after all; `collect` waits until no ticket is out.

use std::sync::Arc;

use crate::sync::{Condvar, Mutex, lock, wait};

pub(super) struct Returned<O> {
    inside: Mutex<InCallback<O>>,
    answered: Condvar,
}

struct InCallback<O> {
    operations: Vec<O>,
    tickets: usize,
}

/// The right to put one operation into `Returned`, and the duty to say so if there is none.
pub(super) struct Ticket<O>(Arc<Returned<O>>);

impl<O> Returned<O> {
    pub(super) fn new() -> Arc<Self> {
        let inside = InCallback { operations: Vec::new(), tickets: 0 };
        Arc::new(Returned { inside: Mutex::new(inside), answered: Condvar::new() })
    }

    pub(super) fn ticket(self: &Arc<Self>) -> Ticket<O> {
        lock(&self.inside).tickets += 1;
        Ticket(self.clone())
    }

    /// Waits for all tickets. Never inside a condition: two that waited for each other would wait for ever.
    pub(super) fn collect(&self) -> Vec<O> {
        let mut inside = lock(&self.inside);
        while planted!("purgatory.cancel-does-not-wait-for-the-returned", false, inside.tickets > 0)
        {
            inside = wait(&self.answered, inside, None);
        }
        std::mem::take(&mut inside.operations)
    }
}

impl<O> Ticket<O> {
    pub(super) fn put(self, operation: O) {
        lock(&self.0.inside).operations.push(operation);
    }
}

impl<O> Drop for Ticket<O> {
    fn drop(&mut self) {
        lock(&self.0.inside).tickets -= 1;
        planted!("purgatory.cancel-not-woken-by-the-returned", (), self.0.answered.notify_all());
    }
}
