//! Passes: due timers leave the wheel, are queued, and fire.
//!
//! A pass fires the timers that were due when it began, up to a budget, in the order of their ticks. A wheel returns
//! the timers of one advance in that order, but does not order those that were already due when they were inserted, so
//! the returned timers go through a queue. A queued timer is still pending: an earlier callback of the pass may cancel
//! or move it, and its entry in the queue is then stale.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tourbillon_wheel::{self as wheel, Progress, Time};

use super::event::{Event, Sink};
use super::run::{Result, Run, Whereabouts};
use super::{MOST_FIRED, RunError};
use crate::scenario::Id;

/// The timers that have left the wheel and not fired.
#[derive(Default)]
pub(super) struct Queue {
    /// The timers that wait for a pass, the first to fire on top.
    waiting: BinaryHeap<Reverse<Ready>>,
    /// The timers that the current pass has not fired yet, in order.
    pass: VecDeque<Ready>,
    /// The number of timers that the wheel has returned.
    given_out: u64,
}

/// A timer that the wheel has returned. Timers are ordered as they fire: by tick, then in the order in which the wheel
/// returned them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    tick: Time,
    turn: u64,
    id: Id,
    arming: u64,
}

impl<K: wheel::Kind, S: Sink> Run<K, S> {
    /// Cascades slots up to the clock, and selects the timers of a pass. `false` if there are none.
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

    /// Fires the timers of the pass.
    pub(super) fn fire_pass(&mut self) -> Result<()> {
        while let Some(ready) = self.queue.pass.pop_front() {
            if self.is_alive(ready) {
                self.fire(ready.id)?;
            }
        }
        Ok(())
    }

    /// Whether an entry is current: its timer was neither cancelled nor moved since.
    fn is_alive(&self, ready: Ready) -> bool {
        self.pending(ready.id).is_some_and(|pending| pending.arming == ready.arming)
    }

    /// Advances the wheel to the clock, a budget at a time, and takes out the due timers.
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
