//! What a `Timer` provides to the engine: its records in each shard, and each change of a task under the shard's lock.

use tourbillon_wheel::Time;

use super::{Callbacks, Task};
use crate::clock::{EngineClock, nanoseconds};
use crate::engine::face::{Face, Kept};
use crate::leases::{Lease, Leases, State};

/// The records of a timer in one shard.
pub(crate) struct Records {
    /// The states that handles read.
    pub(crate) leases: Leases,
    /// Whether a boxed callback was ever armed. Such a callback may wait for the wall clock, or stay in the wheel while
    /// it runs.
    pub(crate) boxed: bool,
}

impl Default for Records {
    fn default() -> Self {
        Records { leases: Leases::new(), boxed: false }
    }
}

impl Kept for Records {
    fn memory(&self) -> usize {
        self.leases.memory()
    }

    fn shrink(&mut self) {
        self.leases.shrink();
    }

    #[inline]
    fn is_spent(&self) -> bool {
        self.leases.is_spent()
    }

    fn take_spent(&mut self) -> Self {
        let leases = self.leases.take_spent();
        let boxed = planted!(
            "timer.crowd-that-goes-ends-what-repeats",
            std::mem::take(&mut self.boxed),
            false
        );
        Records { leases, boxed }
    }

    fn check(&self) -> Result<(), String> {
        self.leases.check()
    }
}

impl Face for Callbacks {
    type Value = Task;
    type Kept = Records;
    type Shown = ();
    type Given = Lease;

    /// Opens a lease for a timer with a handle. The timer and the handle both hold it.
    #[inline(always)]
    fn arm(task: &mut Task, records: &mut Records) -> Option<Lease> {
        let lease = match task {
            Task::Once(_, Lease::BY_KEY) => return Some(Lease::BY_KEY),
            Task::Once(_, lease) => lease,
            Task::Boxed(_, lease) => {
                records.boxed = planted!("later.one-shard-asks-the-wall", false, true);
                lease
            }
            Task::Running(_) | Task::Alarm(_) => return Some(Lease::BY_KEY),
        };
        *lease = records.leases.open(State::Pending)?;
        Some(*lease)
    }

    #[cold]
    fn disarm(lease: Lease, task: &mut Task, records: &mut Records) {
        if lease.is_held() {
            task.mark_ended(State::Cancelled, &mut records.leases);
            records.leases.release(lease);
        }
    }

    #[inline]
    fn looks(records: &Records) -> bool {
        records.boxed
    }

    fn waits(task: &Task, now: Time, clock: &EngineClock) -> Option<Time> {
        Some(now + nanoseconds(task.not_yet(clock)?))
    }

    #[inline]
    fn touch(task: &Task, records: &Records) {
        task.touch(&records.leases);
    }

    #[inline]
    fn start(task: &mut Task, records: &mut Records) {
        if let Some(lease) = task.lease() {
            *lease = records.leases.start(*lease);
        }
    }

    fn stays(task: &Task) -> bool {
        planted!(
            "timer.running-wall-timer-is-cancelled",
            matches!(task, Task::Boxed(..)),
            task.can_repeat()
        )
    }

    fn start_in_place(task: &mut Task, records: &mut Records) -> Option<Task> {
        Callbacks::start(task, records);
        let lease = *task.lease()?;
        Some(std::mem::replace(task, Task::Running(lease)))
    }

    #[inline]
    fn is_running(task: &Task) -> bool {
        matches!(task, Task::Running(_))
    }

    fn rearm(task: &mut Task, mark: &Task, records: &mut Records) {
        let (Task::Boxed(callback, lease), Task::Running(held)) = (task, mark) else { return };
        *lease = *held;
        records.leases.rearm(*lease);
        if let Some(plan) = planted!("blind.rearmed-cron-does-not-wait", None, callback.plan()) {
            plan.armed();
        }
    }

    fn end(mark: &mut Task, handed_back: bool, records: &mut Records) {
        let ended = if handed_back { State::HandedBack } else { State::Fired };
        let state = planted!("blind.interrupted-says-fired", State::Fired, ended);
        mark.mark_ended(state, &mut records.leases);
    }

    #[inline]
    fn moved(task: &Task) {
        task.moved();
    }

    fn hand_back(task: &mut Task, records: &mut Records) {
        task.mark_ended(State::HandedBack, &mut records.leases);
    }
}
