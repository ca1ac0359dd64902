//! Our store on disk, given what a shard would give it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tourbillon_durable::bucket::{Bucket, Cell, Level};
use tourbillon_durable::disk::DiskStore;
use tourbillon_durable::record::{Generation, Place, Record, Spec};
use tourbillon_durable::store::{Loaded, Op, Query, QueueRow, ShardRow, Store};
use tourbillon_durable::values::{Key, Moment, Payload, QueueName, Retry, Span};

use super::{Contestant, NOW, PAYLOAD, Timer};

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
    fn record(&self, timer: &Timer) -> Record {
        let due = Moment::from_millis(timer.due);
        let spec = Spec {
            generation: Generation(timer.generation),
            queue: self.queue.clone(),
            key: key(timer),
            created: Moment::from_millis(NOW),
            payload: self.payload.clone(),
            recurrence: None,
            expires: None,
            remember: Span::ZERO,
            retry: Retry::default(),
        };
        Record::new(spec, due)
    }

    /// Commits changes, with the counters and rows that a shard writes with them.
    fn commit(&mut self, mut ops: Vec<Op>, timers: &[Timer], by: i64) -> Result<Duration, String> {
        let mut cells = BTreeMap::new();
        for timer in timers {
            let cell = Cell::of(bucket(timer).level(), Moment::from_millis(timer.due));
            *cells.entry(cell).or_insert(0) += by;
        }
        let queue = &self.queue;
        ops.extend(cells.into_iter().map(|(cell, delta)| Op::Count {
            queue: queue.clone(),
            cell,
            delta,
        }));
        self.row.pending = self.row.pending.saturating_add_signed(by * timers.len() as i64);
        ops.push(Op::Queue { name: queue.clone(), row: self.row.clone() });
        let next = timers.last().map_or(0, |timer| timer.generation + 1);
        let wall = Moment::from_millis(NOW);
        ops.push(Op::Shard(ShardRow { next_generation: Generation(next), wall }));
        let begin = Instant::now();
        self.store.commit(self.epoch, &ops).map_err(|error| error.to_string())?;
        Ok(begin.elapsed())
    }
}

impl Contestant for Disk {
    fn store(&mut self, timers: &[Timer]) -> Result<Duration, String> {
        let put = |timer: &Timer| {
            let to = Place::Bucket(bucket(timer));
            Op::Put { from: None, to, record: self.record(timer) }
        };
        let ops = timers.iter().map(put).collect();
        self.commit(ops, timers, 1)
    }

    fn cancel(&mut self, timers: &[Timer]) -> Result<Duration, String> {
        let keys = timers.iter().map(|timer| (self.queue.clone(), key(timer))).collect();
        let begin = Instant::now();
        let loaded = self.store.load(&Query::Keys(keys)).map_err(|error| error.to_string())?;
        let looked = begin.elapsed();
        let Loaded::Found(found) = loaded else { return Err("no rows".into()) };
        let remove = |(place, record): (Place, Record)| {
            let (queue, key) = (record.spec.queue.clone(), record.spec.key.clone());
            Op::Remove { from: place, queue, key, generation: record.generation() }
        };
        let ops: Vec<Op> = found.into_iter().flatten().map(remove).collect();
        if ops.len() != timers.len() {
            return Err("a timer is not there".into());
        }
        Ok(looked + self.commit(ops, timers, -1)?)
    }
}

fn bucket(timer: &Timer) -> Bucket {
    let due = Moment::from_millis(timer.due);
    Bucket::of(Level::of(due, Moment::from_millis(NOW)), due)
}

/// The chosen key, or the one that a shard would assign.
fn key(timer: &Timer) -> Key {
    let text = timer.key.clone();
    let text = text.unwrap_or_else(|| format!("~{:x}-{:x}", timer.generation, timer.due));
    Key::new(&text).expect("a key")
}
