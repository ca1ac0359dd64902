//! When one timer runs by the wall clock.
//!
//! | phase | means | entered |
//! |---|---|---|
//! | waits | it runs when the wall clock has reached that moment | when it is armed, by whoever arms it |
//! | moved | it runs at its deadline, as any other timer | under the shard's lock, by a move; or by its callback |
//! | stranded | the clock was set past moments that have not run, and none is to come: it may be set back | as waits |
//! | planned | which of the two it will be is known, but it is not armed: the registry leaves it alone | after a run |
//! | runs | its callback has started | under the shard's lock, with the claim |
//!
//! The wheel's deadline follows from the moment and may be wrong for a while after the clock was set; the moment is
//! not. So a claim asks the plan, and a deadline that is too early costs a look and nothing else. One that is too late
//! is mended by the [registry](super::registry), which looks at every plan that waits when the clock was set.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

#[cfg(feature = "calendar")]
use tourbillon_wheel::Time;

use super::fired::Fired;
use super::registry::Registry;
use crate::clock::{EngineClock, nanoseconds};
use crate::key::Key;
use crate::sync::{Mutex, lock};
use crate::timer::TimerCore;

pub(crate) struct Plan {
    registry: Arc<Registry>,
    /// Its number in the registry.
    id: u64,
    /// What comes after a run; a timer without one runs once.
    rule: Option<Box<Rule>>,
    state: Mutex<PlanState>,
}

/// Says when a timer is to run again: the first moment after that one. It is asked with no lock held.
pub(crate) type Rule = dyn Fn(SystemTime) -> Option<SystemTime> + Send + Sync;

struct PlanState {
    phase: Phase,
    /// How many settings of the clock had been seen when the phase was decided upon.
    seen: u64,
    /// Whether the moment does not follow upon the last that fired: the clock was set.
    jumped: bool,
    /// Whether the clock was set past the moment: what lies between has not run.
    passed: bool,
    fired: Fired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waits(SystemTime),
    Stranded,
    Moved,
    #[cfg_attr(
        not(feature = "calendar"),
        allow(dead_code, reason = "only what repeats is planned")
    )]
    Planned(Option<SystemTime>),
    Runs(Option<SystemTime>),
}

impl Phase {
    /// Whether it follows the wall clock when that is set.
    fn follows(self) -> bool {
        matches!(self, Phase::Waits(_) | Phase::Stranded)
    }
}

impl Plan {
    pub(super) fn new(
        registry: Arc<Registry>,
        at: SystemTime,
        rule: Option<Box<Rule>>,
        seen: u64,
    ) -> Self {
        let id = registry.reserve();
        let (phase, fired) = (Phase::Waits(at), Fired::new());
        let state = PlanState { phase, seen, jumped: false, passed: false, fired };
        Plan { registry, id, rule, state: Mutex::new(state) }
    }

    /// It has been armed, with that key.
    pub(super) fn enter(self: &Arc<Self>, key: Key) {
        self.registry.enter(self.id, Arc::downgrade(self), key);
    }

    /// It will not run again.
    pub(in crate::timer) fn leave(&self) {
        self.registry.leave(self.id);
    }

    /// The moment that it waits for.
    pub(crate) fn waits_for(&self) -> Option<SystemTime> {
        match lock(&self.state).phase {
            Phase::Waits(at) => Some(at),
            Phase::Stranded | Phase::Moved | Phase::Planned(_) | Phase::Runs(_) => None,
        }
    }

    /// The moment that it waited for, while it runs.
    pub(crate) fn runs_for(&self) -> Option<SystemTime> {
        match lock(&self.state).phase {
            Phase::Runs(at) => at,
            // One that was handed back and is run by hand never started by the clock.
            Phase::Waits(at) => planted!("more.handed-back-has-no-moment", None, Some(at)),
            // Nor did one whose next run was handed back by a stop during its last.
            Phase::Planned(at) => at,
            Phase::Stranded | Phase::Moved => None,
        }
    }

    /// It is armed again. The shard's lock is held: with it the key is there to move it by.
    pub(crate) fn armed(&self) {
        let mut state = lock(&self.state);
        if let Phase::Planned(at) = state.phase {
            state.phase = at.map_or(Phase::Stranded, Phase::Waits);
        }
    }

    /// It was moved to a moment of the engine's clock. The shard's lock is held.
    pub(crate) fn moved(&self) {
        planted!("wall.moved-timer-waits-for-the-wall", (), lock(&self.state).phase = Phase::Moved);
    }

    /// Starts it; or, if the wall clock has not reached its moment, says how far away that is. The shard's lock is
    /// held.
    pub(crate) fn start(&self, clock: &EngineClock) -> Option<Duration> {
        let mut state = lock(&self.state);
        let PlanState { phase, jumped, fired, .. } = &mut *state;
        let Phase::Waits(at) = *phase else {
            *phase = Phase::Runs(None);
            return None;
        };
        let left = clock.until(at);
        if !left.is_zero() {
            return Some(left);
        }
        if self.rule.is_some() {
            fired.add(at, planted!("wall.gap-counted-as-run", false, *jumped));
        }
        *phase = Phase::Runs(Some(at));
        None
    }

    /// Plans the next run, after one has ended, and says when to arm it for; `None` if it was the last.
    #[cfg(feature = "calendar")]
    pub(crate) fn next(&self, clock: &EngineClock) -> Option<Time> {
        // In this order: a setting of the clock that is not seen here is seen by `settle`.
        let seen = self.registry.epoch();
        let now = planted!(
            "more.cron-makes-up-for-every-run",
            self.runs_for().unwrap_or_else(|| clock.wall_now()),
            clock.wall_now()
        );
        let (fired, was_set) = {
            let state = lock(&self.state);
            (state.fired.clone(), state.passed || state.seen != seen)
        };
        let rule = self.rule.as_ref()?;
        let next = fired.choose(rule, now, was_set);
        let may_come =
            || planted!("wall.stranded-timer-ends", false, was_set && fired.has_passed_over(rule));
        if next.is_none() && !may_come() {
            return None;
        }
        let at = next.map(|(at, _)| at);
        let mut state = lock(&self.state);
        (state.phase, state.seen) = (Phase::Planned(at), seen);
        state.jumped = next.is_some_and(|(_, jumped)| jumped);
        state.passed = planted!(
            "third.setting-of-the-clock-never-forgotten",
            state.passed || at.is_none(),
            at.is_none()
        );
        Some(at.map_or(Time::MAX, |at| clock.when(at)))
    }

    /// The clock was set, so many times until now, and shows `now`: what the timer waits for since. `None` if it does
    /// not wait for the clock.
    fn look_again(&self, now: SystemTime, seen: u64) -> Option<SystemTime> {
        let (phase, fired) = {
            let mut state = lock(&self.state);
            if !state.phase.follows() || seen < state.seen {
                // Or somebody who has seen more was here, and moves it.
                return None;
            }
            state.seen = seen;
            match state.phase {
                // What has come runs, once, for all that were passed over.
                Phase::Waits(at)
                    if self.rule.is_none()
                        || planted!("wall.set-onto-the-moment-skips-it", at < now, at <= now) =>
                {
                    state.passed =
                        planted!("later.passed-moment-not-remembered", state.passed, true);
                    return Some(at);
                }
                phase => (phase, state.fired.clone()),
            }
        };
        // The rule is asked with empty hands: whoever claims a timer of the shard might wait for this lock.
        let (new, jumped) = fired.choose(self.rule.as_ref()?, now, true)?;
        let mut state = lock(&self.state);
        if state.phase != phase || state.seen != seen {
            return None;
        }
        (state.phase, state.jumped) = (Phase::Waits(new), jumped);
        Some(new)
    }

    /// Looks at the timer again, if it has not seen the last setting of the clock: it came while the timer was armed.
    pub(crate) fn settle(&self, core: &TimerCore) {
        let is_behind = || {
            let state = lock(&self.state);
            state.phase.follows() && state.seen != self.registry.epoch()
        };
        while planted!("wall.setting-while-armed-missed", false, is_behind())
            && self.registry.look_at(core, self.id)
        {}
    }

    /// What it waits for, now that the clock was set. `None` if it does not wait for that.
    pub(super) fn look(&self, core: &TimerCore) -> Option<SystemTime> {
        // In this order: what is set between the two is looked at again.
        let seen = self.registry.epoch();
        self.look_again(core.context.clock.wall_now(), seen)
    }

    /// Moves its deadline to where the wall clock will show that moment.
    pub(super) fn follow(&self, core: &TimerCore, key: Key, at: SystemTime) {
        let clock = &core.context.clock;
        // The engine's clock may be foreign: not under the lock. The wall clock must be read there, or a deadline from
        // before another setting could win over one from after it. A little too early costs a look.
        let now = clock.now();
        let still = || lock(&self.state).phase == Phase::Waits(at);
        let deadline = || still().then(|| now + nanoseconds(clock.until(at)));
        let (shard, key) = (&core.shards[key.shard()], key.inner());
        planted!(
            "wall.clock-read-before-the-lock",
            {
                let left = clock.until(at);
                shard.reschedule_if(key, || still().then(|| now + nanoseconds(left)));
            },
            shard.reschedule_if(key, deadline)
        );
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        planted!("third.cancelled-wall-timer-stays-registered", (), self.leave());
    }
}
