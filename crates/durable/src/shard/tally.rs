//! Counting: the rows of queues, the counters of the forecast (cells), and the retention of dead and remembered rows.
//!
//! Every place is counted here and nowhere else. The counters are written together with the changes, so they are exact
//! after any restart, and counting reads no timer.

use super::{Purpose, Shard};
use crate::bucket::{Bucket, Cell, Level, ceil, floor, grid};
use crate::message::{Answer, Counts, Effect, LoadId, RequestId};
use crate::record::{Lane, Place, Record};
use crate::store::{Filling, Op, Query, QueueRow, Settings, ShardRow};
use crate::values::{Moment, QueueName};

/// Maximum number of rows that one purge examines.
const PURGE: usize = 100;

/// Totals over all queues.
#[derive(Default)]
pub(super) struct Held {
    /// The rows that are out.
    pub(super) out: Filling,
    /// The resident waiting rows.
    pub(super) waiting: Filling,
    /// The number of timers that are neither done nor cancelled.
    pub(super) living: u64,
}

impl Shard {
    /// Counts a row into its place (`by` = 1) or out of it (`by` = -1).
    pub(super) fn tally(&mut self, place: Place, record: &Record, by: i64) {
        let name = &record.spec.queue;
        self.outbox.dirty(name);
        let queue = self.queues.get_mut(name).expect("a timer has a queue");
        let add = |count: &mut u64| {
            *count = count.checked_add_signed(by).expect("a count is never below zero");
        };
        if record.generation() < queue.row.floor {
            add(&mut queue.row.discarded);
            if let Place::Bucket(bucket) = place {
                self.window.fill(bucket, record, by);
            }
            return;
        }
        queue.stored = true;
        if !matches!(place, Place::Remembered(_)) {
            add(&mut self.held.living);
        }
        match place {
            Place::Bucket(bucket) => {
                add(&mut queue.row.pending);
                let last = queue.row.pending == queue.row.waiting;
                // A row before the window's end is not counted here: when it leaves memory, `Far::forget` covers it.
                if by < 0 || record.next_attempt.millis() >= self.window.end {
                    queue.far.change(record.next_attempt, by, last);
                }
                self.window.fill(bucket, record, by);
                self.outbox.count(name, Cell::of(bucket.level(), record.next_attempt), by);
            }
            Place::Waiting(lane, at) => {
                add(&mut queue.row.pending);
                add(&mut queue.row.waiting);
                if lane == Lane::Push {
                    add(&mut queue.row.waiting_push);
                }
                if record.is_watched() {
                    add(&mut queue.row.watched);
                }
                if record.is_watched() && by > 0 {
                    self.note_due(record);
                }
                self.outbox.count(name, Cell::of(Level::Hour, at), by);
            }
            Place::Out(_) => {
                add(&mut queue.row.out);
                if by < 0 && queue.row.settings.concurrency.is_some() {
                    self.stirred.insert(name.clone());
                }
                let mut before = self.held.out;
                before.add(record);
                if by < 0 && self.is_out_full(before) {
                    self.stirred.extend(self.queues.keys().cloned());
                }
            }
            Place::Dead(at) => {
                add(&mut queue.row.dead);
                queue.died = Some(queue.died.map_or(at, |died| died.min(at)));
                self.purge_at = self.purge_at.min(at + queue.row.settings.dead_keep);
            }
            Place::Remembered(until) => {
                add(&mut queue.row.remembered);
                self.forget = Some(self.forget.map_or(until, |forget| forget.min(until)));
            }
        }
    }

    /// Recounts the timers of all queues.
    pub(super) fn count_living(&mut self) {
        let rows = self.queues.values().map(|queue| &queue.row);
        self.held.living = rows.map(|row| row.pending + row.out + row.dead).sum();
    }

    /// Every queue that the store holds, as of the last turn.
    pub fn queues(&self) -> Vec<(QueueName, QueueRow)> {
        let stored = self.queues.iter().filter(|(_, queue)| queue.stored || queue.row.deleted);
        stored.map(|(name, queue)| (name.clone(), queue.row.clone())).collect()
    }

    /// The shard's own row, as of the last turn.
    pub fn row(&self) -> ShardRow {
        self.row
    }

    pub(super) fn counts(&self, name: &QueueName) -> Option<(Counts, Settings)> {
        let queue = self.queues.get(name).filter(|queue| queue.stored)?;
        let due = queue.row.waiting + queue.popped().count() as u64;
        let scheduled = queue.row.pending - due;
        let counts = Counts { scheduled, due, delivering: queue.row.out, dead: queue.row.dead };
        Some((counts, queue.row.settings.clone()))
    }

    /// The effects of this turn.
    pub(super) fn flush(&mut self) -> Vec<Effect> {
        let (changed, dirty) = self.outbox.take_dirty();
        let mut rows = Vec::new();
        for name in dirty {
            let queue = self.queues.get_mut(&name).expect("a queue that is changed is there");
            queue.stored = !queue.row.deleted;
            let empty = queue.row.discarded == 0;
            rows.push(
                match queue.row.deleted && planted!("deleted-queue-forgets-its-floor", true, empty)
                {
                    true => Op::Forget(name),
                    false => Op::Queue { row: queue.row.clone(), name },
                },
            );
        }
        if changed {
            rows.push(Op::Shard(self.row));
        }
        let mut effects = Vec::new();
        self.outbox.flush(rows, &mut effects);
        // The loads follow the commit, so that they see it.
        effects.extend(self.loads.emitted.drain(..).map(|(id, query)| Effect::Load(id, query)));
        effects
    }
}

/// The forecast.
impl Shard {
    pub(super) fn load_forecast(&mut self, id: RequestId, queue: QueueName, edges: &[Moment]) {
        let last = edges.len().saturating_sub(1);
        let mut exact: Vec<u64> = Vec::with_capacity(edges.len());
        for (nth, &edge) in edges.iter().enumerate() {
            // The grid widens with distance, so an edge may round to before the previous one.
            let before = exact.last().copied().unwrap_or(0);
            exact.push(self.exact(edge, nth == last).max(before));
        }
        exact.dedup();
        let (from, to) = (exact.first().copied().unwrap_or(0), exact.last().copied().unwrap_or(0));
        self.loads.emit(Query::Cells { queue, from, to }, Purpose::Forecast(id, exact));
    }

    /// Rounds an edge to the grid of the counters there: down, or up for the last edge.
    fn exact(&self, edge: Moment, up: bool) -> u64 {
        // After a clock jump a wide bucket may be near and not yet split. Its timers are counted by days.
        let wide = [Level::Month, Level::Era].map(|level| Bucket::of(level, edge));
        let unsplit = wide.iter().any(|bucket| self.window.buckets.contains_key(bucket));
        let width = if unsplit { Level::Day.width() } else { grid(edge, self.wall) };
        if up { ceil(edge.millis(), width) } else { floor(edge.millis(), width) }
    }

    pub(super) fn forecast(&mut self, id: RequestId, edges: &[u64], cells: &[(Cell, u64)]) {
        let piece = |pair: &[u64]| {
            let (from, to) = (pair[0], pair[1]);
            let within = |cell: &&(Cell, u64)| {
                planted!(
                    "forecast-off-by-one",
                    cell.0.start > from && cell.0.start <= to,
                    cell.0.start >= from && cell.0.start < to
                )
            };
            let count = cells.iter().filter(within).map(|cell| cell.1).sum();
            (Moment::from_millis(from), Moment::from_millis(to), count)
        };
        let pieces = edges.windows(2).map(piece).collect();
        self.outbox.answer(id, Answer::Forecast(pieces));
    }
}

/// Retention.
impl Shard {
    /// Whether a row counts as gone: its retention has ended, or it is discarded.
    pub(super) fn has_passed(&self, place: Place, record: &Record) -> bool {
        if self.is_discarded(record) {
            return true;
        }
        match place {
            Place::Remembered(until) => {
                let passed = until <= self.wall;
                planted!(
                    "remembered-key-forgotten-at-restart",
                    passed || record.spec.created < self.opened,
                    passed
                )
            }
            Place::Dead(at) => {
                let queue = self.queues.get(&record.spec.queue);
                queue.is_some_and(|queue| at + queue.row.settings.dead_keep <= self.wall)
            }
            _ => false,
        }
    }

    /// Looks for rows whose retention has ended, if there may be any.
    pub(super) fn purge(&mut self) {
        if self.forget.is_some_and(|forget| forget <= self.wall) {
            self.forget = None;
            self.loads.emit(Query::Remembered { after: None, limit: PURGE }, Purpose::Remembered);
        }
        if self.purge_at > self.wall {
            return;
        }
        self.purge_at = Moment::MAX;
        for (name, queue) in &mut self.queues {
            let Some(passes) = queue.died.map(|died| died + queue.row.settings.dead_keep) else {
                continue;
            };
            if passes > self.wall {
                self.purge_at = self.purge_at.min(passes);
                continue;
            }
            queue.died = None;
            let query = Query::Dead { queue: name.clone(), after: None, limit: PURGE };
            self.loads.emit(query, Purpose::Dead(name.clone()));
        }
    }

    pub(super) fn purge_remembered(&mut self, id: LoadId, rows: Vec<(Place, Record)>) {
        let full = rows.len() == PURGE;
        let rest = self.purge_rows(id, rows);
        let rest = rest.or(full.then_some(self.wall));
        self.forget = self.forget.into_iter().chain(rest).min();
    }

    pub(super) fn purge_dead(&mut self, id: LoadId, name: &QueueName, rows: Vec<(Place, Record)>) {
        let full = rows.len() == PURGE;
        let rest = self.purge_rows(id, rows);
        let Some(queue) = self.queues.get_mut(name) else { return };
        let rest = rest.or(full.then_some(Moment::ZERO));
        queue.died = queue.died.into_iter().chain(rest).min();
        let passes = queue.died.map_or(Moment::MAX, |died| died + queue.row.settings.dead_keep);
        self.purge_at = self.purge_at.min(passes);
    }

    /// Removes the rows whose retention has ended. Returns when the retention of the first remaining row ends.
    fn purge_rows(&mut self, id: LoadId, rows: Vec<(Place, Record)>) -> Option<Moment> {
        for (place, record) in rows {
            if self.is_stale(id, &record) {
                continue;
            }
            if !self.has_passed(place, &record) {
                let (Place::Dead(at) | Place::Remembered(at)) = place else { return None };
                return Some(at);
            }
            self.change(Some((place, &record)), None);
        }
        None
    }
}
