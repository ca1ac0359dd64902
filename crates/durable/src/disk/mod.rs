//! The store on disk: one file of redb in a directory of its own, one table for each bucket.
//!
//! # What it does with the law of [`store`](crate::store)
//! - A commit is one transaction of redb: two flushes to the disk, then it is durable. With quick-repair, opening
//!   after a crash reads no timers.
//! - A bucket is appended in the order of generations. To remove a row appends a marker; what removed rows take is
//!   given back a piece with each commit (`sweep.rs`), and a bucket is dropped whole.
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

mod check;
mod error;
mod file;
mod least;
mod lock;
mod marks;
mod order;
mod overlay;
mod read;
mod snapshot;
mod sweep;
mod table;
mod view;
mod write;

use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase};

use crate::codec::ShardState;
use crate::store::{Damage, Head, Loaded, Op, Query, Snapshot, Store, StoreError};
pub use check::{Report, check, repair};
use error::{Fault, Outcome, contain};
use lock::Lock;
use order::Order;
use read::Reader;
use view::View;
use write::Writer;

/// The name of the file in the directory.
pub const FILE: &str = "timers.redb";
/// The version of the layout of the tables. An older one is read, a newer one refused.
pub const FORMAT: u64 = 1;

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
    database: Database,
    state: ShardState,
    view: View,
    order: Option<Order>,
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

    /// redb may panic when it closes a file that has failed.
    fn close(&mut self) {
        let opened = self.opened.take();
        let _ = contain(|| {
            drop(opened);
            Ok(())
        });
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        self.close();
    }
}

impl Store for DiskStore {
    fn open(&mut self) -> Result<Head, StoreError> {
        self.close();
        if self.lock.is_none() {
            self.lock = Some(Lock::take(&self.directory)?);
        }
        let (database, head, view) = file::open(&self.directory, self.cache)?;
        let state = ShardState { epoch: head.epoch, row: head.shard };
        self.opened = Some(Opened { database, state, view, order: None });
        // The epoch is durable before anything is done in it.
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
        let view = opened.view.clone();
        let transaction = self.end(outcome, false)?;
        Ok(Box::new(snapshot::Rows::new(transaction, view)))
    }

    fn damage(&self) -> Vec<Damage> {
        let opened = self.opened.iter();
        opened.flat_map(|opened| opened.view.damage.iter().cloned()).collect()
    }
}

impl Opened {
    fn commit(&mut self, ops: &[Op]) -> Outcome {
        let mut transaction = self.database.begin_write()?;
        transaction.set_quick_repair(true);
        let Opened { database, state, view, order } = self;
        let mut writer = Writer::new(&transaction, database, view, state, order);
        for op in ops {
            writer.apply(op)?;
        }
        writer.finish()?;
        transaction.commit()?;
        Ok(())
    }

    fn load(&mut self, query: &Query) -> Outcome<Loaded> {
        let transaction = self.database.begin_read()?;
        let mut reader = Reader::new(&transaction, &mut self.view);
        if let Query::Sorted { bucket, queue, after, limit } = query
            && let Some(rows) = reader.sorted(&mut self.order, (*bucket, queue), after, *limit)?
        {
            return Ok(Loaded::Rows(rows));
        }
        reader.load(query)
    }
}

#[cfg(test)]
mod tests;
