//! What handles know of their timers: a lease each, under the lock of the shard.
//!
//! A handle answers for its timer after that has left the wheel, and a wheel forgets. So a timer with a handle has a
//! lease: its state, and how many hold it, which are the handles, and the timer itself until it has ended. The last of
//! them gives the lease back. The tempting alternative, an `Arc`, has to be allocated, found when the timer fires, and
//! freed by another thread than its own.
//!
//! Leases lie in segments of 4096. Growing makes another one and copies nothing; only the first begins small. A segment
//! in which none is held is given back when the last of a crowd has gone, or by a shrink.

/// What has become of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It waits for its deadline, or for a thread to run on.
    Pending,
    /// Its callback has started and not yet returned. One that says that it is done, as its last act, is here for a
    /// moment still: [`Timeout::has_started`](crate::Timeout::has_started) is what to ask then.
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
/// So many segments have numbers for all their leases.
const MOST: usize = u32::MAX as usize / SEGMENT;

/// The number of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease(u32);

impl Lease {
    /// No handle holds one: the last of them is gone.
    pub(crate) const NONE: Lease = Lease(u32::MAX - 1);
    /// The timer never has a handle: the caller has its key.
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
    /// Those in the midst of which nothing is held may have been given back: they are empty.
    segments: Vec<Vec<LeaseEntry>>,
    /// The segment that the next new lease comes into; all before it are full, or there is none.
    filling: usize,
    /// The first that is free, or `NONE`.
    free: Lease,
    /// How many are held.
    held: usize,
    /// The segments of a crowd that has gone, to be freed when the shard's lock is not held.
    spent: Vec<Vec<LeaseEntry>>,
}

struct LeaseEntry {
    /// How many hold it, or the next that is free. A count that has reached its end stays there.
    holders: u32,
    /// `None` if it is free.
    state: Option<State>,
}

impl Leases {
    pub(crate) const fn new() -> Self {
        Leases { segments: Vec::new(), filling: 0, free: Lease::NONE, held: 0, spent: Vec::new() }
    }

    /// Whether there is a lease for another handle. Four billion are many, but handles can be forgotten.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.free != Lease::NONE || self.filling < MOST
    }

    /// A lease that two hold: the timer and a handle. There must be room.
    #[inline]
    pub(crate) fn open(&mut self, state: State) -> Lease {
        debug_assert!(self.has_room(), "who opens one has asked");
        let new = LeaseEntry { holders: 2, state: Some(state) };
        self.held += 1;
        let lease = self.free;
        if lease == Lease::NONE {
            return self.add(new);
        }
        self.free = Lease(std::mem::replace(self.entry(lease), new).holders);
        lease
    }

    #[cold]
    fn add(&mut self, entry: LeaseEntry) -> Lease {
        let full = |segment: &Vec<LeaseEntry>| segment.len() == SEGMENT;
        while self.segments.get(self.filling).is_some_and(full) {
            self.filling += 1;
        }
        if self.filling == self.segments.len() {
            self.segments.push(Vec::new());
        }
        let (first, segment) = (self.filling * SEGMENT, &mut self.segments[self.filling]);
        if self.filling > 0 {
            segment.reserve_exact(SEGMENT - segment.len());
        }
        segment.push(entry);
        Lease((first + segment.len() - 1) as u32)
    }

    #[inline]
    fn entry(&mut self, lease: Lease) -> &mut LeaseEntry {
        let (segment, place) = lease.place();
        &mut self.segments[segment][place]
    }

    /// Another handle holds it.
    pub(crate) fn share(&mut self, lease: Lease) {
        let entry = self.entry(lease);
        entry.holders = entry.holders.saturating_add(1);
    }

    /// What has become of its timer. Somebody must hold it.
    #[inline]
    pub(crate) fn state(&self, lease: Lease) -> State {
        let (segment, place) = lease.place();
        self.segments[segment][place].state.expect("who holds a lease may ask")
    }

    /// The timer starts. `NONE` if no handle holds the lease: nobody needs to know how it ends.
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

    /// The timer is armed again.
    pub(crate) fn rearm(&mut self, lease: Lease) {
        if lease.is_held() {
            self.entry(lease).state = Some(State::Pending);
        }
    }

    /// The timer has ended, and holds it no more.
    #[inline]
    pub(crate) fn end(&mut self, lease: Lease, state: State) {
        if lease.is_held() {
            self.entry(lease).state = Some(state);
            planted!("engine.lease-kept-when-it-ends", false, self.release(lease));
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
        planted!("more.dropped-clone-cuts-the-others-off", true, entry.holders == 1)
    }

    /// A handle has cancelled the timer, and both of them hold the lease. If nobody else does, the lease is given back,
    /// and the handle has to remember what has become of the timer: true.
    #[inline]
    pub(crate) fn cancel(&mut self, lease: Lease) -> bool {
        let given_back = self.give_back_from(lease, 2);
        if !given_back {
            self.end(lease, State::Cancelled);
        }
        given_back
    }

    /// Gives the lease back, if only one holds it.
    #[inline]
    pub(crate) fn release_last(&mut self, lease: Lease) -> bool {
        self.give_back_from(lease, 1)
    }

    /// Gives the lease back, if so many hold it.
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

    /// The last of a crowd has gone: so goes the memory of the crowd, as soon as it is [taken](Leases::take_spent).
    #[cold]
    fn forget_crowd(&mut self) {
        let crowd = std::mem::replace(self, Leases::new());
        self.spent = crowd.segments;
    }

    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        !self.spent.is_empty()
    }

    /// The memory of a crowd that has gone.
    #[cold]
    pub(crate) fn take_spent(&mut self) -> Leases {
        Leases { spent: std::mem::take(&mut self.spent), ..Leases::new() }
    }

    /// Gives back the segments in which none is held.
    pub(crate) fn shrink(&mut self) {
        let is_free = |segment: &Vec<LeaseEntry>| segment.iter().all(|entry| entry.state.is_none());
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

    /// Walks those that are free.
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
        assert_eq!(size_of::<LeaseEntry>(), 8);
    }

    #[test]
    fn who_holds_one_keeps_no_more_than_its_segment() {
        for keeper in [0, SEGMENT + 1, 3 * SEGMENT - 1] {
            let mut leases = Leases::new();
            let mut crowd: Vec<Lease> =
                (0..3 * SEGMENT).map(|_| leases.open(State::Fired)).collect();
            let kept = crowd.remove(keeper);
            for lease in crowd {
                leases.release(lease);
                leases.release(lease);
            }
            leases.shrink();
            leases.check().unwrap();
            assert!(leases.memory() < 2 * SEGMENT * size_of::<LeaseEntry>());
            assert_eq!(leases.state(kept), State::Fired);
            // They come back where they were.
            let again: Vec<Lease> =
                (0..3 * SEGMENT - 1).map(|_| leases.open(State::Pending)).collect();
            leases.check().unwrap();
            assert!(!again.contains(&kept) && leases.segments.len() == 3);
            assert_eq!(leases.state(kept), State::Fired);
        }
        let mut leases = Leases::new();
        let lease = leases.open(State::Pending);
        leases.end(lease, State::Cancelled);
        leases.release(lease);
        leases.shrink();
        assert_eq!(leases.memory(), 0, "nor does a single one");
    }

    #[test]
    fn there_is_a_last_number() {
        let mut leases = Leases::new();
        leases.filling = MOST;
        assert!(!leases.has_room(), "the next would be none");
        assert!(MOST * SEGMENT - 1 < Lease::NONE.0 as usize);
    }

    #[test]
    fn the_memory_of_a_crowd_goes_with_it() {
        let mut leases = Leases::new();
        let all: Vec<Lease> = (0..3 * SEGMENT).map(|_| leases.open(State::Pending)).collect();
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
        let lease = leases.open(State::Pending);
        leases.entry(lease).holders = u32::MAX - 1;
        leases.share(lease);
        leases.share(lease);
        leases.release(lease);
        leases.release(lease);
        assert_eq!(leases.entry(lease).holders, u32::MAX);
    }
}
