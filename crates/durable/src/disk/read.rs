//! Reading: pages of rows, rows by key, counters. Every value is verified; unreadable rows are skipped and reported.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;

use redb::{ReadTransaction, TableError};

use super::error::{Fault, Outcome, contain};
use super::least::Least;
use super::table::{self, Small, bucket_name, describe, index_key, place_of_key, small_row};
use super::view::{Rows, View, open_rows};
use crate::bucket::{Bucket, Level, floor};
use crate::codec::{DayCells, DecodeError, Home, decode};
use crate::record::{Generation, Lane, Place, Record};
use crate::store::{Damage, Loaded, Query};
use crate::values::{Key, Moment, QueueName};

/// A table that is not a bucket.
type Table = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Called with each row of a bucket.
type Each<'a> = dyn FnMut(&str, Generation, &[u8]) -> Result<ControlFlow<()>, DecodeError> + 'a;

/// A reader of one state of the tables.
pub(super) struct Reader<'v> {
    transaction: &'v ReadTransaction,
    pub(super) view: &'v mut View,
    /// The tables opened so far, so that a query for a thousand keys opens each table once.
    small: [OnceCell<Option<Table>>; Small::ALL.len()],
    buckets: BTreeMap<Bucket, Option<Rows>>,
}

impl<'v> Reader<'v> {
    pub(super) fn new(transaction: &'v ReadTransaction, view: &'v mut View) -> Self {
        Reader { transaction, view, small: Default::default(), buckets: BTreeMap::new() }
    }

    /// Answers a query. [`Query::Sorted`] is answered here only if the bucket is too large for `Order`.
    pub(super) fn load(&mut self, query: &Query) -> Outcome<Loaded> {
        let from = |after: &Option<Generation>| after.map_or(0, |after| after.0.saturating_add(1));
        Ok(Loaded::Rows(match query {
            Query::Keys(keys) => {
                let found = keys.iter().map(|(queue, key)| self.find(queue, key));
                return Ok(Loaded::Found(found.collect::<Outcome<_>>()?));
            }
            Query::Cells { queue, from, to } => return self.cells(queue, *from, *to),
            Query::Bucket { bucket, after, limit } => self.page(*bucket, from(after), *limit)?,
            Query::Waiting { queue, lane, from, limit } => {
                let key = table::moment_key(queue, from.0, from.1);
                self.range(Small::waiting(*lane), &key, &table::of_queue(queue), *limit)?
            }
            Query::Out { after, limit } => {
                let last = after.map(|(at, generation)| table::number_key(at, generation));
                let begin = last.map(successor).unwrap_or_default();
                self.range(Small::Out, &begin, &[], *limit)?
            }
            Query::Dead { queue, after, limit } => {
                let of_queue = table::of_queue(queue);
                let begin = after.map_or(of_queue.clone(), |(at, generation)| {
                    successor(table::moment_key(queue, at, generation))
                });
                self.range(Small::Dead, &begin, &of_queue, *limit)?
            }
            Query::Remembered { after, limit } => {
                let last = after.map(|(until, generation)| table::number_key(until, generation));
                let begin = last.map(successor).unwrap_or_default();
                self.range(Small::Remembered, &begin, &[], *limit)?
            }
            Query::Prefix { queue, prefix, after, limit } => {
                self.prefix(queue, prefix, after.as_ref(), *limit)?
            }
            Query::Sorted { bucket, queue, floor, after, limit } => {
                let wanted = |row: &Record| row.spec.queue == *queue && row.order() > *after;
                let mut least = Least::new(*limit);
                self.scan(*bucket, floor.0, &mut |row| {
                    if wanted(&row) {
                        least.push(row.order(), (Place::Bucket(*bucket), row));
                    }
                    ControlFlow::Continue(())
                })?;
                least.into_rows()
            }
        }))
    }

    /// The row of a key.
    pub(super) fn find(
        &mut self,
        queue: &QueueName,
        key: &Key,
    ) -> Outcome<Option<(Place, Record)>> {
        // A timer loaded from a dump may have a key that looks assigned; such a key is in the index.
        if let Some((generation, _)) = key.parts()
            && let Some(home) = key.home(generation)
        {
            let found = self.probe(queue, Generation(generation), home)?;
            if let Some((place, row)) = found
                && row.spec.queue == *queue
                && row.spec.key == *key
            {
                return Ok(Some((place, row)));
            }
        }
        let Some(index) = self.table(Small::Keys)? else { return Ok(None) };
        let name = index_key(queue, key.as_str());
        let Some(value) = index.get(&name[..])? else { return Ok(None) };
        let row = || format!("key {key} of {queue}");
        let home: Home = decode(Small::Keys.name(), &name, value.value())
            .map_err(|wrong| Fault::value("the index of keys", row(), &wrong))?;
        match self.probe(queue, home.generation, home.moment)? {
            Some(found) => Ok(Some(found)),
            None => Err(Fault::damage("the index of keys", Some(row()), "its timer is nowhere")),
        }
    }

    /// The row of a timer, by its home.
    fn probe(
        &mut self,
        queue: &QueueName,
        generation: Generation,
        home: Moment,
    ) -> Outcome<Option<(Place, Record)>> {
        let number = generation.0.to_be_bytes();
        if let Some(places) = self.table(Small::Places)?
            && let Some(value) = places.get(&number[..])?
        {
            let row = format!("generation {}", generation.0);
            let place: Place = decode(Small::Places.name(), &number, value.value())
                .map_err(|wrong| Fault::value("the table of places", row, &wrong))?;
            return self.at(place, queue, generation);
        }
        let buckets = self.view.around(home);
        let places = [Place::Out(home)].into_iter().chain(buckets.into_iter().map(Place::Bucket));
        let waiting = Lane::ALL.map(|lane| Place::Waiting(lane, home));
        let mut lost = None;
        for place in places.chain(waiting) {
            match self.at(place, queue, generation) {
                Ok(None) => {}
                // An unreadable bucket must not stop the search of the other places.
                Err(Fault::Damaged(damage)) => lost = Some(damage),
                found => return found,
            }
        }
        lost.map_or(Ok(None), |damage| Err(Fault::Damaged(damage)))
    }

    /// The row in a place.
    pub(super) fn at(
        &mut self,
        place: Place,
        queue: &QueueName,
        generation: Generation,
    ) -> Outcome<Option<(Place, Record)>> {
        let row = || format!("generation {}", generation.0);
        let record = match place {
            Place::Bucket(bucket) => {
                if !self.view.buckets.contains_key(&bucket)
                    || self.is_removed(bucket, generation)?
                {
                    return Ok(None);
                }
                let Some(rows) = self.rows(bucket)? else { return Ok(None) };
                let Some(value) = rows.get(generation.0)? else { return Ok(None) };
                decode(&bucket_name(bucket), &generation.0.to_be_bytes(), value.value())
                    .map_err(|wrong| Fault::value(describe(bucket), row(), &wrong))?
            }
            place => {
                let Some((small, key)) = small_row(place, queue, generation) else {
                    return Ok(None);
                };
                let Some(table) = self.table(small)? else { return Ok(None) };
                let Some(value) = table.get(&key[..])? else { return Ok(None) };
                decode(small.name(), &key, value.value())
                    .map_err(|wrong| Fault::value(small.name(), row(), &wrong))?
            }
        };
        Ok(Some((place, record)))
    }

    fn is_removed(&mut self, bucket: Bucket, generation: Generation) -> Outcome<bool> {
        let transaction = self.transaction;
        let removed = self.view.removed(bucket, |name| open_rows(transaction, name))?;
        Ok(removed.contains(generation))
    }

    /// Rows of a bucket, by generation.
    pub(super) fn page(
        &mut self,
        bucket: Bucket,
        from: u64,
        limit: usize,
    ) -> Outcome<Vec<(Place, Record)>> {
        let mut rows = Vec::new();
        if limit > 0 && self.view.buckets.contains_key(&bucket) {
            self.scan(bucket, from, &mut |row| {
                rows.push((Place::Bucket(bucket), row));
                if rows.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        Ok(rows)
    }

    /// Calls `each` with the living rows of a bucket at or after a generation, in order. Continues after unreadable
    /// pages.
    pub(super) fn scan(
        &mut self,
        bucket: Bucket,
        from: u64,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Outcome {
        self.scan_values(bucket, from, &mut |table, generation, value| {
            Ok(each(decode(table, &generation.0.to_be_bytes(), value)?))
        })
    }

    /// As `scan`, with the table's name, the generation and the raw value.
    pub(super) fn scan_values(
        &mut self,
        bucket: Bucket,
        from: u64,
        each: &mut Each<'_>,
    ) -> Outcome {
        if !self.view.buckets.contains_key(&bucket) {
            return Ok(());
        }
        self.is_removed(bucket, Generation(from))?;
        let mut next = from;
        loop {
            match contain(|| self.scan_healthy(bucket, &mut next, each)) {
                Ok(()) => return Ok(()),
                Err(Fault::Failed(why)) => return Err(Fault::Failed(why)),
                Err(Fault::Damaged(damage)) => {
                    let row = Some(format!("from generation {next} on"));
                    let table = describe(bucket);
                    self.view.damage.insert(Damage { table, row, wrong: damage.wrong });
                }
            }
            match self.behind(bucket, next) {
                Some(behind) => next = behind,
                None => return Ok(()),
            }
        }
    }

    /// Scans up to the first damage. Sets `next` to the generation after the last row read.
    fn scan_healthy(&mut self, bucket: Bucket, next: &mut u64, each: &mut Each<'_>) -> Outcome {
        if self.rows(bucket)?.is_none() {
            return Ok(());
        }
        let Some(Some(table)) = self.buckets.get(&bucket) else { return Ok(()) };
        let (name, View { buckets, damage, .. }) = (bucket_name(bucket), &mut *self.view);
        let removed = buckets.get(&bucket).and_then(|held| held.removed.as_ref());
        for row in table.range(*next..)? {
            let (generation, value) = row?;
            let generation = Generation(generation.value());
            // Never decreases: a damaged page may yield its rows in any order, and the scan would not end.
            let behind = generation.0.saturating_add(1).max(*next);
            if removed.is_some_and(|removed| removed.contains(generation)) {
                *next = behind;
                continue;
            }
            let read = each(&name, generation, value.value());
            // The checksum covers the key, so the generation of an unreadable row may be wrong, too.
            if read.is_ok() {
                *next = behind;
            }
            match read {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(wrong) => {
                    let row = Some(format!("generation {}", generation.0));
                    damage.insert(Damage {
                        table: describe(bucket),
                        row,
                        wrong: wrong.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    /// The first readable generation after a damaged page, by exponential search, then bisection.
    fn behind(&mut self, bucket: Bucket, from: u64) -> Option<u64> {
        let mut readable = |start: u64| {
            let first = contain(|| {
                let Some(table) = self.rows(bucket)? else { return Ok(None) };
                let first = table.range(start..)?.next().transpose()?;
                Ok(first.map(|(generation, _)| generation.value()))
            });
            first.ok()
        };
        let step = (0..40).find(|step| readable(from.saturating_add(1 << step)).is_some())?;
        let (mut bad, mut good) = (from, from.saturating_add(1 << step));
        while good - bad > 1 {
            let middle = bad + (good - bad) / 2;
            if readable(middle).is_some() { good = middle } else { bad = middle }
        }
        readable(good).flatten()
    }

    /// Rows of a small table at or after `from`, while their keys start with `prefix`.
    pub(super) fn range(
        &mut self,
        small: Small,
        from: &[u8],
        prefix: &[u8],
        limit: usize,
    ) -> Outcome<Vec<(Place, Record)>> {
        let mut rows = Vec::new();
        let Some(table) = self.table(small)? else { return Ok(rows) };
        for row in table.range(from..)? {
            let (key, value) = row?;
            let (key, value) = (key.value(), value.value());
            if rows.len() >= limit || !key.starts_with(prefix) {
                break;
            }
            match (place_of_key(small, key), decode::<Record>(small.name(), key, value)) {
                (Some(place), Ok(record)) => rows.push((place, record)),
                (place, record) => {
                    let wrong = record.err().map(|wrong| wrong.to_string());
                    let wrong = wrong.unwrap_or_else(|| format!("its key is no place: {place:?}"));
                    let (table, row) = (small.name().into(), Some(name_of_key(key)));
                    self.view.damage.insert(Damage { table, row, wrong });
                }
            }
        }
        Ok(rows)
    }

    fn cells(&mut self, queue: &QueueName, from: u64, to: u64) -> Outcome<Loaded> {
        let mut cells = Vec::new();
        let Some(table) = self.table(Small::Cells)? else { return Ok(Loaded::Cells(cells)) };
        let begin = table::day_key(queue, floor(from, Level::Day.width()));
        let end = table::day_key(queue, to);
        if begin >= end {
            return Ok(Loaded::Cells(cells));
        }
        for row in table.range(&begin[..]..&end[..])? {
            let (key, value) = row?;
            let (key, value) = (key.value(), value.value());
            let day = table::day_of_key(key).unwrap_or_default();
            let counters = decode::<DayCells>(Small::Cells.name(), key, value)
                .map_err(|wrong| Fault::value("the forecast", name_of_day(queue, day), &wrong))?;
            let within = table::cells_of(day, &counters);
            cells.extend(within.filter(|(cell, _)| (from..to).contains(&cell.start)));
        }
        Ok(Loaded::Cells(cells))
    }

    /// Rows whose key is in the index, by key.
    fn prefix(
        &mut self,
        queue: &QueueName,
        prefix: &str,
        after: Option<&Key>,
        limit: usize,
    ) -> Outcome<Vec<(Place, Record)>> {
        let (mut rows, all) = (Vec::new(), index_key(queue, prefix));
        let after = after.map(|after| successor(index_key(queue, after.as_str())));
        let mut begin = after.into_iter().chain([all.clone()]).max().unwrap_or_default();
        while rows.len() < limit {
            let names = self.names(&begin, &all, limit - rows.len())?;
            let Some(last) = names.last() else { break };
            begin = successor(last.clone());
            for name in names {
                let key = str::from_utf8(&name[table::of_queue(queue).len()..]).ok();
                let Some(key) = key.and_then(|key| Key::new(key).ok()) else { continue };
                match self.find(queue, &key) {
                    Ok(found) => rows.extend(found),
                    Err(Fault::Damaged(damage)) => drop(self.view.damage.insert(damage)),
                    Err(fault) => return Err(fault),
                }
            }
        }
        Ok(rows)
    }

    /// Index entries at or after `from`, while they start with `prefix`.
    fn names(&self, from: &[u8], prefix: &[u8], limit: usize) -> Outcome<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        let Some(index) = self.table(Small::Keys)? else { return Ok(names) };
        for row in index.range(from..)?.take(limit) {
            let (name, _) = row?;
            if !name.value().starts_with(prefix) {
                break;
            }
            names.push(name.value().to_vec());
        }
        Ok(names)
    }

    fn rows(&mut self, bucket: Bucket) -> Outcome<Option<&Rows>> {
        Ok(match self.buckets.entry(bucket) {
            Entry::Occupied(there) => there.into_mut().as_ref(),
            Entry::Vacant(vacant) => {
                vacant.insert(open_rows(self.transaction, &bucket_name(bucket))?).as_ref()
            }
        })
    }

    fn table(&self, small: Small) -> Outcome<Option<&Table>> {
        let cell = &self.small[small as usize];
        if let Some(table) = cell.get() {
            return Ok(table.as_ref());
        }
        let table = match self.transaction.open_table(small.definition()) {
            Ok(table) => Some(table),
            Err(TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(cell.get_or_init(|| table).as_ref())
    }
}

/// The first key after that one.
fn successor(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// Names the counters of a day, for messages.
pub(super) fn name_of_day(queue: &QueueName, day: u64) -> String {
    format!("{queue} on {}", Moment::from_millis(day))
}

/// Names a key, for messages: its text, and its last number.
pub(super) fn name_of_key(key: &[u8]) -> String {
    let text: Vec<u8> = key.iter().copied().take_while(|&byte| byte != 0).collect();
    let number = key.split_last_chunk::<8>().map(|(_, last)| u64::from_be_bytes(*last));
    match (str::from_utf8(&text), number) {
        (Ok(text), Some(number)) if !text.is_empty() => format!("{text}, generation {number}"),
        (_, Some(number)) => format!("generation {number}"),
        _ => format!("key {key:02x?}"),
    }
}
