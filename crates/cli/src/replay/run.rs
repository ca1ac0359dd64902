//! One run of one scenario on one wheel: the timers and the verbs.
//!
//! A run owns the clock and a table of the timers by name. The wheel has the deadlines and says what is due; the
//! table has what a wheel does not know: the exact deadline, the period, the callback. A timer is in the table
//! exactly as long as it is pending.
//!
//! The hand of the wheel is always in the tick of the clock, except between the beginning of a stop and its first
//! pass: so `place_of` answers for the current clock, as the format wants.

use tourbillon_wheel::{self as wheel, Key, Place, Time, Wheel};

use super::event::{Event, Reason, Sink, Totals};
use super::pass::Queue;
use super::turns::Turns;
use super::{Outcome, RunError};
use crate::scenario::{Drive, Id, Kind, Scenario, Schedule, Step, When};

pub(super) struct Run<'s, K, S> {
    pub(super) scenario: &'s Scenario,
    pub(super) wheel: Wheel<Id, K>,
    sink: &'s mut S,
    pub(super) clock: u64,
    pub(super) stopped: bool,
    /// By [`Id`].
    timers: Vec<Option<Pending<'s>>>,
    /// How many timers have been scheduled: the last one's place in that order.
    scheduled: u64,
    /// How many times any timer was armed or moved: the number of the last arming.
    armed: u64,
    pub(super) queue: Queue,
    /// Only for a hashed wheel driven bucket by bucket.
    pub(super) turns: Option<Turns>,
    pub(super) totals: Totals,
    /// The totals at the previous expectation.
    pub(super) before: Totals,
    /// What has fired since the previous expectation, if the next one will ask.
    pub(super) fired: Vec<(Id, u64)>,
    pub(super) record_fired: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Pending<'s> {
    pub(super) whereabouts: Whereabouts,
    /// Wider than the clock: the next run of a repeating timer may lie past the end of time.
    pub(super) due: u128,
    /// Its place in the order of scheduling.
    pub(super) order: u64,
    /// The number of its arming: tells it from its earlier selves.
    pub(super) arming: u64,
    pub(super) schedule: &'s Schedule,
    /// Where it was when it was filed.
    pub(super) filed: Place,
    /// The clock when it was moved, if it was.
    pub(super) moved: Option<u64>,
}

/// Where a pending timer is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Wheel(Key),
    /// Out of the wheel, about to fire.
    Ready,
    /// A repeating timer whose next due time lies past the end of time. It is pending and never fires, like any
    /// timer whose tick lies there, but no wheel can hold it. Clamping it to the end of time was the tempting
    /// alternative: it would be early, and at the end of time it would fire again and again.
    Never,
}

pub(super) type Result<T> = std::result::Result<T, RunError>;

impl<'s, K: wheel::Kind, S: Sink> Run<'s, K, S> {
    pub(super) fn new(scenario: &'s Scenario, wheel: Wheel<Id, K>, sink: &'s mut S) -> Self {
        let ring = scenario.wheel.kind == Kind::Hashed && scenario.drive == Drive::Bucket;
        Run {
            scenario,
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
            before: Totals::default(),
            fired: Vec::new(),
            record_fired: next_expectation_wants_fired(&scenario.steps),
        }
    }

    pub(super) fn run(mut self) -> Result<Outcome> {
        let steps = &self.scenario.steps;
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
                Step::Advance(to) => {
                    self.advance(*to).map_err(|error| error.or_at(|| format!("steps[{i}]")))?;
                }
                step => self.act(step).map_err(|error| error.or_at(|| format!("steps[{i}]")))?,
            }
        }
        self.emit(&Event::Done(self.totals))?;
        Ok(Outcome::Passed)
    }

    pub(super) fn emit(&mut self, event: &Event<'_>) -> Result<()> {
        self.sink.event(self.clock, event).map_err(RunError::Sink)
    }

    pub(super) fn pending_mut(&mut self, id: Id) -> Option<&mut Pending<'s>> {
        self.timers[id.0 as usize].as_mut()
    }

    pub(super) fn pending(&self, id: Id) -> Option<&Pending<'s>> {
        self.timers[id.0 as usize].as_ref()
    }

    /// What a step of the scenario or of a callback does.
    pub(super) fn act(&mut self, step: &'s Step) -> Result<()> {
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

    fn schedule(&mut self, schedule: &'s Schedule) -> Result<()> {
        let id = schedule.id;
        let name = self.scenario.name_of(id);
        if self.pending(id).is_some() {
            return Err(RunError::at_once(format!(
                "{name:?} is scheduled while it is pending: cancel it first, reschedule it, or use another name"
            )));
        }
        let full = self.scenario.limit.is_some_and(|limit| self.totals.pending >= limit.get());
        if self.stopped || full {
            let reason = if self.stopped { Reason::Stopped } else { Reason::Limit };
            return self.emit(&Event::Rejected { id: name, reason });
        }
        self.scheduled += 1;
        let due = schedule.when.from(self.clock);
        let place = self.arm(schedule, due.into(), self.scheduled)?;
        self.emit(&Event::Scheduled { id: name, due, place })
    }

    /// Files a timer that is not pending.
    pub(super) fn arm(&mut self, schedule: &'s Schedule, due: u128, order: u64) -> Result<Place> {
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

    /// Enters a timer into the table.
    fn enter(
        &mut self,
        schedule: &'s Schedule,
        order: u64,
        due: u128,
        whereabouts: Whereabouts,
        filed: Place,
    ) {
        self.armed += 1;
        let pending =
            Pending { whereabouts, due, order, arming: self.armed, schedule, filed, moved: None };
        self.timers[schedule.id.0 as usize] = Some(pending);
        self.totals.pending += 1;
        self.met(filed, Turns::add);
    }

    /// Takes a timer out of the table.
    pub(super) fn disarm(&mut self, id: Id) -> Option<Pending<'s>> {
        let pending = self.timers[id.0 as usize].take()?;
        self.totals.pending -= 1;
        self.met(pending.filed, Turns::remove);
        Some(pending)
    }

    /// Keeps the count of the occupied slots of a ring, where it is needed.
    fn met(&mut self, place: Place, change: impl FnOnce(&mut Turns, u32)) {
        if let (Some(turns), Place::Ring { slot, .. }) = (&mut self.turns, place) {
            change(turns, slot);
        }
    }

    fn cancel(&mut self, id: Id) -> Result<()> {
        let pending = self.disarm(id);
        if let Some(pending) = pending {
            if let Whereabouts::Wheel(key) = pending.whereabouts {
                self.wheel.cancel(key).expect("the table and the wheel agree on what is pending");
            }
            self.totals.cancelled += 1;
        }
        self.emit(&Event::Cancelled { id: self.scenario.name_of(id), ok: pending.is_some() })
    }

    fn reschedule(&mut self, id: Id, when: When) -> Result<()> {
        let name = self.scenario.name_of(id);
        let Some(pending) = self.disarm(id) else {
            return self.emit(&Event::Rescheduled { id: name, moved: None });
        };
        let due = when.from(self.clock);
        let place = match pending.whereabouts {
            Whereabouts::Wheel(key) => {
                let moved = self.wheel.reschedule(key, Time::new(due));
                moved.map_err(|error| RunError::at_once(error.to_string()))?;
                let place = self.wheel.place_of(Time::new(due));
                self.enter(pending.schedule, pending.order, due.into(), pending.whereabouts, place);
                place
            }
            Whereabouts::Ready | Whereabouts::Never => {
                self.arm(pending.schedule, due.into(), pending.order)?
            }
        };
        let clock = self.clock;
        if let Some(pending) = self.pending_mut(id) {
            pending.moved = Some(clock);
        }
        self.emit(&Event::Rescheduled { id: name, moved: Some((due, place)) })
    }

    fn stop(&mut self) -> Result<()> {
        self.stopped = true;
        self.wheel.clear();
        let ids = (0..).map(Id).take(self.timers.len());
        let mut survivors: Vec<_> =
            ids.filter_map(|id| self.disarm(id).map(|pending| (id, pending))).collect();
        survivors.sort_by_key(|(_, pending)| (pending.due, pending.order));
        let unfired: Vec<_> = survivors.iter().map(|&(id, _)| self.scenario.name_of(id)).collect();
        self.emit(&Event::Stopped { unfired: &unfired })
    }
}

/// What fires is kept only if it will be asked for: a run may fire ten million timers.
fn next_expectation_wants_fired(steps: &[Step]) -> bool {
    let mut expectations = steps.iter().filter_map(|step| match step {
        Step::Expect(expect) => Some(expect),
        _ => None,
    });
    expectations.next().is_some_and(|expect| expect.wants_fired())
}
