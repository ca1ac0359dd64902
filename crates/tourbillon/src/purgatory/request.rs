//! What is left with a holder by those who come meanwhile.

use super::returned::Ticket;

/// What a holder is to do when the condition was not met.
pub(super) struct Request<O> {
    pub(super) again: Again,
    pub(super) end: End<O>,
}

/// Whether it is to be tried once more.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Again {
    #[default]
    No,
    /// For a check that was made inside a condition.
    Echo,
    Yes,
}

/// How it is to end.
pub(super) enum End<O> {
    No,
    Expire,
    /// Completed, though its condition does not hold.
    Complete,
    Back(Why, Option<Ticket<O>>),
}

/// Why one ends that is neither completed nor expired.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Cancelled,
    Stopped,
    /// Nobody waits for it any more.
    Withdrawn,
}

impl<O> Request<O> {
    pub(super) const NONE: Self = Request { again: Again::No, end: End::No };

    /// Asks for it back, unless that was requested.
    pub(super) fn ask_back(&mut self, request: impl FnOnce() -> Option<End<O>>) {
        if self.is_back() {
            return;
        }
        if let Some(end) = request() {
            self.end = end;
        }
    }

    /// Whether its end is decided, so that nothing else can be requested.
    pub(super) fn is_back(&self) -> bool {
        let is_expiry = planted!(
            "purgatory.cancel-after-the-timeout-ignored",
            matches!(self.end, End::Expire),
            false
        );
        is_expiry || matches!(self.end, End::Back(..) | End::Complete)
    }
}
