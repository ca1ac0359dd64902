//! Leases: the states of timers that have handles, under the lock of the shard.
//!
//! A handle must report its timer's state even after the timer has left the wheel, which keeps no record of it. So a
//! timer with a handle has a *lease*: its state, and a count of its holders. These are the handles, and the timer
//! itself until it has ended. The last holder frees the lease. The tempting alternative, an `Arc`, would have to be
//! allocated, accessed when the timer fires, and freed by another thread than the one that allocated it.
//!
//! Leases are stored in segments of 4096. Growing adds a segment and copies nothing; only the first segment begins
//! small. A segment without a held lease is freed when the last lease of all is freed, or by a shrink.

/// The state of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It waits for its deadline, or for a thread to run on.
    Pending,
    /// Its callback has started and has not returned.
    ///
    /// If a callback's last step is to report that it is done, the timer stays in this state for a moment after the
    /// report: use [`Timeout::has_started`](crate::Timeout::has_started) in that case.
    Running,
    /// Its callback has ended, by returning or by a panic.
    Fired,
    /// It was cancelled, and never starts (again).
    Cancelled,
    /// The engine was stopped before it started.
    HandedBack,
}

impl State {
    /// All states, indexed by their discriminants.
    pub(crate) const ALL: [State; 5] =
        [State::Pending, State::Running, State::Fired, State::Cancelled, State::HandedBack];
}

/// Leases in one segment.
const SEGMENT: usize = 4096;
/// The maximum number of segments, limited by the numbers of leases.
const MOST: usize = u32::MAX as usize / SEGMENT;

/// The number of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease(u32);

impl Lease {
    /// The timer has no lease, because its last handle is gone.
    pub(crate) const NONE: Lease = Lease(u32::MAX - 1);
    /// The timer never has a handle, because the caller uses its key.
    pub(crate) const BY_KEY: Lease = Lease(u32::MAX);

    #[inline]
    pub(crate) fn is_held(self) -> bool {
        self.0 < Lease::NONE.0
    }

    #[inline]
    fn place(self) -> (usize, usize) {
        (self.0 as usize / SEGMENT, self.0 as usize % SEGMENT)
    }
}

pub(crate) struct Leases {
    /// A segment without a held lease may have been freed; its vector is then empty.
    segments: Vec<Vec<LeaseEntry>>,
    /// The segment for the next new lease. All segments before it are full.
    filling: usize,
    /// The first free lease, or `NONE`.
    free: Lease,
    /// The number of held leases.
    held: usize,
    /// Segments that are no longer needed, to be freed outside the shard's lock.
    spent: Vec<Vec<LeaseEntry>>,
}

struct LeaseEntry {
    /// The number of holders; for a free lease, the number of the next free lease. A saturated count stays saturated.
    holders: u32,
    /// `None` if the lease is free.
    state: Option<State>,
}

impl Leases {
    pub(crate) const fn new() -> Self {
        Leases { segments: Vec::new(), filling: 0, free: Lease::NONE, held: 0, spent: Vec::new() }
    }

    /// Opens a lease with two holders: the timer and a handle. `None` if there is no room: there are four billion
    /// leases, but handles can be leaked.
    #[inline]
    pub(crate) fn open(&mut self, state: State) -> Option<Lease> {
        let new = LeaseEntry { holders: 2, state: Some(state) };
        let lease = self.free;
        if lease == Lease::NONE {
            return self.add(new);
        }
        self.free = Lease(std::mem::replace(self.entry(lease), new).holders);
        self.held += 1;
        Some(lease)
    }

    #[cold]
    fn add(&mut self, entry: LeaseEntry) -> Option<Lease> {
        let full = |segment: &Vec<LeaseEntry>| segment.len() == SEGMENT;
        while self.segments.get(self.filling).is_some_and(full) {
            self.filling += 1;
        }
        if self.filling == MOST {
            return None;
        }
        if self.filling == self.segments.len() {
            self.segments.push(Vec::new());
        }
        let (first, segment) = (self.filling * SEGMENT, &mut self.segments[self.filling]);
        if self.filling > 0 {
            segment.reserve_exact(SEGMENT - segment.len());
        }
        segment.push(entry);
        self.held += 1;
        Some(Lease((first + segment.len() - 1) as u32))
    }

    #[inline]
    fn entry(&mut self, lease: Lease) -> &mut LeaseEntry {
        let (segment, place) = lease.place();
        &mut self.segments[segment][place]
    }

    /// Adds a holder: another handle.
    pub(crate) fn share(&mut self, lease: Lease) {
        let entry = self.entry(lease);
        entry.holders = entry.holders.saturating_add(1);
    }

    /// The state of the lease's timer. The lease must be held.
    #[inline]
    pub(crate) fn state(&self, lease: Lease) -> State {
        let (segment, place) = lease.place();
        self.segments[segment][place].state.expect("who holds a lease may ask")
    }

    /// Marks the timer as running. If no handle holds the lease, nothing will read how the timer ends: returns `NONE`.
    #[inline]
    pub(crate) fn start(&mut self, lease: Lease) -> Lease {
        if !lease.is_held() {
            return lease;
        }
        if self.release_last(lease) {
            return Lease::NONE;
        }
        self.entry(lease).state = Some(State::Running);
        lease
    }

    /// Marks the timer as pending again.
    pub(crate) fn rearm(&mut self, lease: Lease) {
        if lease.is_held() {
            planted!("fifth.repetition-says-running-between-its-runs", (), {
                self.entry(lease).state = Some(State::Pending);
            });
        }
    }

    /// Marks the timer as ended, and drops the timer's hold on the lease.
    #[inline]
    pub(crate) fn end(&mut self, lease: Lease, state: State) {
        if lease.is_held() {
            self.entry(lease).state = Some(state);
            planted!("engine.lease-kept-when-it-ends", false, self.release(lease));
        }
    }

    /// Drops one hold. Returns whether exactly one remains.
    #[inline]
    pub(crate) fn release(&mut self, lease: Lease) -> bool {
        if self.release_last(lease) {
            return false;
        }
        let entry = self.entry(lease);
        if entry.holders < u32::MAX {
            entry.holders -= 1;
        }
        planted!("more.dropped-clone-cuts-the-others-off", true, entry.holders == 1)
    }

    /// Marks the timer as cancelled by one of its handles; both hold the lease.
    ///
    /// If there is no other holder, frees the lease and returns `true`: the handle must then remember the state itself.
    #[inline]
    pub(crate) fn cancel(&mut self, lease: Lease) -> bool {
        let given_back = self.give_back_from(lease, 2);
        if !given_back {
            planted!(
                "sixth.clones-are-not-told-of-a-cancel",
                {
                    self.release(lease);
                },
                self.end(lease, State::Cancelled)
            );
        }
        given_back
    }

    /// Frees the lease if it has exactly one holder.
    #[inline]
    pub(crate) fn release_last(&mut self, lease: Lease) -> bool {
        self.give_back_from(lease, 1)
    }

    /// Frees the lease if it has exactly `holders` holders.
    #[inline]
    fn give_back_from(&mut self, lease: Lease, holders: u32) -> bool {
        let Lease(next) = self.free;
        let entry = self.entry(lease);
        debug_assert!(entry.state.is_some(), "who gives a lease back has held it");
        if entry.holders != holders {
            return false;
        }
        *entry = LeaseEntry { holders: next, state: None };
        self.free = lease;
        self.held -= 1;
        let last = planted!("engine.crowd-of-leases-kept", false, self.held == 0);
        if last && self.segments.len() > 1 {
            self.forget_crowd();
        }
        true
    }

    /// Called after the last lease was freed: sets the segments aside until they are [taken](Leases::take_spent).
    #[cold]
    fn forget_crowd(&mut self) {
        let crowd = std::mem::replace(self, Leases::new());
        self.spent = crowd.segments;
    }

    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        !self.spent.is_empty()
    }

    /// Takes the segments that were set aside, to be freed without the lock.
    #[cold]
    pub(crate) fn take_spent(&mut self) -> Leases {
        Leases { spent: std::mem::take(&mut self.spent), ..Leases::new() }
    }

    /// Frees the segments without a held lease.
    pub(crate) fn shrink(&mut self) {
        let is_free = |segment: &Vec<LeaseEntry>| {
            planted!(
                "fourth.shrink-frees-the-records-of-handles",
                segment.iter().any(|entry| entry.state.is_none()),
                segment.iter().all(|entry| entry.state.is_none())
            )
        };
        for segment in self.segments.iter_mut().filter(|segment| is_free(segment)) {
            *segment = Vec::new();
        }
        let last = self.segments.iter().rposition(|segment| !segment.is_empty());
        self.segments.truncate(last.map_or(0, |last| last + 1));
        self.segments.shrink_to_fit();
        (self.filling, self.free) = planted!(
            "engine.shrink-keeps-the-old-free-list",
            (self.filling, self.free),
            (0, Lease::NONE)
        );
        for (number, segment) in self.segments.iter_mut().enumerate().rev() {
            for (place, entry) in segment.iter_mut().enumerate().rev() {
                if entry.state.is_none() {
                    entry.holders = self.free.0;
                    self.free = Lease((number * SEGMENT + place) as u32);
                }
            }
        }
    }

    pub(crate) fn memory(&self) -> usize {
        let entries: usize = self.segments.iter().chain(&self.spent).map(Vec::capacity).sum();
        entries * size_of::<LeaseEntry>() + self.segments.capacity() * size_of::<Vec<LeaseEntry>>()
    }

    /// Walks the free list.
    pub(crate) fn check(&self) -> Result<(), String> {
        let all = self.segments.iter().flatten();
        let (count, held) =
            (all.clone().count(), all.filter(|entry| entry.state.is_some()).count());
        let (mut free, mut next) = (0, self.free);
        while next != Lease::NONE {
            let (segment, place) = next.place();
            let entry = self.segments.get(segment).and_then(|segment| segment.get(place));
            let entry = entry.filter(|entry| entry.state.is_none());
            let entry = entry.ok_or("a lease that is held is among those that are free")?;
            (free, next) = (free + 1, Lease(entry.holders));
            if free > count {
                return Err("the list of free leases goes in a circle".into());
            }
        }
        if held != self.held || free + held != count {
            return Err(format!("of {count} leases {free} are free, {held} held: {}", self.held));
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
        let lease = leases.open(State::Pending).unwrap();
        leases.share(lease);
        leases.release(lease);
        assert_eq!(leases.start(lease), lease);
        assert_eq!(leases.state(lease), State::Running);
        leases.end(lease, State::Fired);
        assert_eq!(leases.state(lease), State::Fired, "a handle holds it still");
        leases.check().unwrap();
        assert_ne!(leases.open(State::Pending).unwrap(), lease, "another timer has another");
        leases.release(lease);
        assert_eq!(leases.open(State::Pending).unwrap(), lease, "it was free");
        leases.release(lease);
        assert_eq!(leases.start(lease), Lease::NONE, "nobody asks for it");
        leases.check().unwrap();
        assert_eq!(size_of::<LeaseEntry>(), 8);
    }

    #[test]
    fn who_holds_one_keeps_no_more_than_its_segment() {
        for keeper in [0, SEGMENT + 1, 3 * SEGMENT - 1] {
            let mut leases = Leases::new();
            let mut crowd: Vec<Lease> =
                (0..3 * SEGMENT).map(|_| leases.open(State::Fired).unwrap()).collect();
            let kept = crowd.remove(keeper);
            for lease in crowd {
                leases.release(lease);
                leases.release(lease);
            }
            leases.shrink();
            leases.check().unwrap();
            assert!(leases.memory() < 2 * SEGMENT * size_of::<LeaseEntry>());
            assert_eq!(leases.state(kept), State::Fired);
            // New leases reuse the freed numbers.
            let again: Vec<Lease> =
                (0..3 * SEGMENT - 1).map(|_| leases.open(State::Pending).unwrap()).collect();
            leases.check().unwrap();
            assert!(!again.contains(&kept) && leases.segments.len() == 3);
            assert_eq!(leases.state(kept), State::Fired);
        }
        let mut leases = Leases::new();
        let lease = leases.open(State::Pending).unwrap();
        leases.end(lease, State::Cancelled);
        leases.release(lease);
        leases.shrink();
        assert_eq!(leases.memory(), 0, "nor does a single one");
    }

    #[test]
    fn there_is_a_last_number() {
        let mut leases = Leases::new();
        leases.filling = MOST;
        assert!(leases.open(State::Pending).is_none(), "the next would be none");
        assert!(MOST * SEGMENT - 1 < Lease::NONE.0 as usize);
    }

    #[test]
    fn the_memory_of_a_crowd_goes_with_it() {
        let mut leases = Leases::new();
        let all: Vec<Lease> =
            (0..3 * SEGMENT).map(|_| leases.open(State::Pending).unwrap()).collect();
        leases.check().unwrap();
        assert!(leases.memory() >= 3 * SEGMENT * size_of::<LeaseEntry>());
        for lease in all {
            leases.end(lease, State::Cancelled);
            assert!(leases.release_last(lease));
        }
        leases.check().unwrap();
        assert!(leases.is_spent() && leases.memory() > 0, "it is not freed under the lock");
        drop(leases.take_spent());
        assert!(!leases.is_spent());
        assert_eq!(leases.memory(), 0);
    }

    #[test]
    fn a_count_that_has_reached_its_end_stays_there() {
        let mut leases = Leases::new();
        let lease = leases.open(State::Pending).unwrap();
        leases.entry(lease).holders = u32::MAX - 1;
        leases.share(lease);
        leases.share(lease);
        leases.release(lease);
        leases.release(lease);
        assert_eq!(leases.entry(lease).holders, u32::MAX);
    }
}
