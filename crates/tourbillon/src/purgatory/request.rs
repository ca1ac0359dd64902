//! Requests left for the thread that holds the operation.

use super::returned::Ticket;

/// What the holder does if the condition was not met.
pub(super) struct Request<O> {
    pub(super) again: Again,
    pub(super) end: End<O>,
}

/// Whether to try the condition once more.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Again {
    #[default]
    No,
    /// Requested by a check inside a condition.
    Echo,
    Yes,
}

/// How the operation ends.
pub(super) enum End<O> {
    No,
    Expire,
    /// Completed, even though its condition does not hold.
    Complete,
    Back(Why, Option<Ticket<O>>),
}

/// The reason why an operation ends without being completed or expiring.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Cancelled,
    Stopped,
    /// Its future was dropped.
    Withdrawn,
}

impl<O> Request<O> {
    pub(super) const NONE: Self = Request { again: Again::No, end: End::No };

    /// Requests the return of the operation, unless that is requested already.
    pub(super) fn ask_back(&mut self, request: impl FnOnce() -> Option<End<O>>) {
        let decided = planted!(
            "purgatory.cancel-overrules-a-completion",
            matches!(self.end, End::Back(..)),
            self.is_back()
        );
        if decided {
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
