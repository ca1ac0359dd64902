//! A store in memory that can lose unsynced writes, for tests and simulation.
//!
//! Rows are in ordered maps. The durable state is kept beside them: the state at the last sync, and the frames written
//! since, one per commit. [`MemoryStore::crash`] decides the fate of each frame. Opening recovers the longest prefix of
//! whole frames and drops the rest, as a log with checksums does. `commit` is [`write`](MemoryStore::write) followed by
//! [`sync`](MemoryStore::sync); a simulator calls them separately.

use std::collections::BTreeMap;

use crate::bucket::{Bucket, Cell};
use crate::record::{Generation, Lane, Place, Record};
use crate::store::{
    Filling, Head, Loaded, Op, Query, QueueRow, ShardRow, Snapshot, Store, StoreError,
};
use crate::values::{Key, Moment, QueueName};

/// A [`Store`] in memory.
#[derive(Default)]
pub struct MemoryStore {
    /// The state that a load reads.
    current: State,
    /// The state that survives every crash.
    synced: State,
    /// The frames written since the last sync.
    frames: Vec<Vec<Op>>,
    poisoned: bool,
}

/// What a crash does to an unsynced frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// It reached the disk.
    Whole,
    /// A part of it reached the disk. Its checksum reveals that.
    Torn,
    /// None of it reached the disk. Later frames may have.
    Lost,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    /// Writes a frame. Loads see it at once; a crash may lose it until the next [`sync`](MemoryStore::sync).
    ///
    /// # Errors
    /// The store is poisoned, or the epoch is not the latest.
    pub fn write(&mut self, epoch: u64, ops: &[Op]) -> Result<(), StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned);
        }
        if epoch != self.current.epoch {
            return Err(StoreError::Fenced);
        }
        ops.iter().for_each(|op| self.current.apply(op));
        self.frames.push(ops.to_vec());
        Ok(())
    }

    /// Makes every frame durable.
    ///
    /// # Errors
    /// The store is poisoned.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned);
        }
        for frame in self.frames.drain(..) {
            frame.iter().for_each(|op| self.synced.apply(op));
        }
        Ok(())
    }

    /// Simulates a failed write or sync: refuses everything until the store is opened again.
    pub fn poison(&mut self) {
        self.poisoned = true;
    }

    /// Simulates a crash or a failure. The store must be opened next.
    ///
    /// `survival` decides the fate of each unsynced frame, oldest first.
    pub fn crash(&mut self, mut survival: impl FnMut() -> Survival) {
        let fates: Vec<Survival> = self.frames.iter().map(|_| survival()).collect();
        let whole = fates.iter().take_while(|&&fate| fate == Survival::Whole).count();
        self.frames.truncate(whole);
        for frame in self.frames.drain(..) {
            frame.iter().for_each(|op| self.synced.apply(op));
        }
        self.current = self.synced.clone();
        self.poisoned = true;
    }

    /// Every row, by queue and key. For tests.
    pub fn rows(&self) -> impl Iterator<Item = (Place, &Record)> {
        self.current.keys.iter().filter_map(|((queue, _), &(place, generation))| {
            Some((place, self.current.row(queue, place, generation)?))
        })
    }
}

impl Store for MemoryStore {
    fn open(&mut self) -> Result<Head, StoreError> {
        self.poisoned = false;
        self.current.epoch += 1;
        self.synced.epoch = self.current.epoch;
        Ok(self.current.head())
    }

    fn commit(&mut self, epoch: u64, ops: &[Op]) -> Result<(), StoreError> {
        self.write(epoch, ops)?;
        self.sync()
    }

    fn load(&mut self, query: &Query) -> Result<Loaded, StoreError> {
        if self.poisoned { Err(StoreError::Poisoned) } else { Ok(self.current.load(query)) }
    }

    fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned);
        }
        let rows: Vec<_> = self.rows().map(|(place, record)| Ok((place, record.clone()))).collect();
        Ok(Box::new(rows.into_iter()))
    }
}

/// The address of a row in a place that has one table for all queues.
type Row = (Moment, Generation);

/// The tables.
#[derive(Clone, Default)]
struct State {
    epoch: u64,
    shard: ShardRow,
    queues: BTreeMap<QueueName, QueueRow>,
    buckets: BTreeMap<Bucket, Table>,
    waiting: BTreeMap<(QueueName, Lane, Row), Record>,
    out: BTreeMap<Row, Record>,
    dead: BTreeMap<(QueueName, Row), Record>,
    remembered: BTreeMap<Row, Record>,
    keys: BTreeMap<(QueueName, Key), (Place, Generation)>,
    cells: BTreeMap<(QueueName, Cell), u64>,
}

/// A bucket.
#[derive(Clone, Default)]
struct Table {
    rows: BTreeMap<Generation, Record>,
    filling: Filling,
}

impl State {
    fn head(&self) -> Head {
        Head {
            epoch: self.epoch,
            shard: self.shard,
            queues: self.queues.iter().map(|(name, row)| (name.clone(), row.clone())).collect(),
            buckets: self.buckets.iter().map(|(&bucket, table)| (bucket, table.filling)).collect(),
            forget: self.remembered.keys().next().map(|row| row.0),
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Put { from, to, record } => {
                let generation = record.generation();
                let name = (record.spec.queue.clone(), record.spec.key.clone());
                let before = self.keys.insert(name, (*to, generation));
                assert_eq!(
                    before,
                    from.map(|from| (from, generation)),
                    "a change names the row where it is"
                );
                if let Some(from) = *from {
                    self.take(from, &record.spec.queue, generation);
                }
                self.put(*to, record.clone());
            }
            Op::Remove { from, record } => {
                let (queue, generation) = (&record.spec.queue, record.generation());
                let before = self.keys.remove(&(queue.clone(), record.spec.key.clone()));
                assert_eq!(before, Some((*from, generation)), "a change names the row where it is");
                self.take(*from, queue, generation);
            }
            Op::Count { queue, cell, delta } => {
                let name = (queue.clone(), *cell);
                let before = self.cells.remove(&name).unwrap_or(0);
                let count =
                    before.checked_add_signed(*delta).expect("a counter is never below zero");
                if count > 0 {
                    self.cells.insert(name, count);
                }
            }
            Op::Queue { name, row } => drop(self.queues.insert(name.clone(), row.clone())),
            Op::Clear(queue) => self.cells.retain(|(of, _), _| of != queue),
            Op::Forget(queue) => drop(self.queues.remove(queue)),
            Op::Drop(bucket) => drop(self.buckets.remove(bucket)),
            Op::Shard(row) => self.shard = *row,
        }
    }

    fn put(&mut self, to: Place, record: Record) {
        let (queue, generation) = (record.spec.queue.clone(), record.generation());
        match to {
            Place::Bucket(bucket) => {
                let table = self.buckets.entry(bucket).or_default();
                table.filling.count += 1;
                table.filling.bytes += record.size();
                table.rows.insert(generation, record);
            }
            Place::Waiting(lane, at) => {
                drop(self.waiting.insert((queue, lane, (at, generation)), record));
            }
            Place::Out(at) => drop(self.out.insert((at, generation), record)),
            Place::Dead(at) => drop(self.dead.insert((queue, (at, generation)), record)),
            Place::Remembered(until) => drop(self.remembered.insert((until, generation), record)),
        }
    }

    fn take(&mut self, from: Place, queue: &QueueName, generation: Generation) {
        let taken = match from {
            Place::Bucket(bucket) => self.buckets.get_mut(&bucket).and_then(|table| {
                let record = table.rows.remove(&generation)?;
                table.filling.count -= 1;
                table.filling.bytes -= record.size();
                Some(record)
            }),
            Place::Waiting(lane, at) => {
                self.waiting.remove(&(queue.clone(), lane, (at, generation)))
            }
            Place::Out(at) => self.out.remove(&(at, generation)),
            Place::Dead(at) => self.dead.remove(&(queue.clone(), (at, generation))),
            Place::Remembered(until) => self.remembered.remove(&(until, generation)),
        };
        assert!(taken.is_some(), "the index names a row");
    }

    fn row(&self, queue: &QueueName, place: Place, generation: Generation) -> Option<&Record> {
        match place {
            Place::Bucket(bucket) => self.buckets.get(&bucket)?.rows.get(&generation),
            Place::Waiting(lane, at) => self.waiting.get(&(queue.clone(), lane, (at, generation))),
            Place::Out(at) => self.out.get(&(at, generation)),
            Place::Dead(at) => self.dead.get(&(queue.clone(), (at, generation))),
            Place::Remembered(until) => self.remembered.get(&(until, generation)),
        }
    }

    fn load(&self, query: &Query) -> Loaded {
        let after = |after: &Option<Generation>| Generation(after.map_or(0, |after| after.0 + 1));
        let rows: Vec<(Place, Record)> = match query {
            Query::Keys(keys) => {
                let find = |name: &(QueueName, Key)| {
                    let &(place, generation) = self.keys.get(name)?;
                    Some((place, self.row(&name.0, place, generation)?.clone()))
                };
                return Loaded::Found(keys.iter().map(find).collect());
            }
            Query::Cells { queue, from, to } => {
                let cell = |start| (queue.clone(), Cell { start, width: 0 });
                let cells = self.cells.range(cell(*from)..cell(*to));
                return Loaded::Cells(cells.map(|((_, cell), &count)| (*cell, count)).collect());
            }
            Query::Bucket { bucket, after: last, limit } => {
                let rows = self
                    .buckets
                    .get(bucket)
                    .into_iter()
                    .flat_map(|table| table.rows.range(after(last)..));
                rows.map(|(_, record)| (Place::Bucket(*bucket), record.clone()))
                    .take(*limit)
                    .collect()
            }
            Query::Waiting { queue, lane, from, limit } => {
                let rows = self.waiting.range((queue.clone(), *lane, *from)..);
                let of_lane =
                    rows.take_while(|((of, in_lane, _), _)| (of, in_lane) == (queue, lane));
                let place = |row: &Row| Place::Waiting(*lane, row.0);
                of_lane
                    .take(*limit)
                    .map(|((_, _, row), record)| (place(row), record.clone()))
                    .collect()
            }
            Query::Out { after, limit } => {
                let least = after.map(|(at, generation)| (at, Generation(generation.0 + 1)));
                let rows = self.out.range(least.unwrap_or_default()..).take(*limit);
                rows.map(|(row, record)| (Place::Out(row.0), record.clone())).collect()
            }
            Query::Dead { queue, after, limit } => {
                let least = after.map_or((Moment::ZERO, Generation(0)), |(at, generation)| {
                    (at, Generation(generation.0.saturating_add(1)))
                });
                let rows = self.dead.range((queue.clone(), least)..);
                let rows = rows.take_while(|((of, _), _)| of == queue).take(*limit);
                rows.map(|((_, row), record)| (Place::Dead(row.0), record.clone())).collect()
            }
            Query::Remembered { after, limit } => {
                let rows = self.remembered.iter();
                let rows = rows.filter(|(row, _)| Some(**row) > *after).take(*limit);
                rows.map(|(row, record)| (Place::Remembered(row.0), record.clone())).collect()
            }
            Query::Prefix { queue, prefix, after: last, limit } => {
                let rows = self.keys.iter().filter(|((of, key), (_, generation))| {
                    of == queue
                        && key.as_str().starts_with(prefix)
                        && Some(key) > last.as_ref()
                        && key.home(generation.0).is_none()
                });
                rows.filter_map(|(_, &(place, generation))| {
                    Some((place, self.row(queue, place, generation)?.clone()))
                })
                .take(*limit)
                .collect()
            }
            Query::Sorted { bucket, queue, floor, after, limit } => {
                let table = self.buckets.get(bucket).into_iter();
                let rows = table.flat_map(|table| table.rows.range(*floor..).map(|row| row.1));
                let mut rows: Vec<&Record> =
                    rows.filter(|row| row.spec.queue == *queue && row.order() > *after).collect();
                rows.sort_by_key(|row| row.order());
                rows.truncate(*limit);
                rows.into_iter().map(|row| (Place::Bucket(*bucket), row.clone())).collect()
            }
        };
        Loaded::Rows(rows)
    }
}
