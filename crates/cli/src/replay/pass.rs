//! Passes: what is due leaves the wheel, waits for its turn, and fires.
//!
//! A pass fires what was due when it began, at most a budget of it, in the order of ticks. A wheel gives out the
//! timers of one advance in that order, but those that were already due when they came are all alike to it; so
//! what it gives out goes through a queue. Until it is its turn a timer is pending: an earlier callback of the pass
//! may cancel or move it, and its entry in the queue is then a dead one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tourbillon_wheel::{self as wheel, Progress, Time};

use super::event::{Event, Sink};
use super::run::{Result, Run, Whereabouts};
use super::{MOST_FIRED, RunError};
use crate::scenario::Id;

/// What has left the wheel and has not fired.
#[derive(Default)]
pub(super) struct Queue {
    /// What waits for a pass, the first to fire on top.
    waiting: BinaryHeap<Reverse<Ready>>,
    /// What the running pass still has to fire, in order.
    pass: VecDeque<Ready>,
    /// How many timers the wheel has given out.
    given_out: u64,
}

/// A timer that the wheel has given out, in the order of firing: by tick, then as the wheel gave them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    tick: Time,
    turn: u64,
    id: Id,
    arming: u64,
}

impl<K: wheel::Kind, S: Sink> Run<K, S> {
    /// Hands down what begins on the way to the clock, and chooses what fires in a pass. False if nothing does.
    pub(super) fn begin_pass(&mut self) -> Result<bool> {
        let budget = self.rules.budget.and_then(|budget| usize::try_from(budget.get()).ok());
        let budget = budget.unwrap_or(usize::MAX);
        self.turn(budget)?;
        while self.queue.pass.len() < budget {
            let Some(Reverse(ready)) = self.queue.waiting.pop() else { break };
            if self.is_alive(ready) {
                self.queue.pass.push_back(ready);
            }
        }
        Ok(!self.queue.pass.is_empty())
    }

    /// Fires what the pass holds.
    pub(super) fn fire_pass(&mut self) -> Result<()> {
        while let Some(ready) = self.queue.pass.pop_front() {
            if self.is_alive(ready) {
                self.fire(ready.id)?;
            }
        }
        Ok(())
    }

    /// Whether an entry still stands for its timer: it was neither cancelled nor moved since.
    fn is_alive(&self, ready: Ready) -> bool {
        self.pending(ready.id).is_some_and(|pending| pending.arming == ready.arming)
    }

    /// Turns the wheel to the clock, a budget at a time, and takes out what is due.
    fn turn(&mut self, budget: usize) -> Result<()> {
        let mut handed_down = Vec::new();
        loop {
            let now = Time::new(self.clock);
            let progress = self.wheel.advance_watched(now, budget, |moved| handed_down.push(moved));
            for moved in handed_down.drain(..) {
                let id =
                    *self.wheel.get(moved.key).expect("a timer that was handed down is pending");
                self.totals.cascades += 1;
                self.touch(id);
                self.emit_of(id, |id| Event::Cascaded { id, from: moved.from, to: moved.to })?;
            }
            while let Some(expired) = self.wheel.pop() {
                self.enqueue(expired.value, expired.due);
            }
            match progress {
                Progress::Done => return Ok(()),
                Progress::More => {}
                Progress::OutOfMemory => {
                    return Err(RunError::at_once("no memory to hand timers down".into()));
                }
            }
        }
    }

    fn enqueue(&mut self, id: Id, tick: Time) {
        let pending = self.pending_mut(id).expect("a timer that the wheel gives out is pending");
        pending.whereabouts = Whereabouts::Ready;
        let arming = pending.arming;
        self.queue.given_out += 1;
        self.queue.waiting.push(Reverse(Ready { tick, turn: self.queue.given_out, id, arming }));
    }

    fn fire(&mut self, id: Id) -> Result<()> {
        let pending = self.disarm(id).expect("a timer that fires was pending");
        let due = u64::try_from(pending.due).ok().filter(|due| *due <= self.clock);
        let due = due.expect("a timer never fires early");
        if self.totals.fired == MOST_FIRED {
            let message =
                format!("more than {MOST_FIRED} timers have fired: does one repeat for ever?");
            return Err(RunError::at_once(message));
        }
        self.totals.fired += 1;
        if self.record_fired {
            self.fired.push((id, self.clock));
        }
        self.emit_of(id, |id| Event::Fired { id, due })?;

        let schedule = pending.schedule;
        if let Some(period) = schedule.every {
            self.arm(&schedule, pending.due + u128::from(period.get()), pending.order)?;
        }
        let Some(callback) = &schedule.then else { return Ok(()) };
        for (i, step) in callback.steps.iter().enumerate() {
            self.act(step).map_err(|error| error.or_at(|| format!("{}[{i}]", callback.place)))?;
        }
        Ok(())
    }
}
