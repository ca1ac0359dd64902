//! The store on disk: one file of redb in a directory of its own, one table for each bucket.
//!
//! # What it does with the law of [`store`](crate::store)
//! - A small commit is durable in the log (`log.rs`) after one flush, and then made in redb. A large one, and one for
//!   which the log has no room, is a transaction of redb with two flushes. With quick-repair, opening after a crash
//!   reads the log, and no timers.
//! - A bucket is appended in the order of generations. To remove a row appends a marker; what removed rows take is
//!   given back a piece with each commit (`sweep.rs`), and a bucket is dropped whole.
//! - A file most of which is unused is copied into a new one, a piece with each commit (`compact.rs`): the room goes
//!   back to the disk while the store is in use. When nothing else is to be done, both go on by themselves
//!   ([`tidy`](Store::tidy)).
//! - An index entry exists only for chosen keys. A timer is looked for where its first due moment says, and in
//!   `places` if it has left that (`table.rs`).
//! - Every value has a checksum of our own, because redb does not verify what it reads. What cannot be read is named;
//!   the rest goes on. A panic of redb is damage, too.
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

mod changes;
mod check;
mod compact;
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

use redb::{Database, Durability, ReadableDatabase};

use crate::codec::ShardState;
use crate::store::{Damage, Head, Loaded, Op, Query, Snapshot, Store, StoreError};
use changes::Changes;
pub use check::{Report, check, repair};
use compact::Copy;
use error::{Fault, Outcome, contain, discard};
use lock::Lock;
pub use log::LOG_FILE;
use log::Log;
use order::Order;
use read::Reader;
use view::View;
use waste::Look;
use write::Writer;

/// The name of the file in the directory.
pub const FILE: &str = "timers.redb";
/// The version of the layout of the tables. Another one is refused: a newer one is not known, and the ones before
/// were never published.
pub const FORMAT: u64 = 4;

/// A [`Store`] in a directory.
pub struct DiskStore {
    directory: PathBuf,
    cache: usize,
    /// Held from the first opening on, also while the store is poisoned.
    lock: Option<Lock>,
    opened: Option<Opened>,
}

/// A database that is open and has not failed.
struct Opened {
    directory: PathBuf,
    cache: usize,
    database: Database,
    log: Log,
    /// Shared with the snapshots of this file.
    held: Arc<()>,
    /// Files that were replaced by the one after, until the last snapshot of them has gone.
    replaced: Vec<(Database, Arc<()>)>,
    state: ShardState,
    view: View,
    order: Option<Order>,
    copy: Option<Copy>,
    look: Look,
}

impl DiskStore {
    /// A store in that directory, which [`open`](Store::open) makes if it is not there. Nothing is read yet.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        DiskStore {
            directory: directory.as_ref().to_path_buf(),
            cache: 64 << 20,
            lock: None,
            opened: None,
        }
    }

    /// Sets how many bytes of the file are kept in memory; 64 MiB if it is not called.
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

    /// Ends a piece of work: after a failure the store is poisoned.
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
        // What cannot be flushed is in the log.
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
        let (database, log, head, view) = file::open(&self.directory, self.cache)?;
        let state = ShardState { epoch: head.epoch, row: head.shard };
        self.opened = Some(Opened {
            directory: self.directory.clone(),
            cache: self.cache,
            database,
            log,
            held: Arc::default(),
            replaced: Vec::new(),
            state,
            view,
            order: None,
            copy: None,
            look: Look::default(),
        });
        // The epoch is durable before anything is done in it. The log takes nothing before this commit.
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
        let outcome = contain(|| Ok(opened.database.begin_read()?));
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
        // Every commit does a piece; this one nothing else. A counter that is wrong must not keep it going for ever.
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
        let mut transaction = self.database.begin_write()?;
        let Opened { database, state, view, order, .. } = self;
        let mut writer = Writer::new(&transaction, database, view, state, order);
        for op in ops {
            writer.apply(op)?;
        }
        self.log.row.commit += 1;
        let changes = writer.finish(self.log.row, self.copy.is_none())?;
        self.close_replaced();
        if self.log.takes(&changes) {
            // Before redb shows it to a reader.
            self.log.append(&changes)?;
            transaction.set_durability(Durability::None).map_err(redb::Error::from)?;
            transaction.commit()?;
        } else {
            transaction.set_quick_repair(true);
            transaction.commit()?;
            self.log.begin();
        }
        self.compact(&changes)
    }

    /// Copies the next piece, or begins a copy if the file has much to give. A copy that fails is none of the
    /// commit's business, which is durable; but after an `Err` nobody knows which file is the store.
    fn compact(&mut self, changes: &Changes) -> Outcome {
        let copied = contain(|| match &mut self.copy {
            Some(copy) => copy.step(&self.database, changes),
            None => {
                self.look.changed(changes.count as u64);
                let Opened { directory, view, database, .. } = self;
                if self.look.is_wanted(directory, view, database)? {
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
            // In the tests of this crate it has no reason to.
            Err(fault) if cfg!(test) => return Err(fault),
            Err(_) => false,
        };
        match self.copy.take() {
            Some(copy) if renamed => self.replaced(copy.into_database()),
            copy => {
                self.look.failed();
                copy.into_iter().for_each(Copy::abandon);
            }
        }
        Ok(())
    }

    /// The new file is the store.
    fn replaced(&mut self, new: Database) {
        let old = std::mem::replace(&mut self.database, new);
        self.replaced.push((old, std::mem::take(&mut self.held)));
        self.log.begin();
        let Opened { directory, view, database, .. } = self;
        // An estimate that cannot be made is found out when the next one is needed.
        let _ = contain(|| self.look.done(directory, view, database));
    }

    /// Closes files that were replaced, if no snapshot reads them.
    fn close_replaced(&mut self) {
        let of = std::mem::take(&mut self.replaced).into_iter();
        let (kept, free): (Vec<_>, Vec<_>) = of.partition(|(_, held)| Arc::strong_count(held) > 1);
        self.replaced = kept;
        if !free.is_empty() {
            // To free the blocks of a large file takes a while. Without a thread it is done here.
            let thread = std::thread::Builder::new().name("tourbillon-free".into());
            drop(thread.spawn(move || discard(free)));
        }
    }

    fn load(&mut self, query: &Query) -> Outcome<Loaded> {
        let transaction = self.database.begin_read()?;
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
