//! Our store on disk, called as a shard would call it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tourbillon_durable::bucket::{Bucket, Cell, Level};
use tourbillon_durable::disk::DiskStore;
use tourbillon_durable::record::{Generation, Place, Record, Spec};
use tourbillon_durable::store::{Op, QueueRow, ShardRow, Store};
use tourbillon_durable::values::{Key, Moment, Payload, QueueName, Retry, Span};

use super::{Contestant, PAYLOAD, Timer, now};

struct Disk {
    store: DiskStore,
    epoch: u64,
    queue: QueueName,
    payload: Payload,
    row: QueueRow,
}

pub(super) fn open(directory: &Path) -> Result<Box<dyn Contestant>, String> {
    let mut store = DiskStore::new(directory);
    let head = store.open().map_err(|error| error.to_string())?;
    let queue = QueueName::new("orders").map_err(|error| error.to_string())?;
    let payload = Payload::bytes(PAYLOAD);
    Ok(Box::new(Disk { store, epoch: head.epoch, queue, payload, row: QueueRow::default() }))
}

impl Disk {
    /// Commits changes, with the counters and rows that a shard writes with them.
    fn commit(&mut self, mut ops: Vec<Op>, timers: &[Timer]) -> Result<Duration, String> {
        let mut cells = BTreeMap::new();
        for timer in timers {
            let cell = Cell::of(bucket(timer).level(), Moment::from_millis(timer.due));
            *cells.entry(cell).or_insert(0) += 1;
        }
        let queue = &self.queue;
        ops.extend(cells.into_iter().map(|(cell, delta)| Op::Count {
            queue: queue.clone(),
            cell,
            delta,
        }));
        self.row.pending += timers.len() as u64;
        ops.push(Op::Queue { name: queue.clone(), row: self.row.clone() });
        let next = timers.last().map_or(0, |timer| timer.generation + 1);
        let wall = Moment::from_millis(now());
        ops.push(Op::Shard(ShardRow { next_generation: Generation(next), wall, name: 0 }));
        let begin = Instant::now();
        self.store.commit(self.epoch, &ops).map_err(|error| error.to_string())?;
        Ok(begin.elapsed())
    }
}

impl Contestant for Disk {
    fn store(&mut self, timers: &[Timer]) -> Result<Duration, String> {
        let put = |timer: &Timer| {
            let to = Place::Bucket(bucket(timer));
            Op::Put { from: None, to, record: record(&self.queue, &self.payload, timer) }
        };
        let ops = timers.iter().map(put).collect();
        self.commit(ops, timers)
    }
}

/// The row of a timer.
pub(super) fn record(queue: &QueueName, payload: &Payload, timer: &Timer) -> Record {
    let due = Moment::from_millis(timer.due);
    let spec = Spec {
        generation: Generation(timer.generation),
        queue: queue.clone(),
        key: Key::new(&timer.name()).expect("a key"),
        created: Moment::from_millis(now()),
        payload: payload.clone(),
        recurrence: None,
        expires: None,
        webhook: None,
        remember: Span::ZERO,
        retry: Retry::default(),
    };
    Record::new(spec, due)
}

fn bucket(timer: &Timer) -> Bucket {
    let due = Moment::from_millis(timer.due);
    Bucket::of(Level::of(due, Moment::from_millis(now())), due)
}
