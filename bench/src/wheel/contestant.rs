//! The interface through which the harness uses every wheel, heap, tree and list.
//!
//! Time is virtual and counts milliseconds from 0, the tick is 1 ms, the payload a `u32`. An adapter translates calls
//! and adds nothing: no cache, no shortcut, and no copy of a deadline that its library does not keep itself. The
//! harness stores the keys, for all contestants in a `Vec`.

use crate::league::Kind;

/// A contestant's answer to when the next timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has no such operation.
    Cannot,
    /// No timer is pending.
    Never,
    /// The next timer is due at this moment.
    At(u64),
}

impl From<Option<u64>> for Next {
    fn from(moment: Option<u64>) -> Self {
        moment.map_or(Next::Never, Next::At)
    }
}

/// A set of timers under test.
pub trait Contestant: Sized {
    /// Identifies a timer. Not `Copy`, because one of the peers hands out tokens that must be returned.
    type Key;

    const NAME: &'static str;
    const KIND: Kind;
    /// Its settings, for readers of the table.
    const SETTINGS: &'static str;
    /// Whether a cancelled timer leaves an entry behind, so that only a long churn shows the cost of cancelling.
    const LAZY: bool = false;
    /// The largest population that it is tested with, and why not more.
    const MOST: (usize, &'static str) = (usize::MAX, "");
    /// The shortest and the longest delay that its documentation allows, in ms.
    const DELAYS: (u64, u64) = (0, 1 << 40);
    /// Whether `advance_slice` is implemented.
    const SLICES: bool = false;

    /// Creates an empty contestant. `expected` is only for those that require a size; it is not a capacity hint.
    fn new(expected: usize) -> Self;

    /// Starts a timer. `due` is not before the last `advance`.
    fn start(&mut self, due: u64, payload: u32) -> Self::Key;

    /// Starts a timer that is never cancelled, in the cheapest way that the contestant offers.
    fn start_forgotten(&mut self, due: u64, payload: u32) {
        self.start(due, payload);
    }

    /// Cancels a pending timer.
    fn cancel(&mut self, key: Self::Key) -> Option<u32>;

    /// Moves a pending timer.
    fn reschedule(&mut self, key: Self::Key, due: u64) -> Self::Key;

    /// Returns the key of a fired timer, if the contestant requires that.
    fn release(&mut self, _key: Self::Key) {}

    /// Fires all timers due by `now`.
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32));

    /// Advances to one moment after the other.
    fn advance_through(&mut self, moments: &[u64], fire: &mut impl FnMut(u32)) {
        for &now in moments {
            self.advance(now, fire);
        }
    }

    /// Advances with a budget. Returns whether another call is needed.
    fn advance_slice(&mut self, _now: u64, _budget: usize, _fire: &mut impl FnMut(u32)) -> bool {
        unreachable!("asked only of those with SLICES")
    }

    /// The exact moment at which the next timer fires.
    fn next_exact(&mut self) -> Next {
        Next::Cannot
    }

    /// A cheap lower bound of `next_exact`.
    fn next_bound(&mut self) -> Next {
        Next::Cannot
    }

    /// The number of entries left by cancelled or moved timers, if the contestant can tell.
    fn dead(&self) -> Option<usize> {
        None
    }
}
