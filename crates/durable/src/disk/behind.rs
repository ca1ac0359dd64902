//! Write-behind: a thread carries out redb's writes and syncs in order.
//!
//! redb flushes its file in the middle of a commit, and the store cannot take the next commit meanwhile. Here a write
//! or a sync only joins a queue. After a crash the file holds a prefix of redb's writes, and every sync requested
//! within that prefix is complete. redb is built for such a crash: it opens with the last commit whose syncs were done.
//! Every flushed commit is two-phase, which redb's quick-repair option implies, so a header never refers to pages that
//! are not durable yet. The later commits are in the log (`log.rs`), which keeps them until [`wait`](Behind::wait)
//! reports that redb's file has them.
//!
//! A read sees the queued writes. Growing the file happens at once; shrinking waits until the queue is empty. After the
//! first failure, or after the file is closed, nothing more is queued, and every call fails.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use redb::{BackendError, Builder, Database, DatabaseError, StorageBackend};

use super::device::Device;
use super::error::{Fault, Outcome};

/// The granularity at which a read looks for queued writes.
const BLOCK: u64 = 4096;
/// High-water mark in bytes: a write blocks while more than this is queued (or the cache size, if that is smaller).
const MOST: usize = 64 << 20;
/// Maximum number of operations that the thread does before it reports them as done.
const AT_ONCE: usize = 64;

/// A database, and the queue of its file.
pub(super) struct Tables {
    /// Dropped before the queue, because closing a database writes.
    pub(super) database: Database,
    pub(super) behind: Behind,
}

impl Tables {
    /// Opens a file, creating it if it does not exist.
    pub(super) fn open(path: &Path, cache: usize) -> Result<Self, DatabaseError> {
        let io = |error: io::Error| DatabaseError::Storage(error.into());
        let new = |device| Behind::new(path, device, cache.clamp(1 << 20, MOST));
        let behind = Device::open(path).and_then(new).map_err(io)?;
        let backend = Backend(behind.shared.clone());
        let database = Builder::new().set_cache_size(cache).create_with_backend(backend)?;
        Ok(Tables { database, behind })
    }
}

/// The queue of a file, and the thread that works through it. Dropping it waits for the thread.
#[derive(Debug)]
pub(super) struct Behind {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A place in a queue, to be waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// The part that redb owns.
#[derive(Debug)]
struct Backend(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    device: Device,
    /// A write blocks while more bytes than this are queued.
    most: usize,
    state: Mutex<State>,
    /// Something was queued, or the file was closed.
    queued: Condvar,
    /// Something queued was done, or failed.
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Task>,
    /// The number of the first task in the queue. Equals the number of tasks done.
    first: u64,
    /// The last task that writes each block.
    blocks: HashMap<u64, u64>,
    bytes: usize,
    length: u64,
    failure: Option<(io::ErrorKind, String)>,
    closed: bool,
}

#[derive(Clone, Debug)]
enum Task {
    Write(u64, Arc<[u8]>),
    Sync,
}

impl Behind {
    fn new(path: &Path, device: Device, most: usize) -> io::Result<Self> {
        let state = State { length: device.len()?, ..State::default() };
        let shared = Arc::new(Shared {
            device,
            most,
            state: Mutex::new(state),
            queued: Condvar::new(),
            done: Condvar::new(),
        });
        let worker = shared.clone();
        let thread = thread::Builder::new().name("tourbillon-disk".into());
        let thread = thread.spawn(move || worker.work())?;
        Ok(Behind { path: path.to_path_buf(), shared, thread: Some(thread) })
    }

    /// A ticket for everything that is queued now.
    pub(super) fn ticket(&self) -> Ticket {
        let state = self.shared.lock();
        Ticket(state.first + state.queue.len() as u64)
    }

    /// Waits until everything up to a ticket is done.
    pub(super) fn wait(&self, ticket: Ticket) -> Outcome {
        let done = self.shared.until(|state| state.first >= ticket.0).map(drop);
        done.map_err(|error| Fault::disk(&self.path, &error))
    }

    /// The failure of a write or a sync, if there was one.
    pub(super) fn check(&self) -> Outcome {
        self.shared.lock().check().map_err(|error| Fault::disk(&self.path, &error))
    }

    /// Waits until everything is done.
    pub(super) fn drain(&self) -> Outcome {
        self.wait(self.ticket())
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.shared.close();
        // The thread does not panic, so there is no result to report.
        let _ = self.thread.take().map(JoinHandle::join);
        // A snapshot may keep the `Backend` alive; even so, the file can be opened again.
        let _ = self.shared.device.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self, is: impl Fn(&State) -> bool) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        while !is(&state) {
            state.check()?;
            self.queued.notify_one();
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.check()?;
        Ok(state)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.queued.notify_one();
    }

    /// The thread's loop: carries out the queued tasks until the file is closed.
    fn work(&self) {
        loop {
            let mut state = self.lock();
            while state.queue.is_empty() && !state.closed {
                state = self.queued.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let tasks: Vec<Task> = state.queue.iter().take(AT_ONCE).cloned().collect();
            drop(state);
            if tasks.is_empty() {
                return;
            }
            let outcome = tasks.iter().try_for_each(|task| match task {
                Task::Write(offset, bytes) => self.device.write(bytes, *offset),
                Task::Sync => planted!("disk.flush-not-done", Ok(()), self.device.sync()),
            });
            let mut state = self.lock();
            match outcome {
                Ok(()) => tasks.iter().for_each(|task| state.pop(task)),
                Err(error) => state.fail(&error),
            }
            drop(state);
            self.done.notify_all();
        }
    }
}

impl State {
    fn check(&self) -> io::Result<()> {
        match &self.failure {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None if self.closed => Err(io::Error::other("the file was closed")),
            None => Ok(()),
        }
    }

    fn push(&mut self, task: Task) {
        let number = self.first + self.queue.len() as u64;
        if let Task::Write(offset, bytes) = &task {
            self.bytes += bytes.len();
            for block in blocks(*offset, bytes.len()) {
                self.blocks.insert(block, number);
            }
        }
        self.queue.push_back(task);
    }

    /// Removes the first task, which is done.
    fn pop(&mut self, task: &Task) {
        if let Task::Write(offset, bytes) = task {
            self.bytes -= bytes.len();
            for block in blocks(*offset, bytes.len()) {
                if self.blocks.get(&block) == Some(&self.first) {
                    self.blocks.remove(&block);
                }
            }
        }
        self.queue.pop_front();
        self.first += 1;
    }

    fn fail(&mut self, error: &io::Error) {
        self.failure = Some((error.kind(), error.to_string()));
        self.queue.clear();
        self.blocks.clear();
        self.bytes = 0;
    }

    /// The queued writes that a range may contain, in their order.
    fn over(&self, offset: u64, length: usize) -> Vec<(u64, Arc<[u8]>)> {
        if planted!("disk.read-misses-the-queue", true, self.blocks.is_empty())
            || !blocks(offset, length).any(|block| self.blocks.contains_key(&block))
        {
            return Vec::new();
        }
        let end = offset + length as u64;
        let writes = self.queue.iter().filter_map(|task| match task {
            Task::Write(at, bytes) => Some((*at, bytes)),
            Task::Sync => None,
        });
        let over = writes.filter(|(at, bytes)| *at < end && offset < *at + bytes.len() as u64);
        over.map(|(at, bytes)| (at, bytes.clone())).collect()
    }
}

fn blocks(offset: u64, length: usize) -> impl Iterator<Item = u64> {
    offset / BLOCK..(offset + length as u64).div_ceil(BLOCK)
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let over = {
            let state = self.0.lock();
            state.check()?;
            state.over(offset, out.len())
        };
        // The thread may be writing this range at the same time, so the read may be torn; the queued copy replaces it.
        self.0.device.read(out, offset)?;
        for (at, bytes) in over {
            let from = at.max(offset);
            let to = (at + bytes.len() as u64).min(offset + out.len() as u64);
            let source = &bytes[(from - at) as usize..(to - at) as usize];
            out[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        if length < state.length {
            drop(state);
            state = self.0.until(|state| state.queue.is_empty())?;
        }
        state.check()?;
        self.0.device.set_len(length)?;
        state.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.check()?;
        state.push(Task::Sync);
        self.0.queued.notify_one();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let bytes: Arc<[u8]> = data.into();
        let mut state = self.0.until(|state| state.bytes < self.0.most)?;
        state.push(Task::Write(offset, bytes));
        if state.queue.len() >= AT_ONCE {
            self.0.queued.notify_one();
        }
        Ok(())
    }

    /// Waits until everything is done, so that the file can be opened again.
    fn close(&self) -> io::Result<()> {
        let done = self.0.until(|state| state.queue.is_empty()).map(drop);
        self.0.close();
        done.and(self.0.device.close())
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.device.try_lock(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.device.unlock(start, end)
    }
}
