//! One run on one wheel: its timers and operations.
//!
//! A run receives its steps all at once or one at a time. It owns the clock and a table of the timers by name. The
//! wheel has the deadlines and determines what is due; the table has what a wheel does not store: the exact deadline,
//! the period, the callback. A timer is in the table exactly while it is pending.
//!
//! The hand of the wheel is always in the tick of the clock, except between the beginning of a stop and its first pass.
//! So `place_of` answers for the current clock, as the format requires.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;

use tourbillon_wheel::{self as wheel, Key, Place, Time, Wheel};

use super::event::{Event, Reason, Sink, Totals};
use super::pass::Queue;
use super::turns::Turns;
use super::{Outcome, RunError};
use crate::scenario::{Drive, Id, Kind, Scenario, Schedule, Step, When};

pub(super) struct Run<K, S> {
    pub(super) rules: Rules,
    /// The names of the timers, by [`Id`].
    names: Vec<String>,
    pub(super) wheel: Wheel<Id, K>,
    pub(super) sink: S,
    pub(super) clock: u64,
    pub(super) stopped: bool,
    /// By [`Id`].
    timers: Vec<Option<Pending>>,
    /// The number of timers scheduled so far.
    scheduled: u64,
    /// How often timers were armed or moved; also the number of the last arming.
    armed: u64,
    pub(super) queue: Queue,
    /// Only for a hashed wheel driven bucket by bucket.
    pub(super) turns: Option<Turns>,
    pub(super) totals: Totals,
    /// Passes so far. Each fires something, so all other wakes were idle.
    pub(super) passes: u64,
    /// The timers that were added, moved or removed, if a caller draws them.
    pub(super) touched: Option<BTreeSet<Id>>,
    /// The totals at the previous expectation.
    pub(super) before: Totals,
    /// The timers fired since the previous expectation, if the next one checks them.
    pub(super) fired: Vec<(Id, u64)>,
    pub(super) record_fired: bool,
}

/// The settings of a whole run.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) kind: Kind,
    pub(super) drive: Drive,
    limit: Option<NonZeroU64>,
    pub(super) budget: Option<NonZeroU64>,
}

#[derive(Clone)]
pub(super) struct Pending {
    pub(super) whereabouts: Whereabouts,
    /// Wider than the clock: the next deadline of a repeating timer may lie past the end of time.
    pub(super) due: u128,
    /// Its position in the order of scheduling.
    pub(super) order: u64,
    /// The number of its arming, which distinguishes it from earlier armings of the same timer.
    pub(super) arming: u64,
    pub(super) schedule: Arc<Schedule>,
    /// Its place when it was filed.
    pub(super) filed: Place,
    /// The clock when it was last moved, if it was.
    pub(super) moved: Option<u64>,
}

/// Where a pending timer is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Wheel(Key),
    /// Out of the wheel, about to fire.
    Ready,
    /// A repeating timer whose next deadline lies past the end of time.
    ///
    /// It is pending and never fires, like any timer whose tick lies there, but no wheel can hold it. The tempting
    /// alternative was to clamp it to the end of time: it would fire early, and there it would fire forever.
    Never,
}

pub(super) type Result<T> = std::result::Result<T, RunError>;

impl<K: wheel::Kind, S: Sink> Run<K, S> {
    pub(super) fn new(scenario: &Scenario, wheel: Wheel<Id, K>, sink: S) -> Self {
        let ring = scenario.wheel.kind == Kind::Hashed && scenario.drive == Drive::Bucket;
        let Scenario { drive, limit, budget, .. } = *scenario;
        Run {
            rules: Rules { kind: scenario.wheel.kind, drive, limit, budget },
            names: scenario.ids.clone(),
            wheel,
            sink,
            clock: scenario.wheel.start,
            stopped: false,
            timers: vec![None; scenario.ids.len()],
            scheduled: 0,
            armed: 0,
            queue: Queue::default(),
            turns: ring.then(|| Turns::new(scenario.wheel.slots[0])),
            totals: Totals::default(),
            passes: 0,
            touched: None,
            before: Totals::default(),
            fired: Vec::new(),
            record_fired: next_expectation_wants_fired(&scenario.steps),
        }
    }

    pub(super) fn run(mut self, steps: &[Step]) -> Result<Outcome> {
        for (i, step) in steps.iter().enumerate() {
            match step {
                Step::Expect(expect) => {
                    if let Some((expected, got)) = self.broken(expect) {
                        self.emit(&Event::Failed { step: i, expected, got })?;
                        return Ok(Outcome::Failed);
                    }
                    self.before = self.totals;
                    self.fired.clear();
                    self.record_fired = next_expectation_wants_fired(&steps[i + 1..]);
                }
                step => self.step(step).map_err(|error| error.or_at(|| format!("steps[{i}]")))?,
            }
        }
        self.emit(&Event::Done(self.totals))?;
        Ok(Outcome::Passed)
    }

    /// Runs a step other than an expectation.
    pub(super) fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Advance(to) => self.advance(*to),
            step => self.act(step),
        }
    }

    pub(super) fn emit(&mut self, event: &Event<'_>) -> Result<()> {
        self.sink.event(self.clock, event).map_err(RunError::Sink)
    }

    /// Emits an event of a timer, with its name.
    pub(super) fn emit_of(
        &mut self,
        id: Id,
        event: impl for<'n> FnOnce(&'n str) -> Event<'n>,
    ) -> Result<()> {
        let event = event(&self.names[id.0 as usize]);
        self.sink.event(self.clock, &event).map_err(RunError::Sink)
    }

    pub(super) fn name_of(&self, id: Id) -> &str {
        &self.names[id.0 as usize]
    }

    /// Adds timers whose names are new, at the end of `names`.
    pub(super) fn learn(&mut self, names: &[String]) {
        self.names.extend_from_slice(&names[self.names.len()..]);
        self.timers.resize(self.names.len(), None);
    }

    pub(super) fn pending_mut(&mut self, id: Id) -> Option<&mut Pending> {
        self.timers[id.0 as usize].as_mut()
    }

    pub(super) fn pending(&self, id: Id) -> Option<&Pending> {
        self.timers[id.0 as usize].as_ref()
    }

    /// Records that a timer has changed, if a caller asked for changes.
    pub(super) fn touch(&mut self, id: Id) {
        if let Some(touched) = &mut self.touched {
            touched.insert(id);
        }
    }

    /// Runs a step of the scenario or of a callback.
    pub(super) fn act(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Schedule(schedule) => self.schedule(schedule),
            Step::Cancel(id) => self.cancel(*id),
            Step::Reschedule(id, when) => self.reschedule(*id, *when),
            Step::Stop => self.stop(),
            Step::Advance(_) | Step::Expect(_) => {
                unreachable!("not in a callback: the scenario is valid")
            }
        }
    }

    fn schedule(&mut self, schedule: &Arc<Schedule>) -> Result<()> {
        let id = schedule.id;
        if self.pending(id).is_some() {
            let name = self.name_of(id);
            return Err(RunError::at_once(format!(
                "{name:?} is scheduled while it is pending: cancel it first, reschedule it, or use another name"
            )));
        }
        let full = self.rules.limit.is_some_and(|limit| self.totals.pending >= limit.get());
        if self.stopped || full {
            let reason = if self.stopped { Reason::Stopped } else { Reason::Limit };
            return self.emit_of(id, |id| Event::Rejected { id, reason });
        }
        self.scheduled += 1;
        let due = schedule.when.from(self.clock);
        let place = self.arm(schedule, due.into(), self.scheduled)?;
        self.emit_of(id, |id| Event::Scheduled { id, due, place })
    }

    /// Files a timer that is not pending.
    pub(super) fn arm(&mut self, schedule: &Arc<Schedule>, due: u128, order: u64) -> Result<Place> {
        let Ok(deadline) = u64::try_from(due).map(Time::new) else {
            self.enter(schedule, order, due, Whereabouts::Never, Place::Due);
            return Ok(Place::Due);
        };
        let place = self.wheel.place_of(deadline);
        let key = self.wheel.insert(deadline, schedule.id);
        let key = key.map_err(|full| RunError::at_once(full.to_string()))?;
        self.enter(schedule, order, due, Whereabouts::Wheel(key), place);
        Ok(place)
    }

    /// Adds a timer to the table.
    fn enter(
        &mut self,
        schedule: &Arc<Schedule>,
        order: u64,
        due: u128,
        whereabouts: Whereabouts,
        filed: Place,
    ) {
        self.armed += 1;
        let pending = Pending {
            whereabouts,
            due,
            order,
            arming: self.armed,
            schedule: Arc::clone(schedule),
            filed,
            moved: None,
        };
        self.timers[schedule.id.0 as usize] = Some(pending);
        self.touch(schedule.id);
        self.totals.pending += 1;
        self.met(filed, Turns::add);
    }

    /// Removes a timer from the table.
    pub(super) fn disarm(&mut self, id: Id) -> Option<Pending> {
        let pending = self.timers[id.0 as usize].take()?;
        self.touch(id);
        self.totals.pending -= 1;
        self.met(pending.filed, Turns::remove);
        Some(pending)
    }

    /// Updates the count of occupied slots, if the wheel has such a count.
    fn met(&mut self, place: Place, change: impl FnOnce(&mut Turns, u32)) {
        if let (Some(turns), Place::Ring { slot, .. }) = (&mut self.turns, place) {
            change(turns, slot);
        }
    }

    fn cancel(&mut self, id: Id) -> Result<()> {
        let pending = self.disarm(id);
        let ok = pending.is_some();
        if let Some(pending) = pending {
            if let Whereabouts::Wheel(key) = pending.whereabouts {
                self.wheel.cancel(key).expect("the table and the wheel agree on what is pending");
            }
            self.totals.cancelled += 1;
        }
        self.emit_of(id, |id| Event::Cancelled { id, ok })
    }

    fn reschedule(&mut self, id: Id, when: When) -> Result<()> {
        let Some(pending) = self.disarm(id) else {
            return self.emit_of(id, |id| Event::Rescheduled { id, moved: None });
        };
        let due = when.from(self.clock);
        let place = match pending.whereabouts {
            Whereabouts::Wheel(key) => {
                let moved = self.wheel.reschedule(key, Time::new(due));
                moved.map_err(|error| RunError::at_once(error.to_string()))?;
                let place = self.wheel.place_of(Time::new(due));
                let Pending { schedule, order, whereabouts, .. } = &pending;
                self.enter(schedule, *order, due.into(), *whereabouts, place);
                place
            }
            Whereabouts::Ready | Whereabouts::Never => {
                self.arm(&pending.schedule, due.into(), pending.order)?
            }
        };
        let clock = self.clock;
        if let Some(pending) = self.pending_mut(id) {
            pending.moved = Some(clock);
        }
        self.emit_of(id, |id| Event::Rescheduled { id, moved: Some((due, place)) })
    }

    fn stop(&mut self) -> Result<()> {
        self.stopped = true;
        self.wheel.clear();
        let ids = (0..).map(Id).take(self.timers.len());
        let mut survivors: Vec<_> =
            ids.filter_map(|id| self.disarm(id).map(|pending| (id, pending))).collect();
        survivors.sort_by_key(|(_, pending)| (pending.due, pending.order));
        let unfired: Vec<_> =
            survivors.iter().map(|&(id, _)| &*self.names[id.0 as usize]).collect();
        let event = Event::Stopped { unfired: &unfired };
        self.sink.event(self.clock, &event).map_err(RunError::Sink)
    }
}

/// Whether the next expectation checks fired timers. Otherwise they are not kept: a run may fire ten million.
fn next_expectation_wants_fired(steps: &[Step]) -> bool {
    let mut expectations = steps.iter().filter_map(|step| match step {
        Step::Expect(expect) => Some(expect),
        _ => None,
    });
    expectations.next().is_some_and(|expect| expect.wants_fired())
}
