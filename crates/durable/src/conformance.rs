//! The conformance kit: tests a store against a model.
//!
//! The model is a list of rows, searched linearly: slow, and obviously right. Batches are generated from a seed. After
//! each batch, the store and the model answer every query. A new store calls [`run`] from its own test.

use std::sync::Arc;

use crate::bucket::{Bucket, Cell, Level};
use crate::record::{Fate, Generation, Lane, Lease, Place, Record, Spec};
use crate::store::{
    Filling, Head, Loaded, Op, Query, QueueRow, Settings, ShardRow, Store, StoreError,
};
use crate::values::{Key, Moment, Payload, QueueName, Retry, Secret, Span, Webhook};

/// Tests a store against the rules of [`store`](crate::store).
///
/// `fresh` makes an empty store; `restart` does to a store what the end of the process does, without opening it again.
///
/// # Panics
/// The store differs from the model.
pub fn run<S: Store>(mut fresh: impl FnMut() -> S, mut restart: impl FnMut(S) -> S) {
    for seed in 0..20 {
        let mut kit = Kit {
            random: Random(seed),
            model: Model::default(),
            store: fresh(),
            epoch: 0,
            made: 0,
        };
        kit.open();
        kit.compare();
        for _ in 0..60 {
            kit.commit();
            kit.compare();
            if kit.random.below(8) == 0 {
                kit.store = restart(kit.store);
                kit.open();
                kit.compare();
            }
            if kit.random.below(8) == 0 {
                kit.fence();
            }
        }
    }
}

/// The rows of a store, in insertion order.
#[derive(Default)]
struct Model {
    rows: Vec<(Place, Record)>,
    cells: Vec<(QueueName, Cell, u64)>,
    queues: Vec<(QueueName, QueueRow)>,
    shard: ShardRow,
}

struct Kit<S> {
    random: Random,
    model: Model,
    store: S,
    epoch: u64,
    made: u64,
}

impl<S: Store> Kit<S> {
    fn open(&mut self) {
        let head = self.store.open().expect("a store opens");
        assert!(head.epoch > self.epoch, "an epoch rises with every opening");
        self.epoch = head.epoch;
        let mut model = self.model.head(self.epoch);
        // A bucket without a living row may remain until it is dropped.
        let living = |head: Head| Head {
            buckets: head.buckets.into_iter().filter(|b| b.1.count > 0).collect(),
            ..head
        };
        model.queues.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(living(head), model, "what an opening returns");
    }

    /// A commit with an older epoch changes nothing.
    fn fence(&mut self) {
        let old = self.epoch;
        self.open();
        let refused = self.store.commit(old, &[Op::Shard(ShardRow::default())]);
        assert_eq!(refused, Err(StoreError::Fenced), "a later opening fences");
        self.compare();
    }

    fn commit(&mut self) {
        let count = 1 + self.random.below(12);
        let ops: Vec<Op> = (0..count).map(|_| self.op()).collect();
        self.store.commit(self.epoch, &ops).expect("a commit succeeds");
    }

    /// A change that is valid in the current state. Also applies it to the model.
    fn op(&mut self) -> Op {
        let op = match self.random.below(11) {
            10 if self.random.below(2) == 0 => Op::Clear(self.queue()),
            10 => Op::Forget(self.queue()),
            0 => Op::Queue {
                name: self.queue(),
                row: QueueRow {
                    dead: self.random.below(9),
                    watched: self.random.below(9),
                    floor: Generation(self.random.below(99)),
                    discarded: self.random.below(9),
                    deleted: self.made.is_multiple_of(2),
                    waiting_push: self.random.below(9),
                    settings: Settings {
                        rate: self.made.is_multiple_of(2).then_some(self.made as u32),
                        concurrency: self.made.is_multiple_of(3).then_some(1),
                        webhook: self.made.is_multiple_of(5).then(webhook),
                        ..Settings::default()
                    },
                    ..QueueRow::default()
                },
            },
            1 => {
                let wall = Moment::from_millis(self.random.below(1 << 40));
                Op::Shard(ShardRow {
                    wall,
                    next_generation: Generation(self.made),
                    name: self.made,
                })
            }
            2 | 3 => self.count(),
            4 | 5 if !self.model.rows.is_empty() => {
                let (from, record) = self.row();
                Op::Remove { from, record }
            }
            6 | 7 if !self.model.rows.is_empty() => {
                let (from, mut record) = self.row();
                record.attempt += 1;
                record.next_attempt = self.moment();
                let to = self.place(record.spec.lane(), record.next_attempt);
                Op::Put { from: Some(from), to, record }
            }
            8 if self.model.rows.iter().any(|row| matches!(row.0, Place::Bucket(_))) => {
                self.empty_bucket()
            }
            _ => self.new_row(),
        };
        self.model.apply(&op);
        op
    }

    fn count(&mut self) -> Op {
        let (queue, at) = (self.queue(), self.moment());
        let cell = Cell::of(if self.random.below(2) == 0 { Level::Hour } else { Level::Era }, at);
        let now = self
            .model
            .cells
            .iter()
            .find(|one| one.0 == queue && one.1 == cell)
            .map_or(0, |one| one.2);
        let delta = if now > 0 && self.random.below(2) == 0 {
            -(now as i64)
        } else {
            1 + self.random.below(3) as i64
        };
        Op::Count { queue, cell, delta }
    }

    /// Drops a bucket that has no rows, or that never existed.
    fn empty_bucket(&mut self) -> Op {
        let bucket = |row: &(Place, Record)| {
            if let Place::Bucket(bucket) = row.0 { Some(bucket) } else { None }
        };
        let empty = Bucket::of(Level::Second, Moment::from_millis(77_000));
        let used = self.model.rows.iter().filter_map(bucket).any(|bucket| bucket == empty);
        if used { self.new_row() } else { Op::Drop(empty) }
    }

    fn new_row(&mut self) -> Op {
        let generation = Generation(self.made);
        self.made += 1;
        let (queue, at) = (self.queue(), self.moment());
        let chosen = self.random.below(2) == 0;
        let spec = Spec {
            generation,
            queue,
            key: if chosen {
                chosen_key(generation.0)
            } else {
                Key::assigned(generation.0, at.millis())
            },
            created: at,
            payload: match self.random.below(2) {
                0 => Payload::bytes(vec![7; self.random.below(40) as usize]),
                _ => Payload::json("7".repeat(1 + self.random.below(40) as usize)),
            },
            recurrence: None,
            remember: Span::from_secs(self.random.below(3)),
            retry: Retry::default(),
            expires: generation.0.is_multiple_of(3).then_some(Span::from_secs(generation.0)),
            webhook: generation.0.is_multiple_of(2).then(webhook),
        };
        let record = Record {
            spec: Arc::new(spec),
            due: at,
            next_attempt: at,
            behind: None,
            occurrence: 1,
            attempt: 0,
            failed: 0,
            fate: Fate::Open,
            lease: Some(Lease { until: at, length: Span::from_secs(1) }),
            last_error: None,
        };
        Op::Put { from: None, to: self.place(record.spec.lane(), at), record }
    }

    fn queue(&mut self) -> QueueName {
        // One name is a prefix of another, to show that the keys of the two queues are kept apart.
        let name = ["a", "ab", "b"][self.random.below(3) as usize];
        QueueName::new(name).expect("a name")
    }

    /// A few moments, so that rows collide.
    fn moment(&mut self) -> Moment {
        Moment::from_millis(
            [0, 1, 59_999, 60_000, 77_500, 3_600_000, 1 << 40][self.random.below(7) as usize],
        )
    }

    fn place(&mut self, lane: Lane, at: Moment) -> Place {
        let levels = [Level::Second, Level::Hour, Level::Day, Level::Era];
        match self.random.below(6) {
            0 => Place::Waiting(lane, at),
            1 => Place::Out(at),
            2 => Place::Dead(at),
            3 => Place::Remembered(at),
            _ => Place::Bucket(Bucket::of(levels[self.random.below(4) as usize], at)),
        }
    }

    fn row(&mut self) -> (Place, Record) {
        let nth = self.random.below(self.model.rows.len() as u64) as usize;
        self.model.rows[nth].clone()
    }

    /// Sends every query to the store and to the model, and compares the answers.
    fn compare(&mut self) {
        let middle = Some((Moment::from_millis(60_000), Generation(9)));
        let mut queries = vec![
            Query::Remembered { after: None, limit: 2 },
            Query::Remembered { after: middle, limit: 1000 },
            Query::Out { after: None, limit: 3 },
            Query::Out { after: middle, limit: 1000 },
        ];
        for name in ["a", "ab", "b", "none"] {
            let queue = QueueName::new(name).expect("a name");
            for from in [None, middle].map(Option::unwrap_or_default) {
                for lane in Lane::ALL {
                    queries.push(Query::Waiting { queue: queue.clone(), lane, from, limit: 3 });
                }
            }
            for after in [None, middle] {
                queries.push(Query::Dead { queue: queue.clone(), after, limit: 3 });
            }
            queries.push(Query::Cells { queue: queue.clone(), from: 0, to: 60_000 });
            queries.push(Query::Cells { queue: queue.clone(), from: 60_000, to: u64::MAX });
            let skip = self.random.below(1 + self.model.rows.len() as u64) as usize;
            let some = self.model.rows.iter().skip(skip).take(12);
            let assigned = some.map(|row| row.1.spec.key.clone());
            let gone = (0..4).map(|n| Key::assigned(n, 60_000));
            let keys = (0..30).map(chosen_key).chain(assigned).chain(gone);
            queries.push(Query::Keys(keys.map(|key| (queue.clone(), key)).collect()));
            for (prefix, after) in [("k", None), ("k1", Some("k12")), ("k1", None), ("~", None)] {
                let after = after.map(|key| Key::new(key).expect("a key"));
                let (queue, prefix) = (queue.clone(), prefix.to_string());
                queries.push(Query::Prefix { queue, prefix, after, limit: 5 });
            }
        }
        for level in [Level::Second, Level::Hour, Level::Day, Level::Era] {
            let bucket = Bucket::of(level, self.moment());
            queries.push(Query::Bucket { bucket, after: None, limit: 2 });
            queries.push(Query::Bucket { bucket, after: Some(Generation(3)), limit: 1000 });
            let middle = self.model.rows.first().map(|row| row.1.order());
            for after in [Some((Moment::ZERO, None)), middle].into_iter().flatten() {
                let (queue, floor) = (self.queue(), Generation(self.random.below(3) * 20));
                queries.push(Query::Sorted { bucket, queue, floor, after, limit: 3 });
            }
        }
        let rows = self.store.snapshot().expect("a snapshot is taken");
        let mut rows: Vec<_> = rows.map(|row| row.expect("a row is read")).collect();
        rows.sort_by_key(|row| row.1.generation());
        let mut model = self.model.rows.clone();
        model.sort_by_key(|row| row.1.generation());
        assert_eq!(rows, model, "a snapshot");
        for query in queries {
            let loaded = self.store.load(&query).expect("a load succeeds");
            assert_eq!(loaded, self.model.load(&query), "{query:?}");
        }
    }
}

impl Model {
    fn apply(&mut self, op: &Op) {
        let remove = |rows: &mut Vec<(Place, Record)>, generation| {
            rows.retain(|row| row.1.generation() != generation);
        };
        match op {
            Op::Put { to, record, .. } => {
                remove(&mut self.rows, record.generation());
                self.rows.push((*to, record.clone()));
            }
            Op::Remove { record, .. } => remove(&mut self.rows, record.generation()),
            Op::Count { queue, cell, delta } => {
                let before = self
                    .cells
                    .iter()
                    .find(|one| one.0 == *queue && one.1 == *cell)
                    .map_or(0, |one| one.2);
                self.cells.retain(|one| one.0 != *queue || one.1 != *cell);
                self.cells.push((
                    queue.clone(),
                    *cell,
                    before.checked_add_signed(*delta).expect("not below zero"),
                ));
                self.cells.retain(|one| one.2 > 0);
            }
            Op::Queue { name, row } => {
                self.queues.retain(|one| one.0 != *name);
                self.queues.push((name.clone(), row.clone()));
            }
            Op::Clear(queue) => self.cells.retain(|one| one.0 != *queue),
            Op::Forget(queue) => self.queues.retain(|one| one.0 != *queue),
            Op::Drop(_) => {}
            Op::Shard(row) => self.shard = *row,
        }
    }

    fn head(&self, epoch: u64) -> Head {
        let mut buckets: Vec<(Bucket, Filling)> = Vec::new();
        for (place, record) in &self.rows {
            let Place::Bucket(bucket) = *place else { continue };
            let nth = buckets.iter().position(|one| one.0 == bucket).unwrap_or_else(|| {
                buckets.push((bucket, Filling::default()));
                buckets.len() - 1
            });
            buckets[nth].1.count += 1;
            buckets[nth].1.bytes += record.size();
        }
        buckets.sort_by_key(|one| one.0);
        let until = |row: &(Place, Record)| {
            if let Place::Remembered(until) = row.0 { Some(until) } else { None }
        };
        let forget = self.rows.iter().filter_map(until).min();
        Head { epoch, shard: self.shard, queues: self.queues.clone(), buckets, forget }
    }

    fn load(&self, query: &Query) -> Loaded {
        let (wanted, limit): (Wanted<'_>, usize) = match query {
            Query::Keys(keys) => {
                let is = |row: &Record, name: &(QueueName, Key)| {
                    row.spec.queue == name.0 && row.spec.key == name.1
                };
                let find = |name| self.rows.iter().find(|row| is(&row.1, name)).cloned();
                return Loaded::Found(keys.iter().map(find).collect());
            }
            Query::Cells { queue, from, to } => {
                let wanted = |one: &&(QueueName, Cell, u64)| {
                    one.0 == *queue && (*from..*to).contains(&one.1.start)
                };
                let mut cells: Vec<_> =
                    self.cells.iter().filter(wanted).map(|one| (one.1, one.2)).collect();
                cells.sort();
                return Loaded::Cells(cells);
            }
            Query::Bucket { bucket, after, limit } => (
                Box::new(|at, row| {
                    *at == Place::Bucket(*bucket) && Some(row.generation()) > *after
                }),
                *limit,
            ),
            Query::Out { after, limit } | Query::Remembered { after, limit } => {
                let is_out = matches!(query, Query::Out { .. });
                let place: fn(Moment) -> Place =
                    if is_out { Place::Out } else { Place::Remembered };
                let order = |row: &Record| (row.next_attempt, row.generation());
                let wanted = move |at: &Place, row: &Record| {
                    *at == place(row.next_attempt) && Some(order(row)) > *after
                };
                (Box::new(wanted), *limit)
            }
            Query::Waiting { queue, lane, from, limit } => {
                let wanted = |at: &Place, row: &Record| {
                    matches!(*at, Place::Waiting(of, at) if of == *lane && (at, row.generation()) >= *from)
                        && row.spec.queue == *queue
                };
                (Box::new(wanted), *limit)
            }
            Query::Dead { queue, after, limit } => {
                let wanted = |at: &Place, row: &Record| {
                    matches!(*at, Place::Dead(at) if Some((at, row.generation())) > *after)
                        && row.spec.queue == *queue
                };
                (Box::new(wanted), *limit)
            }
            Query::Prefix { queue, prefix, after, limit } => {
                let wanted = |row: &&(Place, Record)| {
                    let spec = &row.1.spec;
                    spec.queue == *queue
                        && spec.key.as_str().starts_with(prefix)
                        && Some(&spec.key) > after.as_ref()
                        && spec.key.home(spec.generation.0).is_none()
                };
                return self.ordered(wanted, |row| row.spec.key.clone(), *limit);
            }
            Query::Sorted { bucket, queue, floor, after, limit } => {
                let wanted = |(at, row): &&(Place, Record)| {
                    *at == Place::Bucket(*bucket)
                        && row.spec.queue == *queue
                        && row.generation() >= *floor
                        && row.order() > *after
                };
                return self.ordered(wanted, Record::order, *limit);
            }
        };
        let mut rows: Vec<_> =
            self.rows.iter().filter(|row| wanted(&row.0, &row.1)).cloned().collect();
        // The places in one answer differ only in their moment.
        rows.sort_by_key(|row| (row.0, row.1.generation()));
        rows.truncate(limit);
        Loaded::Rows(rows)
    }
}

impl Model {
    fn ordered<K: Ord>(
        &self,
        wanted: impl Fn(&&(Place, Record)) -> bool,
        order: impl Fn(&Record) -> K,
        limit: usize,
    ) -> Loaded {
        let mut rows: Vec<_> = self.rows.iter().filter(wanted).cloned().collect();
        rows.sort_by_key(|row| order(&row.1));
        rows.truncate(limit);
        Loaded::Rows(rows)
    }
}

/// Selects the rows that answer a query.
type Wanted<'a> = Box<dyn Fn(&Place, &Record) -> bool + 'a>;

fn webhook() -> Arc<Webhook> {
    let headers = vec![("x".into(), Secret::new("y"))];
    Arc::new(Webhook { url: "http://h/".into(), headers, timeout: Span::from_secs(1) })
}

fn chosen_key(n: u64) -> Key {
    Key::new(&format!("k{n}")).expect("a key")
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::{MemoryStore, Survival};
    use crate::store::{Op, ShardRow, Store, StoreError};

    #[test]
    fn the_store_in_memory_conforms() {
        super::run(MemoryStore::new, |mut store| {
            store.crash(|| Survival::Lost);
            store
        });
    }

    #[test]
    fn a_crash_keeps_what_was_synced_and_a_prefix_of_the_rest() {
        let row = |n| {
            Op::Shard(ShardRow { next_generation: super::Generation(n), ..ShardRow::default() })
        };
        let whole = [Survival::Whole, Survival::Whole, Survival::Whole];
        let torn = [Survival::Whole, Survival::Torn, Survival::Whole];
        let lost = [Survival::Lost, Survival::Whole, Survival::Whole];
        for (fates, left) in [(whole, 4), (torn, 2), (lost, 1)] {
            let mut store = MemoryStore::new();
            let epoch = store.open().unwrap().epoch;
            store.commit(epoch, &[row(1)]).unwrap();
            (2..=4).for_each(|n| store.write(epoch, &[row(n)]).unwrap());
            let mut fates = fates.into_iter();
            store.crash(|| fates.next().unwrap());
            assert_eq!(store.commit(epoch, &[row(9)]), Err(StoreError::Poisoned));
            assert_eq!(store.open().unwrap().shard.next_generation.0, left);
        }
    }
}
