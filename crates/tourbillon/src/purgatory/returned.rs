//! Where a cancel or a stop waits for operations that other threads are trying.
//!
//! The request to hand an operation back carries a ticket. The holder either uses the ticket to put the operation into
//! `Returned`, or drops it because the operation was completed. `collect` waits until every ticket is dropped.

use std::sync::Arc;

use crate::sync::{Condvar, Mutex, lock, wait};

pub(super) struct Returned<O> {
    inside: Mutex<ReturnedState<O>>,
    answered: Condvar,
}

struct ReturnedState<O> {
    operations: Vec<O>,
    tickets: usize,
}

/// Permission to put one operation into `Returned`. Its drop reports that the holder is done.
pub(super) struct Ticket<O>(Arc<Returned<O>>);

impl<O> Returned<O> {
    pub(super) fn new() -> Arc<Self> {
        let inside = ReturnedState { operations: Vec::new(), tickets: 0 };
        Arc::new(Returned { inside: Mutex::new(inside), answered: Condvar::new() })
    }

    pub(super) fn ticket(self: &Arc<Self>) -> Ticket<O> {
        lock(&self.inside).tickets += 1;
        Ticket(self.clone())
    }

    /// Waits for all tickets. Never called inside a condition: two conditions could wait for each other forever.
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
