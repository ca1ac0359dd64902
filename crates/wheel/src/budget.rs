//! Limits the work of one call of `advance`.

use crate::OutOfMemory;

pub(crate) struct Budget {
    /// References, and slots of other turns, that may still be examined without firing.
    work: usize,
    /// The most timers that may be ready.
    ready: usize,
}

impl Budget {
    /// `ready` is the number of timers that are ready when the call begins; the budget does not count them.
    pub(crate) fn new(budget: usize, ready: usize) -> Self {
        Budget { work: budget, ready: ready.saturating_add(budget) }
    }

    /// How many more timers may be made ready when `ready` already are.
    #[inline]
    pub(crate) fn room(&self, ready: usize) -> Result<usize, Cut> {
        let room = self.ready.saturating_sub(ready).min(self.work);
        if room == 0 { Err(Cut::Budget) } else { Ok(room) }
    }

    /// How many more references or slots may be examined without firing.
    #[inline]
    pub(crate) fn work(&self) -> Result<usize, Cut> {
        if self.work == 0 { Err(Cut::Budget) } else { Ok(self.work) }
    }

    /// Counts references or slots that were examined.
    #[inline]
    pub(crate) fn spend(&mut self, work: usize) {
        self.work = self.work.saturating_sub(work);
    }
}

/// Why a tick was not settled completely.
pub(crate) enum Cut {
    Budget,
    Memory,
}

impl From<OutOfMemory> for Cut {
    fn from(_: OutOfMemory) -> Self {
        Cut::Memory
    }
}
