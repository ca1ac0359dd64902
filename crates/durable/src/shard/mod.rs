//! The shard: a pure state machine. Requests, loaded pages and two clocks in; effects out. No I/O, clock or thread.
//!
//! # A timer's life
//! A timer has one row in the store, in one [`Place`]. Every arrow is one [`Op`](crate::store::Op), made by
//! `Shard::change` and nowhere else.
//!
//! ```text
//!              schedule, move
//!          to come │   │ already due
//!                  ▼   └──────┐
//!   ┌──────────────────┐      ▼
//!   │      Bucket      │  passed  ┌─────────┐
//!   │ (and in the      │ ───────▶ │ Waiting │
//!   │  wheel, if near) │ ◀─────── │         │
//!   └──────────────────┘  clock   └─────────┘
//!      │          ▲     set back   │      ▲
//!      │ hand-out │ back-off,      │      │ lease ended,
//!      │          │ next           │      │ released
//!      │          │ occurrence     │      │
//!      ▼          │       hand-out ▼      │
//!   ┌────────────────────────────────────────┐  last attempt failed  ┌──────┐  move: lives again
//!   │                  Out                   │ ────────────────────▶ │ Dead │ ───▶ Bucket or Waiting
//!   └────────────────────────────────────────┘                       └──────┘
//!
//!   any of them ── last ack, cancel ──▶ Remembered ── retention ended ──▶ gone
//!   all of a queue ── clear, delete ──▶ discarded (`discard.rs`) ── read in a page ──▶ gone
//! ```
//!
//! # What is in memory
//! A timer is resident if its row is out, or waits near the head of its queue, or lies in a bucket before the window's
//! end. For all other timers, memory holds only counters. **No bucket straddles the window's end**: of each bucket,
//! either all rows are resident or being loaded, or none is (`window.rs`).
//!
//! # Lanes
//! Timers with a webhook wait in a separate lane of their queue (`queue.rs`). Delivery agents take from the push
//! lanes of all queues, round-robin; takers of a queue take from its pull lane (`takers.rs`).
//!
//! # Which loaded rows are trusted
//! The shard changes its memory at once and answers when the commit is durable. A loaded row is trusted only if its
//! timer has not changed since the load was emitted (`loads.rs`). This one rule covers three races: a cancel while a
//! page is read, an insert behind the cursor, and two requests for one key.
//!
//! # Clocks
//! The wall clock decides which timers are due; the steady (monotonic) clock runs leases and polls. When the wall clock
//! reads less than the wheel's current time, the shard rebuilds the wheel from the resident timers. Waiting rows that
//! are no longer due return to buckets.

mod discard;
mod hand_out;
mod handover;
mod loads;
mod look;
mod notes;
mod outbox;
mod queue;
mod request;
mod settle;
mod source;
mod sweep;
mod takers;
mod tally;
mod walk;
mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use tourbillon_wheel::{HierarchicalWheel, Key as WheelKey, Progress, Time};

pub use crate::message::*;
use crate::record::{Generation, Place, Record, Spec};
use crate::store::{Head, ShardRow};
use crate::values::{Event, Moment, QueueName, Span, Steady};
use discard::restored;
use hand_out::Expiry;
pub use handover::Handover;
use loads::{Loads, Purpose};
use outbox::Outbox;
use queue::Queue;
use request::Found;
use source::Source;
use sweep::LATE;
use takers::Agents;
use tally::Held;
use window::Window;

/// Maximum number of timers that one turn takes from a wheel.
const TURN: usize = 10_000;

/// One shard of durable timers. See the [module](self) for how it works.
pub struct Shard {
    limits: Limits,
    wall: Moment,
    steady: Steady,
    row: ShardRow,
    opened_as: Opened,
    /// From the last shard of this process, until every row that is out is loaded.
    before: Handover,
    /// Holds inputs until every row that is out is loaded.
    opening: Option<Vec<Input>>,
    queues: BTreeMap<QueueName, Queue>,
    /// The resident timers.
    timers: HashMap<Generation, Timer>,
    /// Timers of the near window, by the wall clock.
    due: HierarchicalWheel<Generation>,
    /// Leases, polls and rate limits, by the steady clock.
    expiries: HierarchicalWheel<Expiry>,
    window: Window,
    /// Places that may still hold discarded rows.
    reclaim: VecDeque<Source>,
    loads: Loads,
    outbox: Outbox,
    /// The rows of the request being decided.
    deciding: Found,
    held: Held,
    /// Queues in which a hand-out may have become possible.
    stirred: BTreeSet<QueueName>,
    agents: Agents,
    /// No remembered row's retention ends before this moment.
    forget: Option<Moment>,
    /// No dead row's retention ends before this moment.
    purge_at: Moment,
    /// When the shard was last opened, or the clock last set.
    event: Moment,
    /// No queue needs a sweep before this moment.
    sweep_at: Moment,
    /// When to look for unused queues.
    prune_at: Steady,
    /// The turn ended with work left: a wheel or the window has more.
    more: bool,
    /// The events of this turn; `None` without listeners.
    events: Option<Vec<Event>>,
    far_off: Option<FarOff>,
    #[cfg(planted)]
    opened: Moment,
}

/// A resident timer.
struct Timer {
    record: Record,
    place: Place,
    hold: Hold,
}

/// The structure that a resident timer is in.
enum Hold {
    /// The wheel of the wall clock.
    Wheel(WheelKey),
    /// Its queue.
    Queue,
    /// The wheel of the steady clock: its lease.
    Lease(WheelKey),
}

impl Shard {
    /// Opens a shard on a store that was just opened.
    ///
    /// The shard first loads the rows that are out, then the window. The first turn emits the first loads.
    pub fn open(
        head: Head,
        limits: Limits,
        opened: Opened,
        (wall, steady): (Moment, Steady),
    ) -> Self {
        let begin = head.buckets.iter().map(|(bucket, _)| bucket.start()).min();
        let mut shard = Shard {
            limits,
            wall,
            steady,
            row: head.shard,
            opened_as: opened,
            before: Handover::default(),
            opening: Some(Vec::new()),
            queues: head.queues.into_iter().map(restored).collect(),
            timers: HashMap::new(),
            due: HierarchicalWheel::new(Time::from(wall.millis())),
            expiries: HierarchicalWheel::new(Time::from(steady.millis())),
            window: Window::new(begin.unwrap_or(u64::MAX).min(wall.millis()), head.buckets),
            reclaim: VecDeque::new(),
            loads: Loads::default(),
            outbox: Outbox::default(),
            deciding: Found::new(),
            held: Held::default(),
            stirred: BTreeSet::new(),
            agents: Agents::default(),
            forget: head.forget,
            purge_at: Moment::ZERO,
            event: wall,
            sweep_at: Moment::MAX,
            prune_at: steady,
            more: false,
            events: None,
            far_off: None,
            #[cfg(planted)]
            opened: wall,
        };
        shard.count_living();
        shard.note_start(wall);
        if wall < shard.row.wall {
            shard.set_window_back();
        }
        shard.note_events();
        shard.begin_reclaim();
        shard.load_out(None);
        shard
    }

    /// Takes a turn: advances both clocks, then processes the inputs in order.
    ///
    /// The cost is proportional to the timers due and the inputs given. `steady` must not decrease; `wall` may.
    pub fn turn(&mut self, wall: Moment, steady: Steady, inputs: Vec<Input>) -> Turn {
        self.more = false;
        self.set_clocks(wall, steady);
        for input in inputs {
            match &mut self.opening {
                Some(held) if !matches!(input, Input::Loaded(..) | Input::Damaged(..)) => {
                    held.push(input);
                }
                _ => self.take(input),
            }
        }
        if self.opening.is_none() {
            self.sweep();
            self.hand_out();
            self.step_window();
            self.purge();
        }
        self.row.wall = self.row.wall.max(wall);
        let effects = self.flush();
        self.prune_queues();
        Turn {
            events: self.events.as_mut().map(std::mem::take).unwrap_or_default(),
            clock: self.far_off.take(),
            effects,
            wall: self.wake(),
            steady: self.expiries.next_due().map(|at| Steady::from_millis(at.units())),
        }
    }

    /// Whether it is still loading the rows that are out. Requests wait until then.
    pub fn is_opening(&self) -> bool {
        self.opening.is_some()
    }

    /// The resident timers, by kind.
    pub fn resident(&self) -> Resident {
        Resident {
            window: self.window.held.count,
            window_bytes: self.window.held.bytes,
            waiting: self.held.waiting,
            out: self.held.out,
            touched: self.loads.touched(),
            queues: self.queues.len(),
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Request(id, request) => self.request(id, request),
            Input::Committed(id) => self.outbox.committed(id),
            Input::Loaded(id, loaded) => {
                // The answer to an abandoned load is ignored.
                let Some(purpose) = self.loads.take(id) else { return };
                self.loaded(id, purpose, loaded);
                self.loads.prune();
            }
            // The requester gets an error; the shard's own work continues with the readable rows.
            Input::Damaged(id, why) => {
                let Some(purpose) = self.loads.take(id) else { return };
                match purpose.asked() {
                    Some(request) => self.outbox.answer(request, Answer::Damaged(why)),
                    None => self.loaded(id, purpose, crate::store::Loaded::Rows(Vec::new())),
                }
                self.loads.prune();
            }
        }
    }

    fn set_clocks(&mut self, wall: Moment, steady: Steady) {
        let back = Time::from(wall.millis()) < self.due.now() || wall < self.wall;
        let expected =
            self.wall + Span::from_millis(steady.millis().saturating_sub(self.steady.millis()));
        (self.wall, self.steady) = (wall, steady.max(self.steady));
        if wall.since(expected).max(expected.since(wall)) > LATE {
            self.note_jump(expected, wall);
            self.note_events();
        }
        if back {
            self.set_back();
        }
        self.more |=
            self.expiries.advance(Time::from(self.steady.millis()), TURN) != Progress::Done;
        while let Some(expired) = self.expiries.pop() {
            match expired.value {
                Expiry::Lease(generation) => self.lapse(generation),
                Expiry::Poll(queue, request) => self.expire_poll(queue, request),
                Expiry::Pace(queue) => {
                    self.queue_entry(&queue).pace.waits = false;
                    self.stirred.insert(queue);
                }
            }
        }
        self.more |= self.due.advance(Time::from(wall.millis()), TURN) != Progress::Done;
        while let Some(expired) = self.due.pop() {
            self.come_due(expired.value);
        }
    }

    fn note_events(&mut self) {
        self.event = self.wall;
        let names: Vec<QueueName> = self.queues.keys().cloned().collect();
        names.iter().for_each(|name| self.note_event(name));
    }

    /// The wall clock was set back: rebuilds the wheel, because a wheel's time cannot decrease. The tempting
    /// alternative, to leave the wheel ahead, fires timers inserted behind its time at once.
    fn set_back(&mut self) {
        self.due = HierarchicalWheel::new(Time::from(self.wall.millis()));
        let mut near: Vec<Generation> = self.timers.keys().copied().collect();
        // Sorted, so that the order is the same in every run.
        near.sort_unstable();
        for generation in near {
            let timer = self.timers.get_mut(&generation).expect("its key was just read");
            if let Place::Bucket(_) = timer.place {
                timer.hold =
                    Hold::Wheel(insert(&mut self.due, timer.record.next_attempt, generation));
            }
        }
        for queue in self.queues.values_mut() {
            let Queue { coming, lines, far, .. } = queue;
            lines.iter_mut().for_each(|line| coming.append(&mut line.popped));
            // Timers that were due may be in the future again.
            far.forget();
        }
        self.set_window_back();
    }

    fn loaded(&mut self, id: LoadId, purpose: Purpose, loaded: crate::store::Loaded) {
        use crate::store::Loaded::{Cells, Found, Rows};
        match (purpose, loaded) {
            (Purpose::Request(pending), Found(found)) => self.found(id, pending, found),
            (Purpose::Out, Rows(rows)) => self.loaded_out(rows),
            (Purpose::Pass, Rows(rows)) => self.passed(id, rows),
            (Purpose::Walk(walk), Rows(rows)) => self.walked(id, *walk, rows),
            (Purpose::Sweep(queue, lane), Rows(rows)) => self.swept(id, (queue, lane), rows),
            (Purpose::Look(look), Rows(rows)) => {
                self.look_at_rows(id, *look, rows);
            }
            (Purpose::Look(look), Cells(cells)) => self.look_at_cells(*look, &cells),
            (Purpose::Refill(queue, lane), Rows(rows)) => self.refilled(id, (&queue, lane), rows),
            (Purpose::Dead(queue), Rows(rows)) => self.purge_dead(id, &queue, rows),
            (Purpose::Remembered, Rows(rows)) => self.purge_remembered(id, rows),
            (Purpose::Forecast(request, edges), Cells(cells)) => {
                self.forecast(request, &edges, &cells);
            }
            (purpose, loaded) => unreachable!("{purpose:?} was answered with {loaded:?}"),
        }
    }
}

/// Changing a timer.
impl Shard {
    /// Moves a timer from one place to another, makes one, or removes one. The only function that does so.
    ///
    /// Memory changes at once, the store with this turn's commit.
    fn change(&mut self, old: Option<(Place, &Record)>, new: Option<(Place, Record)>) {
        let Some(spec) = old
            .map(|old| old.1)
            .or(new.as_ref().map(|new| &new.1))
            .map(|record| record.spec.clone())
        else {
            return;
        };
        self.loads.touch(&spec.queue, &spec.key);
        if let Some(row) = self.deciding.get_mut(&spec.key) {
            *row = new.clone();
        }
        if let Some((to, record)) = &new {
            self.note_place(old.map(|old| old.0), *to, record);
        }
        if let Some((place, record)) = old {
            self.release(record.generation());
            self.tally(place, record, -1);
            self.forget_given(record, new.as_ref());
        }
        let from = old.map(|old| old.0);
        match new {
            None => {
                old.into_iter().for_each(|(from, record)| self.outbox.remove(from, record.clone()));
            }
            Some((to, record)) => {
                self.tally(to, &record, 1);
                if from.is_some_and(|from| to < from)
                    && let Some(queue) = self.queues.get_mut(&spec.queue)
                {
                    queue.went_back += 1;
                }
                self.outbox.put(from, to, record.clone());
                self.keep(to, record);
            }
        }
    }

    /// Makes a timer resident if its place requires it.
    fn keep(&mut self, place: Place, record: Record) {
        let generation = record.generation();
        let hold = match place {
            Place::Bucket(_) => {
                let near = planted!(
                    "window-end-off-by-one",
                    record.next_attempt.millis() + 1 < self.window.end,
                    record.next_attempt.millis() < self.window.end
                );
                if !planted!("insert-behind-cursor", near && !self.window.is_loading(place), near) {
                    return;
                }
                self.window.hold(&record);
                Hold::Wheel(insert(&mut self.due, record.next_attempt, generation))
            }
            Place::Waiting(lane, at) => {
                if !self.keep_waiting(&record.spec.queue, lane, (at, generation)) {
                    return;
                }
                self.held.waiting.add(&record);
                Hold::Queue
            }
            Place::Out(_) => {
                let lease = record.lease.expect("what is out has a lease");
                // After a restart a lease continues for the rest of its time by the wall clock. Clock readings round
                // down to milliseconds; one millisecond is added so that no lease is cut short.
                let left = lease.until.since(self.wall).min(lease.length);
                let until = (self.steady + left).millis() + u64::from(left > Span::ZERO);
                let until =
                    self.lease_before(&record).map_or(until, |end| end.max(self.steady).millis());
                self.held.out.add(&record);
                let key = self.expiries.insert(Time::from(until), Expiry::Lease(generation));
                Hold::Lease(key.expect("what is out is bounded"))
            }
            Place::Dead(_) | Place::Remembered(_) => return,
        };
        let queue = self.queues.get_mut(&record.spec.queue).expect("a timer has a queue");
        queue.keys.insert(record.spec.key.clone(), generation);
        if let Hold::Wheel(_) = hold {
            queue.coming.insert((record.next_attempt, generation));
        }
        self.timers.insert(generation, Timer { record, place, hold });
    }

    /// Removes a timer from memory. Its row stays in the store.
    fn release(&mut self, generation: Generation) {
        let Some(timer) = self.timers.remove(&generation) else { return };
        let spec = &timer.record.spec;
        let queue = self.queues.get_mut(&spec.queue).expect("a timer has a queue");
        queue.keys.remove(&spec.key);
        let order = (timer.record.next_attempt, generation);
        match timer.place {
            Place::Bucket(_) => {
                match timer.hold {
                    Hold::Wheel(_) => queue.coming.remove(&order),
                    _ => queue.line_mut(spec.lane()).popped.remove(&order),
                };
                self.window.let_go(&timer.record);
            }
            Place::Waiting(lane, _) => {
                queue.line_mut(lane).waiting.remove(&order);
                self.held.waiting.remove(&timer.record);
            }
            _ => self.held.out.remove(&timer.record),
        }
        match timer.hold {
            Hold::Wheel(key) => drop(self.due.cancel(key)),
            Hold::Lease(key) => {
                let end = self.lease_end_of(&timer.hold);
                self.outbox.ends(&timer.record, end);
                self.expiries.cancel(key);
            }
            Hold::Queue => {}
        }
    }

    /// The place for a timer that is pending until `next_attempt`.
    fn place_for(&self, spec: &Spec, next_attempt: Moment) -> Place {
        if next_attempt <= self.wall {
            return Place::Waiting(spec.lane(), next_attempt);
        }
        Place::Bucket(self.window.bucket_for(next_attempt, self.wall))
    }
}

/// Inserts into the wheel. It refuses only for lack of memory, and [`Limits`] bound its size.
fn insert(
    wheel: &mut HierarchicalWheel<Generation>,
    at: Moment,
    generation: Generation,
) -> WheelKey {
    wheel.insert(Time::from(at.millis()), generation).expect("the window is bounded")
}
