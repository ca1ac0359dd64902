//! The timers of one engine that wait for the wall clock.
//!
//! A timer is registered before it is armed. It leaves the registry without a trace when it has run for the last time,
//! was cancelled or was handed back. The registry keeps no callback alive. Its lock is held briefly, and no other lock
//! is taken under it.
//!
//! The *epoch* is the number of settings of the clock so far. A thread that arms a timer reads the epoch before it
//! reads the clock, and again after the timer is armed and registered. A thread that is notified of a setting
//! increments the epoch before it visits the timers. So at least one of the two threads corrects the timer if the clock
//! is set in the meantime:
//!
//! ```text
//!   arming                               the clock was set
//!   seen = epoch                         epoch += 1
//!   read the wall clock                  visit all registered timers
//!   arm the timer and register it
//!   seen != epoch? look again
//! ```

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use super::plan::Plan;
use crate::clock::watch::{self, Attached, Follows};
use crate::key::Key;
use crate::sync::{Mutex, lock};
use crate::timer::TimerCore;

pub(crate) struct Registry {
    state: Mutex<RegistryState>,
    /// `Some` since the first timer. The inner value is the registration with the watch; `None` if the clock is
    /// virtual.
    attached: Mutex<Option<Option<Attached>>>,
}

struct RegistryState {
    /// The timers by their numbers. A number is never reused.
    timers: HashMap<u64, Option<Planned>>,
    numbers: u64,
    /// How often the clock was set.
    epoch: u64,
}

#[derive(Clone)]
struct Planned {
    plan: Weak<Plan>,
    key: Key,
}

/// A table with a capacity up to this never shrinks.
const SMALL: usize = 64;

impl Registry {
    pub(crate) fn new() -> Arc<Self> {
        let state = RegistryState { timers: HashMap::new(), numbers: 0, epoch: 0 };
        Arc::new(Registry { state: Mutex::new(state), attached: Mutex::new(None) })
    }

    /// Notifies the engine whenever the clock is set, from now on until it stops.
    pub(crate) fn attach(&self, core: &Arc<TimerCore>) -> io::Result<()> {
        let mut attached = lock(&self.attached);
        // A stopped engine needs no watch thread, because scheduling fails anyway.
        if attached.is_none() && !core.is_stopped() {
            // A virtual clock itself notifies the engine.
            let is_virtual = core.context.clock.as_virtual().is_some();
            let engine: Weak<TimerCore> = Arc::downgrade(core);
            *attached = Some(if is_virtual { None } else { Some(watch::attach(engine)?) });
            // If the engine was stopped during this call, `detach` may already have run.
            if core.is_stopped() {
                *attached = None;
            }
        }
        Ok(())
    }

    /// Called when the engine has stopped: handles keep the registry alive, but must not keep the watch running.
    pub(crate) fn detach(&self) {
        let attached =
            planted!("wall.stopped-engine-stays-attached", None, lock(&self.attached).take());
        drop(attached);
    }

    /// How often the clock was set.
    pub(crate) fn epoch(&self) -> u64 {
        lock(&self.state).epoch
    }

    /// Reserves a number for a timer that is about to be armed.
    pub(super) fn reserve(&self) -> u64 {
        let mut state = lock(&self.state);
        state.numbers += 1;
        let id = state.numbers;
        state.timers.insert(id, None);
        let is_first = state.timers.len() == 1;
        drop(state);
        if is_first {
            if let Some(Some(attached)) = &*lock(&self.attached) {
                attached.nudge();
            }
        }
        id
    }

    /// Registers the timer, which is already armed, and so may already have run and left.
    pub(super) fn enter(&self, id: u64, plan: Weak<Plan>, key: Key) {
        if let Some(place) = lock(&self.state).timers.get_mut(&id) {
            *place = Some(Planned { plan, key });
        }
    }

    pub(super) fn leave(&self, id: u64) {
        let mut state = lock(&self.state);
        let left = state.timers.remove(&id);
        let (len, capacity) = (state.timers.len(), state.timers.capacity());
        if planted!("wall.registry-never-shrinks", false, capacity > SMALL && len < capacity / 8) {
            state.timers.shrink_to(len * 2);
        }
        drop(state);
        // Dropped with no lock held, because this may be the last reference to the plan.
        drop(left);
    }

    /// The number of timers, and the capacity.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn size(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.timers.len(), state.timers.capacity())
    }

    /// Whether a timer waits, or runs and will wait again.
    pub(super) fn is_waiting(&self) -> bool {
        !lock(&self.state).timers.is_empty()
    }

    /// Re-examines one timer. `false` if it does not wait for the clock.
    pub(super) fn look_at(&self, core: &TimerCore, id: u64) -> bool {
        let entry = lock(&self.state).timers.get(&id).cloned().flatten();
        let looked = entry.and_then(|entry| entry.look(core));
        looked.map(|looked| looked.follow(core)).is_some()
    }

    /// Re-examines all timers after the clock was set.
    pub(crate) fn look_again(&self, core: &TimerCore) {
        let entries: Vec<(u64, Planned)> = {
            let mut state = lock(&self.state);
            state.epoch += planted!("wall.setting-not-counted", 0, 1);
            let entered = |(&id, entry): (&u64, &Option<Planned>)| Some((id, entry.clone()?));
            state.timers.iter().filter_map(entered).collect()
        };
        let look = |(id, entry): (u64, Planned)| entry.look(core).map(|looked| (id, looked));
        let mut looked: Vec<(u64, Looked)> = entries.into_iter().filter_map(look).collect();
        // In order of their moments, so that of several due timers the earlier runs first; then by number, so that
        // under virtual time the order is the same in every run.
        looked.sort_unstable_by_key(|(id, looked)| {
            (
                planted!(
                    "wall.older-timer-before-earlier-moment",
                    SystemTime::UNIX_EPOCH,
                    looked.at
                ),
                planted!("later.one-moment-in-any-order", 0, *id),
            )
        });
        for (_, looked) in looked {
            looked.follow(core);
        }
    }
}

/// A waiting timer and its moment.
struct Looked {
    at: SystemTime,
    plan: Arc<Plan>,
    key: Key,
}

impl Planned {
    fn look(self, core: &TimerCore) -> Option<Looked> {
        let plan = self.plan.upgrade()?;
        Some(Looked { at: plan.look(core)?, plan, key: self.key })
    }
}

impl Looked {
    fn follow(self, core: &TimerCore) {
        self.plan.follow(core, self.key, self.at);
    }
}

impl Follows for TimerCore {
    fn look_again(&self) {
        self.delivery.wall.look_again(self);
    }

    fn is_waiting(&self) -> bool {
        self.delivery.wall.is_waiting()
    }
}
