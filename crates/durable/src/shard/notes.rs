//! Notes for observers: events of timers, and a wall clock that is far off. No decision depends on them.

use super::{Hold, Shard};
use crate::message::FarOff;
use crate::record::{Place, Record};
use crate::values::{Event, Generation, Happened, Moment, QueueName, Span};

/// A clock further than this behind the latest recorded reading is reported at a start.
const DAY: Span = Span::from_secs(86_400);
/// A clock jump longer than this is reported.
const YEAR: Span = Span::from_secs(366 * 86_400);

impl Shard {
    /// Sets whether the following turns report events.
    pub fn listen(&mut self, listens: bool) {
        if listens != self.events.is_some() {
            self.events = listens.then(Vec::new);
        }
    }

    pub(super) fn note(&mut self, happened: Happened, record: &Record) {
        let Some(events) = &mut self.events else { return };
        events.push(Event {
            happened,
            queue: record.spec.queue.clone(),
            key: Some(record.spec.key.clone()),
            generation: record.generation(),
            occurrence: record.occurrence,
            attempt: record.attempt,
            at: self.wall,
        });
    }

    /// Reports that every timer of a queue was cancelled.
    pub(super) fn note_cleared(&mut self, queue: &QueueName) {
        let Some(events) = &mut self.events else { return };
        let (queue, key, at) = (queue.clone(), None, self.wall);
        let (generation, occurrence, attempt) = (Generation(0), 0, 0);
        let happened = Happened::Cancelled;
        events.push(Event { happened, queue, key, generation, occurrence, attempt, at });
    }

    /// Reports that a timer becomes due, unless it was due already.
    pub(super) fn note_place(&mut self, from: Option<Place>, to: Place, record: &Record) {
        if self.events.is_none() || !matches!(to, Place::Waiting(..)) {
            return;
        }
        let timer = self.timers.get(&record.generation());
        let due = timer.is_some_and(|timer| matches!(timer.hold, Hold::Queue));
        if !due || !matches!(from, Some(Place::Bucket(_) | Place::Waiting(..))) {
            self.note(Happened::Due, record);
        }
    }

    /// Reports a wall clock that is far off when the shard is opened.
    pub(super) fn note_start(&mut self, reads: Moment) {
        let expected = self.row.wall;
        let back = expected.since(reads) > DAY;
        let forth = expected > Moment::ZERO && reads.since(expected) > YEAR;
        self.far_off = (back || forth).then_some(FarOff { expected, reads });
    }

    /// Reports the wall clock if it jumped far from its expected reading.
    pub(super) fn note_jump(&mut self, expected: Moment, reads: Moment) {
        if reads.since(expected).max(expected.since(reads)) > YEAR {
            self.far_off = Some(FarOff { expected, reads });
        }
    }
}
