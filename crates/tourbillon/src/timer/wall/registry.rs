//! The timers of one engine that wait for the wall clock.
//!
//! A timer is here from before it is armed until it has run for the last time, was cancelled or was handed back; then
//! nothing of it is left. The registry keeps no callback alive. Its lock is held for a look, with no other lock taken
//! under it.
//!
//! Settings of the clock are counted. Who arms a timer reads the count before it reads the clock, and again when the
//! timer is armed and entered; who learns of a setting counts it before it goes through the timers. So a setting that
//! comes meanwhile is seen by one of them at least:
//!
//! ```text
//!   who arms                         the clock was set
//!   seen = count                     count += 1
//!   reads the wall clock             goes through all that are entered
//!   arms the timer, and enters it
//!   seen = count still? if not: looks again
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
    /// There since the first timer; inside, unless the clock is virtual, what has the watch tell of a setting.
    attached: Mutex<Option<Option<Attached>>>,
}

struct RegistryState {
    /// By number. A number is never used again.
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

/// A table for fewer than so many timers is not worth shrinking.
const SMALL: usize = 64;

impl Registry {
    pub(crate) fn new() -> Arc<Self> {
        let state = RegistryState { timers: HashMap::new(), numbers: 0, epoch: 0 };
        Arc::new(Registry { state: Mutex::new(state), attached: Mutex::new(None) })
    }

    /// From now on the engine is told when the clock is set, until it stops.
    pub(crate) fn attach(&self, core: &Arc<TimerCore>) -> io::Result<()> {
        let mut attached = lock(&self.attached);
        // To be told so by a thread would be a waste.
        if attached.is_none() && !core.is_stopped() {
            // A virtual clock says so by itself.
            let is_virtual = core.context.clock.as_virtual().is_some();
            let engine: Weak<TimerCore> = Arc::downgrade(core);
            *attached = Some(if is_virtual { None } else { Some(watch::attach(engine)?) });
            // It may have been stopped before: nobody would detach it.
            if core.is_stopped() {
                *attached = None;
            }
        }
        Ok(())
    }

    /// The engine has stopped. Handles that are kept keep the registry, and must not keep the watch.
    pub(crate) fn detach(&self) {
        let attached =
            planted!("wall.stopped-engine-stays-attached", None, lock(&self.attached).take());
        drop(attached);
    }

    /// How often the clock was set.
    pub(crate) fn epoch(&self) -> u64 {
        lock(&self.state).epoch
    }

    /// A number for a timer that is about to be armed.
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

    /// The timer is armed. It may have run and left by now.
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
        // With no lock held: the last trace of a timer is freed with it.
        drop(left);
    }

    /// How many timers there are, and room for how many.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn size(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.timers.len(), state.timers.capacity())
    }

    /// Whether a timer waits, or runs and will wait again.
    pub(super) fn is_waiting(&self) -> bool {
        !lock(&self.state).timers.is_empty()
    }

    /// Looks at one timer again. `false` if it does not wait for the clock.
    pub(super) fn look_at(&self, core: &TimerCore, id: u64) -> bool {
        let entry = lock(&self.state).timers.get(&id).cloned().flatten();
        let looked = entry.and_then(|entry| entry.look(core));
        looked.map(|looked| looked.follow(core)).is_some()
    }

    /// The clock was set: looks at all timers again.
    pub(crate) fn look_again(&self, core: &TimerCore) {
        let entries: Vec<(u64, Planned)> = {
            let mut state = lock(&self.state);
            state.epoch += planted!("wall.setting-not-counted", 0, 1);
            let entered = |(&id, entry): (&u64, &Option<Planned>)| Some((id, entry.clone()?));
            state.timers.iter().filter_map(entered).collect()
        };
        let look = |(id, entry): (u64, Planned)| entry.look(core).map(|looked| (id, looked));
        let mut looked: Vec<(u64, Looked)> = entries.into_iter().filter_map(look).collect();
        // The earlier moment first: of those that are due by it, that one runs first. In the end by number, so that
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

/// A timer that waits, and for what.
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
