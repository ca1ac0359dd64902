//! Checking every page, row and counter of a closed store, and repairing it by copying the readable rows.
//!
//! A check changes nothing: redb works on an overlay of the file. A repair writes a new file and keeps the old one
//! beside it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use redb::{
    Builder, Database, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata,
};

use super::device::sync_names;
use super::error::{self, Fault, Outcome, contain};
use super::file::read_head;
use super::lock::Lock;
use super::log;
use super::marks::Removed;
use super::overlay::Overlay;
use super::read::{Reader, name_of_key};
use super::snapshot::Rows;
use super::table::{self, Small, describe};
use super::view::{View, open_rows};
use super::{DiskStore, FILE, LOG_FILE};
use crate::bucket::{Bucket, Cell, Level};
use crate::codec::{DayCells, Home, decode};
use crate::import::Import;
use crate::record::{Generation, Lane, Place, Record};
use crate::store::{Damage, Filling, Head, QueueRow, Store, StoreError};
use crate::values::{Key, QueueName};

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Readable timers, including dead and remembered ones.
    pub timers: u64,
    /// What is wrong; empty if nothing is.
    pub damage: Vec<Damage>,
    /// Where a repair keeps the damaged file.
    pub set_aside: Option<PathBuf>,
}

/// Verifies the store of a directory. Calls `progress` with the timers read so far, every 100 000 timers and at the
/// end.
///
/// # Errors
/// There is no store, another process holds it, or it cannot be opened at all.
pub fn check(directory: &Path, mut progress: impl FnMut(u64)) -> Result<Report, StoreError> {
    let path = existing(directory)?;
    let _lock = Lock::take(directory)?;
    let mut found = Report::default();
    found.damage.extend(integrity(&path)?);
    let mut checker = Checker::open(&path)?;
    checker.read(&mut |_, _| Ok(()), &mut progress)?;
    checker.compare();
    found.timers = checker.timers;
    found.damage.extend(checker.damage);
    Ok(found)
}

/// Verifies the store and, if anything is wrong, copies every readable timer into a new file.
///
/// The old file is kept as `timers.redb.damaged`, its log as `timers.log.damaged`. Counters are recomputed; unreadable
/// queue settings become the default.
///
/// # Errors
/// As [`check`]. Also fails if the new file cannot be written; the old one is then unchanged.
pub fn repair(directory: &Path, mut progress: impl FnMut(u64)) -> Result<Report, StoreError> {
    let mut report = check(directory, &mut progress)?;
    if report.damage.is_empty() {
        return Ok(report);
    }
    let path = existing(directory)?;
    let _lock = Lock::take(directory)?;
    let written = |error| error::io(directory, "written", &error);
    let (beside, aside) = (directory.join("repaired"), directory.join(format!("{FILE}.damaged")));
    if beside.exists() {
        fs::remove_dir_all(&beside).map_err(written)?;
    }
    let mut checker = Checker::open(&path)?;
    let head = checker.head.clone();
    let mut store = DiskStore::new(&beside);
    let epoch = store.open()?.epoch;
    let mut import = Import::new(&mut store, epoch, head.shard.wall);
    import.used(head.shard.next_generation);
    import.name(head.shard.name);
    let living = head.queues.iter().filter(|(_, row)| !row.deleted);
    living.for_each(|(name, row)| import.queue(name, row.settings.clone()));
    checker.read(&mut |place, record| import.add(place, record.clone()), &mut progress)?;
    report.timers = checker.timers;
    import.finish()?;
    // The flush makes the new file complete without its log, which is not moved.
    store.flush()?;
    drop(store);
    // A file with the name of the store exists at every moment: without one, an open would make a new store.
    let _ = fs::remove_file(&aside);
    fs::hard_link(&path, &aside).or_else(|_| fs::copy(&path, &aside).map(drop)).map_err(written)?;
    fs::rename(beside.join(FILE), &path).map_err(written)?;
    // The old log does not belong to the new file, which ignores it.
    let log = log_of(&path);
    if log.exists() {
        fs::rename(&log, log.with_file_name(format!("{LOG_FILE}.damaged"))).map_err(written)?;
    }
    sync_names(directory).map_err(written)?;
    fs::remove_dir_all(&beside).map_err(written)?;
    report.set_aside = Some(aside);
    Ok(report)
}

fn existing(directory: &Path) -> Result<PathBuf, StoreError> {
    let path = directory.join(FILE);
    if path.is_file() {
        return Ok(path);
    }
    let why = format!("{} holds no store: there is no {FILE} in it", directory.display());
    Err(StoreError::Refused(why))
}

fn open(path: &Path) -> Result<Database, StoreError> {
    let overlay = Overlay::new(path).map_err(|error| error::io(path, "read", &error))?;
    match contain(|| Ok(Builder::new().create_with_backend(overlay))) {
        Ok(Ok(database)) => Ok(database),
        Ok(Err(error)) => Err(error::open(path, error)),
        Err(Fault::Failed(wrong)) => Err(error::damaged(path, &wrong)),
        Err(Fault::Damaged(damage)) => Err(error::damaged(path, &damage.to_string())),
    }
}

/// The log beside a file.
fn log_of(path: &Path) -> PathBuf {
    path.with_file_name(LOG_FILE)
}

/// Applies the log to the overlay. Includes records after a damaged one, because they were acknowledged.
fn replay(path: &Path, database: &Database) -> Outcome<Option<Damage>> {
    if read_head(&database.begin_read()?)?.0.is_err() {
        return Ok(None);
    }
    let read = log::read(path.parent().unwrap_or(path), log::row(database)?);
    let (commits, damage) = read.map_err(|error| Fault::Failed(error.to_string()))?;
    log::replay(database, &commits)?;
    Ok(damage)
}

/// Verifies the pages with redb's own checksums.
fn integrity(path: &Path) -> Result<Option<Damage>, StoreError> {
    if path.metadata().is_ok_and(|metadata| metadata.len() == 0) {
        return Err(error::damaged(path, "it is empty"));
    }
    let mut database = open(path)?;
    let verified = contain(|| {
        let sound = database.check_integrity()?;
        let wrong = "the checksum of a page does not fit";
        if sound { Ok(()) } else { Err(Fault::damage("the file's pages", None, wrong)) }
    });
    // redb may panic again when it closes a file it found damaged.
    let _ = contain(|| {
        drop(database);
        Ok(())
    });
    Ok(match verified {
        Ok(()) => None,
        Err(Fault::Damaged(damage)) => Some(damage),
        Err(Fault::Failed(wrong)) => {
            Some(Damage { table: "the file's pages".into(), row: None, wrong })
        }
    })
}

/// Called with each sound row.
type Each<'a> = dyn FnMut(Place, &Record) -> Result<(), StoreError> + 'a;

/// One pass over a store, with its own counts.
struct Checker {
    transaction: ReadTransaction,
    view: View,
    head: Head,
    damage: BTreeSet<Damage>,
    timers: u64,
    seen: Removed,
    fillings: BTreeMap<Bucket, Filling>,
    queues: BTreeMap<QueueName, QueueRow>,
    cells: BTreeMap<QueueName, BTreeMap<Cell, u64>>,
    /// Timers with a chosen key.
    named: HashMap<(QueueName, Key), Generation>,
    _database: Database,
}

impl Checker {
    fn open(path: &Path) -> Result<Self, StoreError> {
        let database = open(path)?;
        let logged = contain(|| replay(path, &database));
        let read = contain(|| {
            let transaction = database.begin_read()?;
            let (head, mut view) = read_head(&transaction)?;
            for handle in transaction.list_tables()? {
                use redb::TableHandle;
                if let Some(bucket) = table::bucket_of(handle.name()) {
                    let held = view.buckets.entry(bucket).or_default();
                    // The bucket's row in `head` may be lost: whether a table of markers exists shows whether it has
                    // markers.
                    held.row.next_marks = held.row.next_marks.max(1);
                }
            }
            // Lost markers are recorded as damage before the first row is read.
            view.lenient = true;
            let buckets: Vec<Bucket> = view.buckets.keys().copied().collect();
            for bucket in buckets {
                view.removed(bucket, |name| open_rows(&transaction, name))?;
            }
            Ok((transaction, head, view))
        });
        let (transaction, head, mut view) = read.map_err(|fault| match fault {
            Fault::Failed(wrong) => error::damaged(path, &wrong),
            Fault::Damaged(damage) => error::damaged(path, &damage.to_string()),
        })?;
        let head = head.map_err(|format| error::newer(path, format))?;
        match logged {
            Ok(damage) => view.damage.extend(damage),
            Err(Fault::Damaged(damage)) => drop(view.damage.insert(damage)),
            Err(Fault::Failed(wrong)) => return Err(error::damaged(&log_of(path), &wrong)),
        }
        Ok(Checker {
            transaction,
            damage: std::mem::take(&mut view.damage),
            view,
            head,
            timers: 0,
            seen: Removed::default(),
            fillings: BTreeMap::new(),
            queues: BTreeMap::new(),
            cells: BTreeMap::new(),
            named: HashMap::new(),
            _database: database,
        })
    }

    /// Reads every row; calls `each` with those that are sound and not discarded.
    fn read(
        &mut self,
        each: &mut Each<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), StoreError> {
        // A second transaction on the same state, because `Rows` owns its transaction.
        self.head.queues.sort_by(|one, other| one.0.cmp(&other.0));
        let transaction = contain(|| Ok(self._database.begin_read()?));
        let transaction = transaction.map_err(|_| StoreError::Poisoned)?;
        for row in Rows::new(transaction, self.view.clone()) {
            let (place, record) = match row {
                Ok(row) => row,
                Err(StoreError::Damaged(damage)) => {
                    self.damage.insert(damage);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if self.is_sound(place, &record) {
                if self.count(place, &record) {
                    each(place, &record)?;
                }
                if self.timers.is_multiple_of(100_000) {
                    progress(self.timers);
                }
            }
        }
        progress(self.timers);
        Ok(())
    }

    /// Whether this is the only row of its timer and of its key.
    fn is_sound(&mut self, place: Place, record: &Record) -> bool {
        let (spec, generation) = (&record.spec, record.generation());
        let what = format!("generation {} of {}", generation.0, spec.queue);
        if self.seen.contains(generation) {
            self.found(table_of(place), Some(what), "the timer has another row");
            return false;
        }
        if spec.key.home(generation.0).is_none() {
            // A removed row whose marker was lost is recognised by the index: it has no entry for the key, or an entry
            // for a later timer.
            let (lost, at) = (&self.view.lost_marks, self.indexed(&spec.queue, &spec.key));
            let doubtful = matches!(place, Place::Bucket(bucket) if lost.contains(&bucket));
            if doubtful && at != Some(generation) {
                return false;
            }
            let name = (spec.queue.clone(), spec.key.clone());
            if self.named.insert(name, generation).is_some() {
                self.found(table_of(place), Some(what), "its key has another timer");
                return false;
            }
            if at != Some(generation) {
                self.found(table_of(place), Some(what), "its key is not in the index");
            }
        }
        self.seen.set(generation, true);
        true
    }

    /// The generation that the index has for a key.
    fn indexed(&self, queue: &QueueName, key: &Key) -> Option<Generation> {
        let name = table::index_key(queue, key.as_str());
        let value = contain(|| {
            let table = self.transaction.open_table(Small::Keys.definition())?;
            let value = table.get(&name[..])?;
            Ok(value
                .and_then(|value| decode::<Home>(Small::Keys.name(), &name, value.value()).ok()))
        });
        value.ok().flatten().map(|home| home.generation)
    }

    /// Counts a row. Returns whether it is a timer rather than a discarded row.
    fn count(&mut self, place: Place, record: &Record) -> bool {
        if let Place::Bucket(bucket) = place {
            let filling = self.fillings.entry(bucket).or_default();
            filling.count += 1;
            filling.bytes += record.size();
        }
        let name = &record.spec.queue;
        let queue = self.queues.entry(name.clone()).or_default();
        let stored = self.head.queues.binary_search_by(|(of, _)| of.cmp(name));
        if stored.is_ok_and(|nth| record.generation() < self.head.queues[nth].1.floor) {
            queue.discarded += 1;
            return false;
        }
        self.timers += 1;
        let cell = match place {
            Place::Bucket(bucket) => {
                queue.pending += 1;
                Some(Cell::of(bucket.level(), record.next_attempt))
            }
            Place::Waiting(lane, at) => {
                queue.pending += 1;
                queue.waiting += 1;
                queue.waiting_push += u64::from(lane == Lane::Push);
                queue.watched += u64::from(record.is_watched());
                Some(Cell::of(Level::Hour, at))
            }
            Place::Out(_) => {
                queue.out += 1;
                None
            }
            Place::Dead(_) => {
                queue.dead += 1;
                None
            }
            Place::Remembered(_) => {
                queue.remembered += 1;
                None
            }
        };
        if let Some(cell) = cell {
            *self.cells.entry(record.spec.queue.clone()).or_default().entry(cell).or_default() += 1;
        }
        true
    }

    fn found(&mut self, table: String, row: Option<String>, wrong: &str) {
        self.damage.insert(Damage { table, row, wrong: wrong.into() });
    }

    /// Compares the counted rows with the stored counters, and the index with the rows.
    fn compare(&mut self) {
        for (bucket, stored) in self.head.buckets.clone() {
            let counted = self.fillings.remove(&bucket).unwrap_or_default();
            if stored.count != counted.count {
                let wrong = format!("it counts {} timers and has {}", stored.count, counted.count);
                self.found(describe(bucket), None, &wrong);
            }
        }
        for bucket in std::mem::take(&mut self.fillings).into_keys() {
            self.found(describe(bucket), None, "it has timers, and no row in the head");
        }
        for (name, stored) in self.head.queues.clone() {
            let mut counted = self.queues.remove(&name).unwrap_or_default();
            counted.settings = stored.settings.clone();
            (counted.floor, counted.deleted) = (stored.floor, stored.deleted);
            if counted != stored {
                let of = |row: &QueueRow| {
                    let QueueRow { pending, waiting, waiting_push, watched, out, dead, .. } = row;
                    let QueueRow { remembered, discarded, .. } = row;
                    let waiting = format!("{waiting}/{waiting_push}/{watched}");
                    format!("{pending}/{waiting}/{out}/{dead}/{remembered}/{discarded}")
                };
                let counts = "pending/waiting/push/watched/out/dead/remembered/discarded";
                let wrong =
                    format!("it counts {} rows ({counts}) and has {}", of(&stored), of(&counted));
                self.found("head".into(), Some(format!("queue {name}")), &wrong);
            }
        }
        for name in std::mem::take(&mut self.queues).into_keys() {
            self.found("head".into(), Some(format!("queue {name}")), "it has timers, and no row");
        }
        if let Err(Fault::Damaged(damage)) = contain(|| self.compare_tables()) {
            self.damage.insert(damage);
        }
    }

    fn compare_tables(&mut self) -> Outcome {
        let cells = self.transaction.open_table(Small::Cells.definition())?;
        let mut stored: BTreeMap<QueueName, BTreeMap<Cell, u64>> = BTreeMap::new();
        for row in ReadableTable::iter(&cells)? {
            let (key, value) = row?;
            let key = key.value();
            let name =
                key.split(|&byte| byte == 0).next().and_then(|name| str::from_utf8(name).ok());
            let queue = name.and_then(|name| QueueName::new(name).ok());
            let (Some(queue), Some(day)) = (queue, table::day_of_key(key)) else {
                self.found("the forecast".into(), Some(name_of_key(key)), "no day of a queue");
                continue;
            };
            match decode::<DayCells>(Small::Cells.name(), key, value.value()) {
                Ok(counters) => {
                    stored.entry(queue).or_default().extend(table::cells_of(day, &counters));
                }
                Err(wrong) => {
                    let row = Some(super::read::name_of_day(&queue, day));
                    self.found("the forecast".into(), row, &wrong.to_string());
                }
            }
        }
        let counted = std::mem::take(&mut self.cells);
        let queues: Vec<QueueName> = stored.keys().chain(counted.keys()).cloned().collect();
        for queue in queues {
            if stored.get(&queue) != counted.get(&queue) {
                let row = Some(queue.to_string());
                self.found("the forecast".into(), row, "its counters do not fit the timers");
            }
        }
        let keys = self.transaction.open_table(Small::Keys.definition())?.len()?;
        if keys != self.named.len() as u64 {
            let wrong = format!("it has {keys} keys for {} timers", self.named.len());
            self.found("the index of keys".into(), None, &wrong);
        }
        self.find_named();
        Ok(())
    }

    /// Verifies that every chosen key leads to its timer.
    fn find_named(&mut self) {
        for ((queue, key), generation) in std::mem::take(&mut self.named) {
            let mut reader = Reader::new(&self.transaction, &mut self.view);
            let found = contain(|| reader.find(&queue, &key));
            if !matches!(&found, Ok(Some((_, row))) if row.generation() == generation) {
                let row = Some(format!("key {key} of {queue}"));
                self.found("the index of keys".into(), row, "it does not lead to its timer");
            }
        }
    }
}

fn table_of(place: Place) -> String {
    match place {
        Place::Bucket(bucket) => describe(bucket),
        Place::Waiting(lane, _) => Small::waiting(lane).name().into(),
        Place::Out(_) => Small::Out.name().into(),
        Place::Dead(_) => Small::Dead.name().into(),
        Place::Remembered(_) => Small::Remembered.name().into(),
    }
}
