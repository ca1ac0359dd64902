//! How much one call of `advance` may do, and why it ended before its end.

use crate::OutOfMemory;

pub(crate) struct Budget {
    /// References, and slots of other turns, that may still be looked at without firing.
    work: usize,
    /// The most timers that may be ready.
    ready: usize,
}

impl Budget {
    /// For a call that finds so many timers ready: they do not count, the budget is for the work of this one.
    pub(crate) fn new(budget: usize, ready: usize) -> Self {
        Budget { work: budget, ready: ready.saturating_add(budget) }
    }

    /// How many timers may still be made ready, having looked at as many, if so many are.
    #[inline]
    pub(crate) fn room(&self, ready: usize) -> Result<usize, Cut> {
        let room = self.ready.saturating_sub(ready).min(self.work);
        if room == 0 { Err(Cut::Budget) } else { Ok(room) }
    }

    /// How many may still be looked at without firing.
    #[inline]
    pub(crate) fn work(&self) -> Result<usize, Cut> {
        if self.work == 0 { Err(Cut::Budget) } else { Ok(self.work) }
    }

    /// So many were looked at.
    #[inline]
    pub(crate) fn spend(&mut self, work: usize) {
        self.work = self.work.saturating_sub(work);
    }
}

/// Why settling a tick ended before its end.
pub(crate) enum Cut {
    Budget,
    Memory,
}

impl From<OutOfMemory> for Cut {
    fn from(_: OutOfMemory) -> Self {
        Cut::Memory
    }
}
