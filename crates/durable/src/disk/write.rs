//! Writing: the changes of a commit in one redb transaction. The caller commits; nothing here is durable.
//!
//! A change specifies the place of its row. If the row is not there, the transaction is abandoned: the shard and the
//! store disagree, and continuing would lose a timer. A bucket is not read for this; only its count is checked.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use redb::{Database, ReadableDatabase, ReadableTable, Table, WriteTransaction};

use super::changes::Changes;
use super::error::{Fault, Outcome};
use super::order::Order;
use super::read::name_of_day;
use super::table::{
    self, Numbered, Small, bucket_key, bucket_name, day_key, index_key, is_home, marks_name,
    queue_key, small_row,
};
use super::view::{Held, View, open_rows};
use crate::bucket::{Bucket, Cell, Level, floor};
use crate::codec::{DayCells, Home, LogRow, Marks, Row, ShardState, decode, encode, encode_into};
use crate::record::{Generation, Place, Record};
use crate::store::{Damage, Op};
use crate::values::{Key, Moment, QueueName};

/// Maximum number of markers in one list. Appending to a list costs little, because its page is rewritten in any case.
const LONGEST_LIST: usize = if cfg!(test) { 3 } else { 256 };

type PlainTable<'t> = Table<'t, &'static [u8], &'static [u8]>;
type RowTable<'t> = Table<'t, u64, &'static [u8]>;

/// One transaction.
pub(super) struct Writer<'t, 'v> {
    pub(super) transaction: &'t WriteTransaction,
    database: &'t Database,
    small: [Option<PlainTable<'t>>; Small::ALL.len()],
    pub(super) rows: BTreeMap<Bucket, (String, RowTable<'t>)>,
    pub(super) view: &'v mut View,
    state: &'v mut ShardState,
    order: &'v mut Option<Order>,
    /// Every change of a table.
    pub(super) changes: Changes,
    /// Markers of this transaction.
    marks: BTreeMap<Bucket, Vec<(Generation, bool)>>,
    /// Changed day counters by row key, and in `day` the day changed last.
    days: BTreeMap<Vec<u8>, DayCells>,
    day: Option<(QueueName, u64, DayCells)>,
    /// Buffer for the value encoded last.
    value: Vec<u8>,
    /// Buckets whose row in `head` changes.
    pub(super) changed: BTreeSet<Bucket>,
}

impl<'t, 'v> Writer<'t, 'v> {
    pub(super) fn new(
        transaction: &'t WriteTransaction,
        database: &'t Database,
        view: &'v mut View,
        state: &'v mut ShardState,
        order: &'v mut Option<Order>,
    ) -> Self {
        Writer {
            transaction,
            database,
            small: Default::default(),
            rows: BTreeMap::new(),
            view,
            state,
            order,
            changes: Changes::new(),
            marks: BTreeMap::new(),
            days: BTreeMap::new(),
            day: None,
            value: Vec::with_capacity(512),
            changed: BTreeSet::new(),
        }
    }

    pub(super) fn apply(&mut self, op: &Op) -> Outcome {
        match op {
            Op::Put { from: None, to, record } => self.make(*to, record),
            Op::Put { from: Some(from), to, record } => self.change(*from, *to, record),
            Op::Remove { from, record } => self.remove(*from, record),
            Op::Count { queue, cell, delta } => self.count(queue, *cell, *delta),
            Op::Queue { name, row } => self.put(Small::Head, &queue_key(name), row).map(drop),
            Op::Clear(queue) => self.clear(queue),
            Op::Forget(queue) => self.erase(Small::Head, &queue_key(queue)).map(drop),
            Op::Drop(bucket) => self.drop_bucket(*bucket),
            Op::Shard(row) => {
                self.state.row = *row;
                Ok(())
            }
        }
    }

    /// Completes the transaction: writes markers, day counters, bucket rows, the shard, and the number of this commit.
    ///
    /// Returns every change of a table.
    pub(super) fn finish(mut self, log: LogRow, sweeps: bool) -> Outcome<Changes> {
        // Sweeps before the markers of this transaction are written, because the sweep reads them in memory.
        if sweeps {
            self.sweep()?;
        }
        for (bucket, marks) in std::mem::take(&mut self.marks) {
            self.append_marks(bucket, marks)?;
        }
        self.write_days()?;
        for bucket in std::mem::take(&mut self.changed) {
            let key = bucket_key(bucket);
            match self.view.buckets.get(&bucket).map(|held| held.row) {
                Some(row) => drop(self.put(Small::Head, &key, &row)?),
                None => drop(self.erase(Small::Head, &key)?),
            }
        }
        let state = *self.state;
        self.put(Small::Head, table::SHARD, &state)?;
        self.put(Small::Head, table::LOG, &log)?;
        Ok(self.changes)
    }

    fn make(&mut self, to: Place, record: &Record) -> Outcome {
        let (spec, generation) = (&record.spec, record.generation());
        let home = match spec.key.home(generation.0) {
            Some(home) => home,
            None => {
                let home = Home { generation, moment: record.next_attempt };
                let name = index_key(&spec.queue, spec.key.as_str());
                if self.put(Small::Keys, &name, &home)? {
                    let name = format!("key {} of {}", spec.key, spec.queue);
                    return Err(astray(&name, "new, but is there already"));
                }
                home.moment
            }
        };
        self.insert(None, to, record)?;
        if !is_home(to, home) {
            self.put(Small::Places, &generation.0.to_be_bytes(), &to)?;
        }
        Ok(())
    }

    fn change(&mut self, from: Place, to: Place, record: &Record) -> Outcome {
        let (spec, generation) = (&record.spec, record.generation());
        let number = generation.0.to_be_bytes();
        let assigned = spec.key.home(generation.0);
        if from != to {
            self.take(from, record)?;
        }
        self.insert(Some(from), to, record)?;
        let home = match (to, assigned) {
            (_, Some(home)) => Some(home),
            (Place::Bucket(_) | Place::Waiting(..) | Place::Out(_), None) => {
                let home = self.home(&spec.queue, &spec.key, generation)?;
                if home.is_none() {
                    // The index entry was lost: writes a new one, whose home is where the timer goes.
                    let home = Home { generation, moment: record.next_attempt };
                    self.put(Small::Keys, &index_key(&spec.queue, spec.key.as_str()), &home)?;
                }
                home.or(Some(record.next_attempt))
            }
            // These places are never a home.
            (Place::Dead(_) | Place::Remembered(_), None) => None,
        };
        if !is_home(to, home.unwrap_or_default()) {
            self.put(Small::Places, &number, &to)?;
        } else if !home.is_some_and(|home| is_home(from, home)) {
            self.erase(Small::Places, &number)?;
        }
        Ok(())
    }

    fn remove(&mut self, from: Place, record: &Record) -> Outcome {
        let (spec, generation) = (&record.spec, record.generation());
        self.take(from, record)?;
        let home = match spec.key.home(generation.0) {
            Some(home) => Some(home),
            None => self.unlist(&spec.queue, &spec.key, generation)?,
        };
        if !home.is_some_and(|home| is_home(from, home)) {
            self.erase(Small::Places, &generation.0.to_be_bytes())?;
        }
        Ok(())
    }

    /// Removes a timer from the index. Returns its home.
    fn unlist(
        &mut self,
        queue: &QueueName,
        key: &Key,
        generation: Generation,
    ) -> Outcome<Option<Moment>> {
        let name = index_key(queue, key.as_str());
        self.changes.remove(Small::Keys.name(), &name);
        let read = {
            let value = self.table(Small::Keys)?.remove(&name[..])?;
            read_home(&name, value.as_ref().map(|value| value.value()))
        };
        self.own_home((queue, key, generation), read)
    }

    /// The home of an indexed timer.
    fn home(
        &mut self,
        queue: &QueueName,
        key: &Key,
        generation: Generation,
    ) -> Outcome<Option<Moment>> {
        let name = index_key(queue, key.as_str());
        let read = {
            let value = self.table(Small::Keys)?.get(&name[..])?;
            read_home(&name, value.as_ref().map(|value| value.value()))
        };
        self.own_home((queue, key, generation), read)
    }

    /// The home of a timer by its index entry; `None` if the entry is lost. A lost entry is reported and does not fail
    /// the commit: the shard has the row, so it knows the timer of the key.
    fn own_home(
        &mut self,
        (queue, key, generation): (&QueueName, &Key, Generation),
        read: Result<Home, String>,
    ) -> Outcome<Option<Moment>> {
        let row = || format!("key {key} of {queue}");
        match read {
            Ok(home) if home.generation != generation => {
                Err(astray(&row(), &format!("generation {}", home.generation.0)))
            }
            Ok(home) => Ok(Some(home.moment)),
            Err(wrong) => {
                self.lost("the index of keys", row(), wrong);
                Ok(None)
            }
        }
    }

    /// Reports damage that does not prevent the commit.
    fn lost(&mut self, table: &str, row: String, wrong: String) {
        let (table, row) = (table.into(), Some(row));
        self.view.damage.insert(Damage { table, row, wrong });
    }

    /// Writes a row that is new, comes from another place, or stays in place.
    fn insert(&mut self, from: Option<Place>, to: Place, record: &Record) -> Outcome {
        let generation = record.generation();
        let Place::Bucket(bucket) = to else {
            if let Some((small, key)) = small_row(to, &record.spec.queue, generation) {
                self.put(small, &key, record)?;
            }
            return Ok(());
        };
        let mut value = std::mem::take(&mut self.value);
        let (name, rows) = rows(self.transaction, &mut self.rows, bucket)?;
        let key = generation.0.to_be_bytes();
        encode_into(&mut value, name, &key, record);
        let there = rows.insert(generation.0, &value[..])?.is_some();
        self.changes.put(name, &key, &value);
        self.value = value;
        if let Some(order) = self.order {
            order.put(bucket, record);
        }
        if from == Some(to) {
            return Ok(());
        }
        // A timer that was in this bucket before may still have its marker and its row.
        if from.is_some() && self.may_be_removed(bucket, generation)? {
            self.mark(bucket, generation, false);
            self.held(bucket).row.removed -= u64::from(there);
        }
        let filling = &mut self.held(bucket).row.filling;
        filling.count += 1;
        filling.bytes += record.size();
        Ok(())
    }

    /// Removes a row from its place. A row of a bucket is only marked; the bucket is not read.
    fn take(&mut self, from: Place, record: &Record) -> Outcome {
        let (queue, generation) = (&record.spec.queue, record.generation());
        let name = || format!("generation {} of {queue}", generation.0);
        let Place::Bucket(bucket) = from else {
            let Some((small, key)) = small_row(from, queue, generation) else { return Ok(()) };
            let there = self.erase(small, &key)?;
            return if there { Ok(()) } else { Err(astray(&name(), &format!("not {from:?}"))) };
        };
        self.mark(bucket, generation, true);
        let row = &mut self.held(bucket).row;
        let Some(count) = row.filling.count.checked_sub(1) else {
            return Err(astray(&name(), "in a bucket that counts no rows"));
        };
        row.filling.count = count;
        row.filling.bytes = row.filling.bytes.saturating_sub(record.size());
        row.removed += 1;
        Ok(())
    }

    fn mark(&mut self, bucket: Bucket, generation: Generation, removed: bool) {
        self.marks.entry(bucket).or_default().push((generation, removed));
        if let Some(set) = &mut self.held(bucket).removed {
            set.set(generation, removed);
        }
    }

    /// Whether a row has a marker, or may have one because the markers cannot be read.
    fn may_be_removed(&mut self, bucket: Bucket, generation: Generation) -> Outcome<bool> {
        let readable = self.load_removed(bucket)?;
        let removed = &self.held(bucket).removed;
        Ok(!readable || removed.as_ref().is_some_and(|removed| removed.contains(generation)))
    }

    /// Loads the removed rows of a bucket, including those of this transaction. Returns whether they can be read.
    /// Unreadable markers are reported and do not fail the commit.
    pub(super) fn load_removed(&mut self, bucket: Bucket) -> Outcome<bool> {
        let held = self.held(bucket);
        if held.removed.is_some() || held.unreadable {
            return Ok(!held.unreadable);
        }
        let database = self.database;
        let open = |name: &str| open_rows(&database.begin_read()?, name);
        match self.view.removed(bucket, open) {
            Ok(removed) => {
                for &(generation, is) in self.marks.get(&bucket).into_iter().flatten() {
                    removed.set(generation, is);
                }
                Ok(true)
            }
            Err(Fault::Damaged(damage)) => {
                self.view.damage.insert(damage);
                self.held(bucket).unreadable = true;
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    /// The number of markers that this transaction appends.
    pub(super) fn marked(&self) -> usize {
        self.marks.values().map(Vec::len).sum()
    }

    /// Forgets the markers of this transaction for a bucket that is dropped.
    pub(super) fn forget_marks(&mut self, bucket: Bucket) {
        self.marks.remove(&bucket);
    }

    /// Appends markers to the last list of a bucket, or starts the next list.
    fn append_marks(&mut self, bucket: Bucket, marks: Vec<(Generation, bool)>) -> Outcome {
        let Some(held) = self.view.buckets.get_mut(&bucket) else { return Ok(()) };
        if held.tail.0.is_empty() || held.tail.0.len() + marks.len() > LONGEST_LIST {
            held.tail = Marks(marks);
            held.row.next_marks += 1;
        } else {
            held.tail.0.extend(marks);
        }
        let (name, number) = (marks_name(bucket), held.row.next_marks - 1);
        let value = encode(&name, &number.to_be_bytes(), &held.tail);
        let mut table = self.transaction.open_table(Numbered::new(&name))?;
        table.insert(number, &value[..])?;
        self.changes.put(&name, &number.to_be_bytes(), &value);
        self.changed.insert(bucket);
        Ok(())
    }

    /// Adds to a counter. The shard groups the cells of a day; the row of each day is written once, at the end.
    fn count(&mut self, queue: &QueueName, cell: Cell, delta: i64) -> Outcome {
        let day = floor(cell.start, Level::Day.width());
        if !self.day.as_ref().is_some_and(|(of, at, _)| *at == day && of == queue) {
            self.leave_day();
            let Some(cells) = self.read_day(queue, day)? else { return Ok(()) };
            self.day = Some((queue.clone(), day, cells));
        }
        let Some((_, _, cells)) = &mut self.day else { return Ok(()) };
        let minute = ((cell.start - day) / Level::Minute.width()) as usize;
        let counter = match cell.width == Level::Day.width() {
            true => &mut cells.day,
            false => &mut cells.minutes[minute],
        };
        *counter = counter
            .checked_add_signed(delta)
            .ok_or_else(|| astray(&name_of_day(queue, day), "counted below zero"))?;
        Ok(())
    }

    /// Removes the counters of a queue: one row for each day that has any.
    fn clear(&mut self, queue: &QueueName) -> Outcome {
        let first = table::of_queue(queue);
        self.leave_day();
        self.days.retain(|key, _| !key.starts_with(&first));
        self.view.days.retain(|key, _| !key.starts_with(&first));
        let mut end = first.clone();
        // A queue's prefix ends with a zero byte. With a one instead, it is the end of the queue's keys.
        end.pop();
        end.push(1);
        let mut keys = Vec::new();
        for day in self.table(Small::Cells)?.range(&first[..]..&end[..])? {
            keys.push(day?.0.value().to_vec());
        }
        for key in keys {
            self.erase(Small::Cells, &key)?;
        }
        Ok(())
    }

    fn leave_day(&mut self) {
        if let Some((queue, day, cells)) = self.day.take() {
            self.days.insert(day_key(&queue, day), cells);
        }
    }

    /// The counters of a day: from this transaction, the cache, or the table. `None` if they cannot be read; they stay
    /// unchanged until a repair recounts them.
    fn read_day(&mut self, queue: &QueueName, day: u64) -> Outcome<Option<DayCells>> {
        let key = day_key(queue, day);
        if let Some(cells) = self.days.remove(&key).or_else(|| self.view.days.remove(&key)) {
            return Ok(Some(cells));
        }
        let read = match self.table(Small::Cells)?.get(&key[..])? {
            None => return Ok(Some(DayCells::default())),
            Some(value) => decode(Small::Cells.name(), &key, value.value()),
        };
        if let Err(wrong) = &read {
            self.lost("the forecast", name_of_day(queue, day), wrong.to_string());
        }
        Ok(read.ok())
    }

    fn write_days(&mut self) -> Outcome {
        self.leave_day();
        for (key, cells) in std::mem::take(&mut self.days) {
            if cells.is_empty() {
                self.erase(Small::Cells, &key)?;
            } else {
                self.put(Small::Cells, &key, &cells)?;
                self.view.keep_day(key, cells);
            }
        }
        Ok(())
    }

    /// Writes a row of a small table. Returns whether one was there.
    fn put(&mut self, small: Small, key: &[u8], row: &impl Row) -> Outcome<bool> {
        let mut value = std::mem::take(&mut self.value);
        encode_into(&mut value, small.name(), key, row);
        let there = self.table(small)?.insert(key, &value[..])?.is_some();
        self.changes.put(small.name(), key, &value);
        self.value = value;
        Ok(there)
    }

    /// Removes a row of a small table. Returns whether one was there.
    fn erase(&mut self, small: Small, key: &[u8]) -> Outcome<bool> {
        self.changes.remove(small.name(), key);
        Ok(self.table(small)?.remove(key)?.is_some())
    }

    fn table(&mut self, small: Small) -> Outcome<&mut PlainTable<'t>> {
        let slot = &mut self.small[small as usize];
        Ok(match slot {
            Some(table) => table,
            None => slot.insert(self.transaction.open_table(small.definition())?),
        })
    }

    /// The table of a bucket, and its name.
    pub(super) fn rows(&mut self, bucket: Bucket) -> Outcome<&mut (String, RowTable<'t>)> {
        rows(self.transaction, &mut self.rows, bucket)
    }

    /// The bucket in memory. Marks it as changed, so that its row is written at the end.
    pub(super) fn held(&mut self, bucket: Bucket) -> &mut Held {
        self.changed.insert(bucket);
        self.view.buckets.entry(bucket).or_default()
    }
}

/// The table of a bucket and its name, opened once.
fn rows<'a, 't>(
    transaction: &'t WriteTransaction,
    opened: &'a mut BTreeMap<Bucket, (String, RowTable<'t>)>,
    bucket: Bucket,
) -> Outcome<&'a mut (String, RowTable<'t>)> {
    Ok(match opened.entry(bucket) {
        Entry::Occupied(there) => there.into_mut(),
        Entry::Vacant(vacant) => {
            let name = bucket_name(bucket);
            let table = transaction.open_table(Numbered::new(&name))?;
            vacant.insert((name, table))
        }
    })
}

/// Decodes an index entry.
fn read_home(name: &[u8], value: Option<&[u8]>) -> Result<Home, String> {
    let value = value.ok_or("it is not there")?;
    decode(Small::Keys.name(), name, value).map_err(|wrong| wrong.to_string())
}

/// A change that contradicts the store.
fn astray(what: &str, is: &str) -> Fault {
    Fault::Failed(format!("a change does not fit the store: {what} is {is}"))
}
