//! A `Timer` as the engine sees it: what it keeps of each shard, and what becomes of a task under the shard's lock.

use tourbillon_wheel::Time;

use super::leases::{Lease, Leases, State};
use super::{Callbacks, Task};
use crate::clock::{EngineClock, nanoseconds};
use crate::engine::face::{Face, Kept};
use crate::engine::shard::ArmWith;

/// What a timer keeps of a shard.
pub(crate) struct Records {
    /// What handles know of their timers.
    pub(crate) leases: Leases,
    /// Whether a timer may wait for the wall clock: whoever claims one looks at that.
    pub(crate) wall: bool,
}

impl Default for Records {
    fn default() -> Self {
        Records { leases: Leases::new(), wall: false }
    }
}

impl Kept for Records {
    fn memory(&self) -> usize {
        self.leases.memory()
    }

    fn shrink(&mut self) {
        self.leases.shrink();
    }

    fn check(&self) -> Result<(), String> {
        self.leases.check()
    }
}

impl Face for Callbacks {
    type Value = Task;
    type Kept = Records;
    type Shown = ();

    #[inline]
    fn may_wait(records: &Records) -> bool {
        records.wall
    }

    fn waits(task: &Task, now: Time, clock: &EngineClock) -> Option<Time> {
        Some(now + nanoseconds(task.not_yet(clock)?))
    }

    #[inline]
    fn touch(task: &Task, records: &Records) {
        task.touch(&records.leases);
    }

    #[inline]
    fn start(task: &mut Task, records: &mut Records) -> bool {
        task.mark_started(&mut records.leases)
    }

    #[inline]
    fn moved(task: &Task) {
        task.moved();
    }

    fn hand_back(task: &mut Task, records: &mut Records) {
        task.mark_ended(State::HandedBack, &mut records.leases);
    }
}

/// A timer that has a handle: a lease that both of them hold.
#[derive(Clone, Copy)]
pub(super) struct WithLease;

impl ArmWith<Callbacks> for WithLease {
    type Given = Lease;

    #[inline]
    fn give(self, task: &mut Task, records: &mut Records) -> Option<Lease> {
        if !records.leases.has_room() {
            return None;
        }
        let lease = records.leases.open(State::Pending);
        task.hold(lease);
        Some(lease)
    }

    #[cold]
    fn take_back(lease: Lease, task: &mut Task, records: &mut Records) {
        task.mark_ended(State::Cancelled, &mut records.leases);
        records.leases.release(lease);
    }
}
