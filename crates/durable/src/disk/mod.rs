//! The store on disk: one redb file in its own directory, with one table per bucket.
//!
//! # How it implements the rules of [`store`](crate::store)
//! - A small commit is durable in the log (`log.rs`) after one flush. It is then applied to redb, whose file is flushed
//!   in the background (`behind.rs`). A large commit is a redb transaction with two flushes. With quick-repair, opening
//!   after a crash reads the log but no table of timers.
//! - A bucket is append-only, in the order of generations. Removing a row appends a marker; each commit reclaims a
//!   bounded part of the removed rows (`sweep.rs`), and a bucket is dropped whole.
//! - A file that is mostly unused is copied into a new one, a bounded part with each commit (`compact.rs`). The space
//!   returns to the disk while the store is in use. An idle runtime continues both, sweeping and copying
//!   ([`tidy`](Store::tidy)).
//! - Only chosen keys have an index entry. A timer is looked up by its home, its first due moment, and in `places` if
//!   it is no longer there (`table.rs`).
//! - Every value has its own checksum, because redb does not verify what it reads. Unreadable rows are reported, and
//!   the rest stays usable. A panic of redb also counts as damage.
//! - After a failed write, sync or read the store refuses everything until [`open`](Store::open), which may be called
//!   on the same value.
//!
//! ```
//! use tourbillon_durable::disk::DiskStore;
//! use tourbillon_durable::store::Store;
//! # let directory = std::env::temp_dir().join(format!("tourbillon-doc-{}", std::process::id()));
//! let mut store = DiskStore::new(&directory);
//! let head = store.open()?;
//! assert!(head.queues.is_empty());
//! # drop(store);
//! # std::fs::remove_dir_all(directory).unwrap();
//! # Ok::<(), tourbillon_durable::store::StoreError>(())
//! ```

mod behind;
mod changes;
mod check;
mod compact;
#[cfg(test)]
mod crash;
mod device;
mod error;
mod file;
mod least;
mod lock;
mod log;
mod marks;
mod order;
mod overlay;
mod read;
mod snapshot;
mod sweep;
mod table;
mod view;
mod waste;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Durability, ReadableDatabase};

use crate::codec::ShardState;
use crate::store::{Damage, Head, Loaded, Op, Query, Snapshot, Store, StoreError};
use behind::Tables;
use changes::Changes;
pub use check::{Report, check, repair};
use compact::Copy;
use error::{Fault, Outcome, contain, discard};
use lock::Lock;
pub use log::LOG_FILE;
use log::{Log, Room};
use order::Order;
use read::Reader;
use view::View;
use waste::Look;
use write::Writer;

/// The name of the file in the directory.
pub const FILE: &str = "timers.redb";
/// The version of the table layout.
///
/// Any other version is refused: newer ones are unknown, and older ones were never published.
pub const FORMAT: u64 = 4;

/// A [`Store`] in a directory.
pub struct DiskStore {
    directory: PathBuf,
    cache: usize,
    /// Held from the first open on, even while the store is poisoned.
    lock: Option<Lock>,
    opened: Option<Opened>,
}

/// A database that is open and has not failed.
struct Opened {
    directory: PathBuf,
    cache: usize,
    tables: Tables,
    log: Log,
    /// Shared with the snapshots of this file.
    held: Arc<()>,
    /// Files replaced by compaction, kept until their last snapshot is dropped.
    replaced: Vec<(Tables, Arc<()>)>,
    state: ShardState,
    view: View,
    order: Option<Order>,
    copy: Option<Copy>,
    look: Look,
}

impl DiskStore {
    /// A store in that directory, which [`open`](Store::open) creates if it does not exist. Nothing is read yet.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        DiskStore {
            directory: directory.as_ref().to_path_buf(),
            cache: 64 << 20,
            lock: None,
            opened: None,
        }
    }

    /// Sets how many bytes of the file are cached in memory. The default is 64 MiB.
    pub fn cache(mut self, bytes: usize) -> Self {
        self.cache = bytes;
        self
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes redb's file durable, so that it is the whole store without its log.
    fn flush(&mut self) -> Result<(), StoreError> {
        let opened = self.opened()?;
        if !opened.log.is_used() {
            return Ok(());
        }
        opened.log.end();
        let epoch = opened.state.epoch;
        self.commit(epoch, &[])
    }

    fn opened(&mut self) -> Result<&mut Opened, StoreError> {
        self.opened.as_mut().ok_or(StoreError::Poisoned)
    }

    /// Ends an operation. Poisons the store after a failure, and after damage found by a write.
    fn end<T>(&mut self, outcome: Outcome<T>, wrote: bool) -> Result<T, StoreError> {
        match outcome {
            Ok(done) => Ok(done),
            Err(Fault::Damaged(damage)) if !wrote => {
                if let Some(opened) = &mut self.opened {
                    opened.view.damage.insert(damage.clone());
                }
                Err(StoreError::Damaged(damage))
            }
            Err(fault) => {
                self.close();
                Err(StoreError::Failed(match fault {
                    Fault::Failed(why) => why,
                    Fault::Damaged(damage) => damage.to_string(),
                }))
            }
        }
    }

    fn close(&mut self) {
        let mut opened = self.opened.take();
        if let Some(copy) = opened.as_mut().and_then(|opened| opened.copy.take()) {
            copy.abandon();
        }
        discard(opened);
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        // After a failed flush the log still has every commit.
        let _ = self.flush();
        self.close();
    }
}

impl Store for DiskStore {
    fn open(&mut self) -> Result<Head, StoreError> {
        self.close();
        if self.lock.is_none() {
            self.lock = Some(Lock::take(&self.directory)?);
        }
        let (tables, log, head, view) = file::open(&self.directory, self.cache)?;
        let state = ShardState { epoch: head.epoch, row: head.shard };
        self.opened = Some(Opened {
            directory: self.directory.clone(),
            cache: self.cache,
            tables,
            log,
            held: Arc::default(),
            replaced: Vec::new(),
            state,
            view,
            order: None,
            copy: None,
            look: Look::default(),
        });
        // The epoch is durable before any commit uses it. This commit goes to redb directly, not to the log.
        self.commit(head.epoch, &[])?;
        Ok(head)
    }

    fn commit(&mut self, epoch: u64, ops: &[Op]) -> Result<(), StoreError> {
        let opened = self.opened()?;
        if epoch != opened.state.epoch {
            return Err(StoreError::Fenced);
        }
        let outcome = contain(|| opened.commit(ops));
        self.end(outcome, true)
    }

    fn load(&mut self, query: &Query) -> Result<Loaded, StoreError> {
        let opened = self.opened()?;
        let outcome = contain(|| opened.load(query));
        self.end(outcome, false)
    }

    fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        let opened = self.opened()?;
        let outcome = contain(|| Ok(opened.tables.database.begin_read()?));
        let (view, held) = (opened.view.clone(), opened.held.clone());
        let mut rows = snapshot::Rows::new(self.end(outcome, false)?, view);
        rows.held = Some(held);
        Ok(Box::new(rows))
    }

    fn tidy(&mut self) -> Result<bool, StoreError> {
        let opened = self.opened()?;
        let begun = opened.copy.is_some() || opened.view.to_sweep().is_some();
        if !begun && !opened.look.at_once() {
            return Ok(false);
        }
        // Every commit does a bounded part; an empty commit does nothing else. A wrong counter must not cause an
        // endless loop.
        let (epoch, removed) = (opened.state.epoch, opened.view.removed_rows());
        self.commit(epoch, &[])?;
        let Opened { copy, view, .. } = self.opened()?;
        let sweeps = view.to_sweep().is_some_and(|(_, held)| held.sweep.is_some());
        Ok(copy.is_some() || sweeps || view.removed_rows() < removed)
    }

    fn damage(&self) -> Vec<Damage> {
        let opened = self.opened.iter();
        opened.flat_map(|opened| opened.view.damage.iter().cloned()).collect()
    }
}

impl Opened {
    fn commit(&mut self, ops: &[Op]) -> Outcome {
        // Reports a background failure now, not when the log is full.
        self.tables.behind.check()?;
        let Opened { tables, state, view, order, .. } = self;
        let mut transaction = tables.database.begin_write()?;
        let mut writer = Writer::new(&transaction, &tables.database, view, state, order);
        for op in ops {
            writer.apply(op)?;
        }
        self.log.row.commit += 1;
        let changes = writer.finish(self.log.row, self.copy.is_none())?;
        self.close_replaced();
        // A record in the log is durable before redb shows its commit to a reader.
        match self.log.room(&changes) {
            Room::Here => {
                self.log.append(&changes)?;
                transaction.set_durability(Durability::None).map_err(redb::Error::from)?;
                transaction.commit()?;
            }
            Room::Other => {
                let written = self.log.written;
                let durable = || self.tables.behind.wait(written);
                planted!("disk.half-not-waited-for", Ok(()), durable())?;
                self.log.turn();
                self.log.append(&changes)?;
                transaction.set_quick_repair(true);
                transaction.commit()?;
                self.log.written = self.tables.behind.ticket();
            }
            Room::None => {
                transaction.set_quick_repair(true);
                transaction.commit()?;
                let durable = || self.tables.behind.drain();
                planted!("disk.large-not-waited-for", Ok(()), durable())?;
                self.log.begin();
            }
        }
        self.compact(&changes)
    }

    /// Copies the next part, or begins a copy if the file has enough unused space. A failed copy does not fail the
    /// commit, which is already durable. After an `Err` it is unknown which file is the store.
    fn compact(&mut self, changes: &Changes) -> Outcome {
        let copied = contain(|| match &mut self.copy {
            Some(copy) => copy.step(&self.tables.database, changes),
            None => {
                self.look.changed(changes.count as u64);
                let Opened { directory, view, tables, .. } = self;
                if self.look.is_wanted(directory, view, &tables.database)? {
                    self.copy = Some(Copy::begin(directory, self.cache)?);
                }
                Ok(false)
            }
        });
        let renamed = match copied {
            Ok(false) => return Ok(()),
            Ok(true) => {
                self.copy.as_ref().map_or(Ok(false), |copy| copy.rename(&self.directory))?
            }
            // In this crate's tests a copy has no reason to fail.
            Err(fault) if cfg!(test) => return Err(fault),
            Err(_) => false,
        };
        match self.copy.take() {
            Some(copy) if renamed => self.replaced(copy.into_tables()),
            copy => {
                self.look.failed();
                copy.into_iter().for_each(Copy::abandon);
            }
        }
        Ok(())
    }

    /// Makes the new file the store.
    fn replaced(&mut self, new: Tables) {
        let old = std::mem::replace(&mut self.tables, new);
        self.replaced.push((old, std::mem::take(&mut self.held)));
        self.log.begin();
        let Opened { directory, view, tables, .. } = self;
        // If the estimate fails now, the next look reports the error.
        let _ = contain(|| self.look.done(directory, view, &tables.database));
    }

    /// Closes replaced files that no snapshot reads.
    fn close_replaced(&mut self) {
        let of = std::mem::take(&mut self.replaced).into_iter();
        let (kept, free): (Vec<_>, Vec<_>) = of.partition(|(_, held)| Arc::strong_count(held) > 1);
        self.replaced = kept;
        if !free.is_empty() {
            // Freeing the blocks of a large file takes a while, so a thread does it, or this thread if none can be
            // started.
            let thread = std::thread::Builder::new().name("tourbillon-free".into());
            drop(thread.spawn(move || discard(free)));
        }
    }

    fn load(&mut self, query: &Query) -> Outcome<Loaded> {
        let transaction = self.tables.database.begin_read()?;
        let mut reader = Reader::new(&transaction, &mut self.view);
        if let Query::Sorted { bucket, queue, floor, after, limit } = query
            && let Some(rows) =
                reader.sorted(&mut self.order, (*bucket, queue, *floor), after, *limit)?
        {
            return Ok(Loaded::Rows(rows));
        }
        reader.load(query)
    }
}

#[cfg(test)]
mod tests;
