//! Importing: writes rows and their counters into an empty store, for repairs and for loading a dump.

use std::collections::BTreeMap;

use crate::bucket::{Cell, Level};
use crate::record::{Generation, Lane, Place, Record};
use crate::store::{Op, QueueRow, Settings, ShardRow, Store, StoreError};
use crate::values::{Moment, QueueName};

/// The number of rows in one commit.
const BATCH: usize = 5000;

/// Writes rows into a store that was just opened and is empty.
pub struct Import<'s> {
    store: &'s mut dyn Store,
    epoch: u64,
    shard: ShardRow,
    queues: BTreeMap<QueueName, QueueRow>,
    cells: BTreeMap<(QueueName, Cell), i64>,
    ops: Vec<Op>,
}

impl<'s> Import<'s> {
    /// Begins an import. `wall` becomes the store's latest known wall-clock time, and the store gets a new name.
    pub fn new(store: &'s mut dyn Store, epoch: u64, wall: Moment) -> Self {
        let shard = ShardRow { next_generation: Generation(0), wall, name: ShardRow::new_name() };
        let (queues, cells) = (BTreeMap::new(), BTreeMap::new());
        Import { store, epoch, shard, queues, cells, ops: Vec::new() }
    }

    /// Uses the name of the store that the rows come from.
    pub(crate) fn name(&mut self, name: u64) {
        self.shard.name = name;
    }

    /// Sets the settings of a queue.
    pub fn queue(&mut self, name: &QueueName, settings: Settings) {
        self.queues.entry(name.clone()).or_default().settings = settings;
    }

    /// Marks the generations below `next` as used.
    pub fn used(&mut self, next: Generation) {
        self.shard.next_generation = self.shard.next_generation.max(next);
    }

    /// Adds a row. Its key must be new in its queue, and its generation new in the store.
    ///
    /// # Errors
    /// The store fails.
    pub fn add(&mut self, place: Place, record: Record) -> Result<(), StoreError> {
        self.used(Generation(record.generation().0 + 1));
        let name = record.spec.queue.clone();
        let queue = self.queues.entry(name.clone()).or_default();
        // Counts as the shard does.
        let cell = match place {
            Place::Bucket(bucket) => Some(Cell::of(bucket.level(), record.next_attempt)),
            Place::Waiting(_, at) => Some(Cell::of(Level::Hour, at)),
            _ => None,
        };
        queue.pending += u64::from(cell.is_some());
        queue.waiting += u64::from(matches!(place, Place::Waiting(..)));
        queue.waiting_push += u64::from(matches!(place, Place::Waiting(Lane::Push, _)));
        queue.watched += u64::from(matches!(place, Place::Waiting(..)) && record.is_watched());
        queue.out += u64::from(matches!(place, Place::Out(_)));
        queue.dead += u64::from(matches!(place, Place::Dead(_)));
        queue.remembered += u64::from(matches!(place, Place::Remembered(_)));
        if let Some(cell) = cell {
            *self.cells.entry((name, cell)).or_default() += 1;
        }
        self.ops.push(Op::Put { from: None, to: place, record });
        if self.ops.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes the remaining rows.
    ///
    /// # Errors
    /// The store fails.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let cells = std::mem::take(&mut self.cells);
        self.ops.extend(cells.into_iter().map(|((queue, cell), delta)| Op::Count {
            queue,
            cell,
            delta,
        }));
        let rows = self.queues.iter();
        self.ops.extend(rows.map(|(name, row)| Op::Queue { name: name.clone(), row: row.clone() }));
        self.ops.push(Op::Shard(self.shard));
        let ops = std::mem::take(&mut self.ops);
        self.store.commit(self.epoch, &ops)
    }
}
