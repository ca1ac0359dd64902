//! What takes part: the one face that every wheel, heap, tree and list shows to the harness.
//!
//! Time is virtual and counts milliseconds from 0, the tick is 1 ms, the payload a `u32`. An adapter translates
//! and adds nothing: no cache, no shortcut, no second copy of a deadline that its library does not keep itself.
//! The harness holds the keys, in one `Vec` for everybody.

use crate::league::Kind;

/// When the next timer is due, as far as a contestant can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has no verb for the question.
    Cannot,
    /// No timer is pending.
    Never,
    /// At this moment.
    At(u64),
}

impl From<Option<u64>> for Next {
    fn from(moment: Option<u64>) -> Self {
        moment.map_or(Next::Never, Next::At)
    }
}

/// A set of timers under test.
pub trait Contestant: Sized {
    /// Names one timer. Not `Copy`: one of the peers hands out tokens that must be given back.
    type Key;

    const NAME: &'static str;
    const KIND: Kind;
    /// The settings it runs with, for the reader of the table.
    const SETTINGS: &'static str;
    /// A cancelled timer leaves something behind, so that only a long churn shows what cancelling costs.
    const LAZY: bool = false;
    /// The largest population that it is asked to carry, and why not more.
    const MOST: (usize, &'static str) = (usize::MAX, "");
    /// The shortest and the longest delay that its documentation allows, in ms.
    const DELAYS: (u64, u64) = (0, 1 << 40);
    /// `advance_slice` works.
    const SLICES: bool = false;

    /// An empty contestant. `expected` is for those that cannot be made without a size; it is no capacity hint.
    fn new(expected: usize) -> Self;

    /// Starts a timer. `due` is not before the last `advance`.
    fn start(&mut self, due: u64, payload: u32) -> Self::Key;

    /// Starts a timer that nobody will cancel: the cheapest way the contestant offers.
    fn start_forgotten(&mut self, due: u64, payload: u32) {
        self.start(due, payload);
    }

    /// Cancels a pending timer.
    fn cancel(&mut self, key: Self::Key) -> Option<u32>;

    /// Moves a pending timer.
    fn reschedule(&mut self, key: Self::Key, due: u64) -> Self::Key;

    /// Gives back the key of a timer that has fired, where that is asked for.
    fn release(&mut self, _key: Self::Key) {}

    /// Fires all that is due by `now`.
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32));

    /// Advances to one moment after the other.
    fn advance_through(&mut self, moments: &[u64], fire: &mut impl FnMut(u32)) {
        for &now in moments {
            self.advance(now, fire);
        }
    }

    /// One call with a budget; true if another is needed.
    fn advance_slice(&mut self, _now: u64, _budget: usize, _fire: &mut impl FnMut(u32)) -> bool {
        unreachable!("asked only of those with SLICES")
    }

    /// The moment at which the next timer fires, exactly.
    fn next_exact(&mut self) -> Next {
        Next::Cannot
    }

    /// A moment not after `next_exact`, cheaply.
    fn next_bound(&mut self) -> Next {
        Next::Cannot
    }

    /// Entries of cancelled or moved timers that are still held, where the contestant can tell.
    fn dead(&self) -> Option<usize> {
        None
    }
}
