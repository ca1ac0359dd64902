//! What handles know of their timers: a lease each, under the lock of the shard.
//!
//! A handle answers for its timer after that has left the wheel, and a wheel forgets. So a timer with a handle has a
//! lease: its state, and how many hold it, which are the handles, and the timer itself until it has ended. The last of
//! them gives the lease back. In an allocation of its own, as an `Arc`, it would cost more than the rest of the timer.
//!
//! Leases lie in segments, and none ever moves: growing copies nothing.

/// What has become of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It waits for its deadline, or for a thread to run on.
    Pending,
    /// Its callback has started and not yet ended.
    Running,
    /// Its callback has ended, by returning or by a panic.
    Fired,
    /// It was cancelled, and will never start (again).
    Cancelled,
    /// The engine was stopped before it started.
    HandedBack,
}

impl State {
    /// By their numbers.
    pub(crate) const ALL: [State; 5] =
        [State::Pending, State::Running, State::Fired, State::Cancelled, State::HandedBack];
}

/// Leases in one segment.
const SEGMENT: usize = 4096;

/// The number of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease(u32);

impl Lease {
    /// None: no handle holds one.
    pub(crate) const NONE: Lease = Lease(u32::MAX);
}

pub(crate) struct Leases {
    segments: Vec<Vec<Entry>>,
    /// The first that is free, or `NONE`.
    free: Lease,
    /// How many are held.
    held: usize,
}

struct Entry {
    /// How many hold it; the next free one, if nobody does. A count that has reached its end stays there.
    holders: u32,
    state: State,
}

impl Leases {
    pub(crate) const fn new() -> Self {
        Leases { segments: Vec::new(), free: Lease::NONE, held: 0 }
    }

    /// A lease that two hold: the timer and a handle.
    #[inline]
    pub(crate) fn open(&mut self, state: State) -> Lease {
        const HOLDERS: u32 = 2;
        self.held += 1;
        let lease = self.free;
        if lease == Lease::NONE {
            return self.add(Entry { holders: HOLDERS, state });
        }
        let entry = self.entry(lease);
        let next = std::mem::replace(entry, Entry { holders: HOLDERS, state }).holders;
        self.free = Lease(next);
        lease
    }

    #[cold]
    fn add(&mut self, entry: Entry) -> Lease {
        if self.segments.last().is_none_or(|last| last.len() == SEGMENT) {
            self.segments.push(Vec::new());
        }
        let full = (self.segments.len() - 1) * SEGMENT;
        let last = self.segments.last_mut().expect("there is one now");
        last.push(entry);
        Lease(u32::try_from(full + last.len() - 1).expect("fewer handles than could be in memory"))
    }

    #[inline]
    fn entry(&mut self, lease: Lease) -> &mut Entry {
        &mut self.segments[lease.0 as usize / SEGMENT][lease.0 as usize % SEGMENT]
    }

    /// Another handle holds it.
    pub(crate) fn share(&mut self, lease: Lease) {
        let entry = self.entry(lease);
        entry.holders = entry.holders.saturating_add(1);
    }

    #[inline]
    pub(crate) fn state(&self, lease: Lease) -> State {
        self.segments[lease.0 as usize / SEGMENT][lease.0 as usize % SEGMENT].state
    }

    /// The timer starts. `NONE` if no handle holds the lease: nobody needs to know how it ends.
    #[inline]
    pub(crate) fn start(&mut self, lease: Lease) -> Lease {
        if lease == Lease::NONE || self.release_last(lease) {
            return Lease::NONE;
        }
        self.entry(lease).state = State::Running;
        lease
    }

    /// The timer has ended, and holds it no more.
    #[inline]
    pub(crate) fn end(&mut self, lease: Lease, state: State) {
        if lease != Lease::NONE {
            self.entry(lease).state = state;
            self.release(lease);
        }
    }

    /// One who held it does so no more. True if now only one does.
    #[inline]
    pub(crate) fn release(&mut self, lease: Lease) -> bool {
        if self.release_last(lease) {
            return false;
        }
        let entry = self.entry(lease);
        if entry.holders < u32::MAX {
            entry.holders -= 1;
        }
        entry.holders == 1
    }

    /// Gives the lease back, if only one holds it.
    #[inline]
    pub(crate) fn release_last(&mut self, lease: Lease) -> bool {
        let Lease(next) = self.free;
        let entry = self.entry(lease);
        if entry.holders != 1 {
            return false;
        }
        entry.holders = next;
        self.free = lease;
        self.held -= 1;
        if self.held == 0 && self.segments.len() > 1 {
            // The last of a crowd has gone: so goes the memory of the crowd.
            *self = Leases::new();
        }
        true
    }

    pub(crate) fn memory(&self) -> usize {
        self.segments.iter().map(|segment| segment.capacity() * size_of::<Entry>()).sum()
    }

    /// Walks those that are free.
    pub(crate) fn check(&self) -> Result<(), String> {
        let all: usize = self.segments.iter().map(Vec::len).sum();
        let (mut free, mut next) = (0, self.free);
        while next != Lease::NONE {
            let segment = self.segments.get(next.0 as usize / SEGMENT);
            let entry = segment.and_then(|segment| segment.get(next.0 as usize % SEGMENT));
            let entry = entry.ok_or("the list of free leases leaves the leases")?;
            (free, next) = (free + 1, Lease(entry.holders));
            if free > all {
                return Err("the list of free leases goes in a circle".into());
            }
        }
        if free + self.held != all {
            return Err(format!("of {all} leases {free} are free and {} are held", self.held));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_with_its_last_holder() {
        let mut leases = Leases::new();
        let lease = leases.open(State::Pending);
        leases.share(lease);
        leases.release(lease);
        assert_eq!(leases.start(lease), lease);
        assert_eq!(leases.state(lease), State::Running);
        leases.end(lease, State::Fired);
        assert_eq!(leases.state(lease), State::Fired, "a handle holds it still");
        leases.check().unwrap();
        assert_ne!(leases.open(State::Pending), lease, "another timer has another");
        leases.release(lease);
        assert_eq!(leases.open(State::Pending), lease, "it was free");
        leases.release(lease);
        assert_eq!(leases.start(lease), Lease::NONE, "nobody asks for it");
        leases.check().unwrap();
    }

    #[test]
    fn the_memory_of_a_crowd_goes_with_it() {
        let mut leases = Leases::new();
        let all: Vec<Lease> = (0..3 * SEGMENT).map(|_| leases.open(State::Pending)).collect();
        leases.check().unwrap();
        assert!(leases.memory() >= 3 * SEGMENT * size_of::<Entry>());
        for lease in all {
            leases.end(lease, State::Cancelled);
            assert!(leases.release_last(lease));
        }
        leases.check().unwrap();
        assert_eq!(leases.memory(), 0);
    }

    #[test]
    fn a_count_that_has_reached_its_end_stays_there() {
        let mut leases = Leases::new();
        let lease = leases.open(State::Pending);
        leases.entry(lease).holders = u32::MAX - 1;
        leases.share(lease);
        leases.share(lease);
        leases.release(lease);
        leases.release(lease);
        assert_eq!(leases.entry(lease).holders, u32::MAX);
    }
}
