//! When one timer runs by the wall clock.
//!
//! | phase | means | entered |
//! |---|---|---|
//! | waits | runs when the wall clock has reached its moment | when armed, by the thread that arms it |
//! | moved | runs at its deadline, like any other timer | by a reschedule, under the shard's lock, or by its callback |
//! | stranded | the clock was set past the last moments, which have not run; the clock may be set back | as for waits |
//! | planned | waits or stranded is determined, but not armed yet: the registry skips it | after a run |
//! | runs | its callback has started | with the claim, under the shard's lock |
//!
//! The deadline in the wheel is derived from the moment and may be wrong for a while after the clock was set; the
//! moment is always right. So a claim checks the plan: a deadline that is too early costs one check. A deadline that is
//! too late is corrected by the [registry](super::registry), which re-examines every waiting plan when the clock was
//! set.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

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
    /// Determines the next run; a timer without a rule runs once.
    rule: Option<Box<Rule>>,
    state: Mutex<PlanState>,
}

/// Returns the first moment to run at after a given moment. Called with no lock held.
pub(super) type Rule = dyn Fn(SystemTime) -> Option<SystemTime> + Send + Sync;

struct PlanState {
    phase: Phase,
    /// The registry's epoch when the phase was determined.
    seen: u64,
    /// Whether the moment does not follow the last one that fired, because the clock was set.
    jumped: bool,
    /// Whether the clock was set past the moment, so that occurrences in between have not run.
    passed: bool,
    fired: Fired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waits(SystemTime),
    Stranded,
    Moved,
    Planned(Option<SystemTime>),
    Runs(Option<SystemTime>),
}

impl Phase {
    /// Whether the timer follows a setting of the wall clock.
    fn follows(self) -> bool {
        let stranded = planted!(
            "blind.stranded-timer-does-not-follow",
            false,
            matches!(self, Phase::Stranded)
        );
        stranded || matches!(self, Phase::Waits(_))
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

    /// Registers the timer, which is armed with this key.
    pub(super) fn enter(self: &Arc<Self>, key: Key) {
        self.registry.enter(self.id, Arc::downgrade(self), key);
    }

    /// Unregisters the timer: it will not run again.
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

    /// The moment that the current run is for.
    pub(crate) fn runs_for(&self) -> Option<SystemTime> {
        match lock(&self.state).phase {
            Phase::Runs(at) => at,
            // A timer that was handed back and is run by the user was not started by the clock.
            Phase::Waits(at) => planted!("more.handed-back-has-no-moment", None, Some(at)),
            // The same holds for a timer whose next run was handed back by a stop during its previous run.
            Phase::Planned(at) => planted!("sixth.next-run-handed-back-has-no-moment", None, at),
            Phase::Stranded | Phase::Moved => None,
        }
    }

    /// The timer is armed again. The caller holds the shard's lock, so the registry can move it by its key from now on.
    pub(crate) fn armed(&self) {
        let mut state = lock(&self.state);
        if let Phase::Planned(at) = state.phase {
            state.phase = at.map_or(Phase::Stranded, Phase::Waits);
        }
    }

    /// The timer was rescheduled to a time of the engine's clock. The caller holds the shard's lock.
    pub(crate) fn moved(&self) {
        planted!("wall.moved-timer-waits-for-the-wall", (), lock(&self.state).phase = Phase::Moved);
    }

    /// Starts the timer; if the wall clock has not reached its moment, returns the time left instead.
    /// The caller holds the shard's lock.
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

    /// Plans the next run after a run has ended, and returns when to arm it; `None` if that run was the last.
    pub(crate) fn next(&self, clock: &EngineClock) -> Option<Time> {
        // The epoch is read before the clock, so that `settle` sees every setting of the clock that is not seen here.
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

    /// Determines the moment to wait for after the clock was set; `None` if the timer does not wait for the clock.
    /// The clock shows `now`, in epoch `seen`.
    fn look_again(&self, now: SystemTime, seen: u64) -> Option<SystemTime> {
        let (phase, fired) = {
            let mut state = lock(&self.state);
            if !state.phase.follows() || seen < state.seen {
                // If `seen` is older, a thread that saw a later epoch has re-examined the timer, and moves it.
                return None;
            }
            state.seen = seen;
            match state.phase {
                // A moment that has come runs once, for all moments that were skipped.
                Phase::Waits(at) if self.rule.is_none() || at <= now => {
                    state.passed =
                        planted!("later.passed-moment-not-remembered", state.passed, true);
                    return Some(at);
                }
                phase => (phase, state.fired.clone()),
            }
        };
        // The rule is called with no lock held, because a thread that claims a timer of the shard might wait for this
        // lock. A moment that equals `now` still counts as to come, so the search begins just before `now`.
        let before = now.checked_sub(Duration::from_nanos(1)).unwrap_or(now);
        let before = planted!("wall.set-back-onto-a-moment-skips-it", now, before);
        let (new, jumped) = fired.choose(self.rule.as_ref()?, before, true)?;
        let mut state = lock(&self.state);
        if state.phase != phase || state.seen != seen {
            return None;
        }
        let jumped = planted!("fifth.run-in-a-gap-closes-the-gap", state.jumped, jumped);
        (state.phase, state.jumped) = (Phase::Waits(new), jumped);
        Some(new)
    }

    /// Re-examines the timer if the clock was set while it was being armed.
    pub(crate) fn settle(&self, core: &TimerCore) {
        let is_behind = || {
            let state = lock(&self.state);
            state.phase.follows() && state.seen != self.registry.epoch()
        };
        while planted!("wall.setting-while-armed-missed", false, is_behind())
            && self.registry.look_at(core, self.id)
        {}
    }

    /// The moment to wait for now that the clock was set; `None` if the timer does not wait for the clock.
    pub(super) fn look(&self, core: &TimerCore) -> Option<SystemTime> {
        // The epoch is read before the clock, so that a setting in between causes another look.
        let seen = self.registry.epoch();
        self.look_again(core.context.clock.wall_now(), seen)
    }

    /// Moves the deadline to when the wall clock will show `at`.
    pub(super) fn follow(&self, core: &TimerCore, key: Key, at: SystemTime) {
        let clock = &core.context.clock;
        // The engine's clock may be user code: read it before locking. The wall clock must be read under the lock;
        // otherwise a deadline computed before another setting could overwrite one computed after it. A deadline
        // slightly too early costs one check.
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
