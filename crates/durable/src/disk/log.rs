//! The log: a write-ahead log of commits that redb has not flushed yet.
//!
//! A redb commit with quick-repair writes about twenty pages and flushes twice. A small commit is instead appended to
//! this file, flushed once, and committed in redb without a flush. The log has two halves. When one is full, redb
//! flushes its file in the background (`behind.rs`), and the next records go to the other half.
//!
//! ```text
//!   0          4096                 12288                     half
//!   ├──────────┼────────────────────┼──────────┬─ ─ ─ ─ ─ ─ ─ ┼──────────┬──────────┬─ ─ ─ ─ ─ ─ ─ ─┐
//!   │ record 7 │ record 8           │ record 9 │ older, zeros │ record 5 │ record 6 │ older, zeros  │
//!   └──────────┴────────────────────┴──────────┴─ ─ ─ ─ ─ ─ ─ ┴──────────┴──────────┴─ ─ ─ ─ ─ ─ ─ ─┘
//!   head of a record: magic, length, store, number, CRC32C of these and the changes
//! ```
//!
//! # Invariants
//! - A record is flushed before its commit is acknowledged, and before the next record is written.
//! - A record begins at a block boundary. A half is overwritten only after redb has flushed its commits. So no write
//!   touches a record that is still needed.
//! - Commits are numbered. Every state of redb contains the number of its last commit; records up to that number are
//!   obsolete. Opening applies the records after it, which must follow each other without a gap.
//! - If an unreadable record is followed by no newer record, the log ends there: the record was being written and was
//!   not acknowledged. If a newer record exists, an acknowledged record was damaged, and the store is not opened.
//! - Each record contains the number of its store, so the log of another store is not mistaken for this one's.

use std::io;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase};

use super::FILE;
use super::behind::Ticket;
use super::changes::{Changes, HEAD, Iter, repeat};
use super::device::Device;
use super::error::{Fault, Outcome};
use super::table::{LOG, Small};
use crate::codec::{LogRow, decode};
use crate::store::Damage;

/// The name of the log file in the store's directory.
pub const LOG_FILE: &str = "timers.log";
/// Bounds of the size of a half of the log. Between them, a half is half as large as redb's file.
///
/// So the log is never larger than a small store. A larger log means less work, because redb writes a row once, however
/// often it was changed meanwhile, and not at all if it was inserted and removed. It also means a longer flush when a
/// half is full.
const LEAST: u64 = if cfg!(test) { 16 << 10 } else { 512 << 10 };
const MOST: u64 = if cfg!(test) { 16 << 10 } else { 2 << 20 };
/// A commit that is larger than this, or than a half, goes to redb directly.
const LARGEST: u64 = MOST / 2;
/// Records begin at multiples of this: the largest sector that a disk writes in one piece.
const BLOCK: u64 = 4096;
/// The file grows by this much, in zeros, because flushing a growing file is slower.
const GROWTH: usize = 512 << 10;
const MAGIC: [u8; 4] = *b"tbL1";

pub(super) struct Log {
    path: PathBuf,
    device: Device,
    /// Where the next record goes; `None` if the next commit goes to redb directly.
    next: Option<u64>,
    /// Where the half of the next record ends.
    end: u64,
    /// The size of a half.
    half: u64,
    length: u64,
    /// The flush of redb's file after which the other half is no longer needed.
    pub(super) written: Ticket,
    /// The store, and the last commit.
    pub(super) row: LogRow,
}

/// Where the record of a commit goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Into the half of the last record.
    Here,
    /// Into the other half, once redb has flushed its commits.
    Other,
    /// Nowhere: the commit goes to redb directly.
    None,
}

pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(LOG_FILE)
}

impl Log {
    /// Opens the file, and creates it if necessary. Its name is durable once the caller has synced the directory.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let path = path(directory);
        let device = Device::open(&path)?;
        let length = device.len()?;
        let (written, row) = (Ticket::default(), LogRow::default());
        Ok(Log { path, device, next: None, end: 0, half: 0, length, written, row })
    }

    /// Where a commit of these changes goes.
    pub(super) fn room(&self, changes: &Changes) -> Room {
        let bytes = (changes.len() as u64).next_multiple_of(BLOCK);
        match self.next {
            Some(next) if bytes <= LARGEST.min(self.half) => {
                if next + bytes <= self.end {
                    Room::Here
                } else if self.end > self.half && self.wanted() >= 2 * self.half {
                    // This commit goes to redb directly. Afterwards neither half is needed, and they can grow.
                    Room::None
                } else {
                    Room::Other
                }
            }
            _ => Room::None,
        }
    }

    /// Appends a record of the commit that `row` names, and flushes it.
    pub(super) fn append(&mut self, changes: &Changes) -> Outcome {
        let length = changes.len();
        let mut bytes = Vec::with_capacity(length.next_multiple_of(BLOCK as usize));
        bytes.extend_from_slice(changes.bytes());
        bytes.resize(length.next_multiple_of(BLOCK as usize), 0);
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.row.store.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.row.commit.to_le_bytes());
        let sum = checksum(&bytes[..length]);
        bytes[24..28].copy_from_slice(&sum.to_le_bytes());
        // Until this record is durable, no other may be written.
        let at = self.next.take().unwrap_or(self.end);
        self.write(&bytes, at).map_err(|error| Fault::disk(&self.path, &error))?;
        self.next = Some(at + bytes.len() as u64);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        let end = at + bytes.len() as u64;
        if end > self.length {
            let zeros = vec![0; GROWTH.min((2 * MOST).saturating_sub(self.length) as usize)];
            self.device.write(&zeros, self.length)?;
            self.length = end.max(self.length + zeros.len() as u64);
        }
        self.device.write(bytes, at)?;
        planted!("disk.record-not-flushed", Ok(()), self.device.sync())
    }

    /// Whether the log may hold commits that redb has not flushed.
    pub(super) fn is_used(&self) -> bool {
        self.next != Some(0)
    }

    /// Sends the next commit to redb directly.
    pub(super) fn end(&mut self) {
        self.next = None;
    }

    /// Restarts the log at its front. Everything must be durable in redb.
    pub(super) fn begin(&mut self) {
        self.half = self.wanted();
        (self.next, self.end) = (Some(0), self.half);
        self.written = Ticket::default();
    }

    /// Switches to the other half, which is no longer needed.
    pub(super) fn turn(&mut self) {
        let next = if self.end > self.half { 0 } else { self.half };
        (self.next, self.end) = (Some(next), next + self.half);
    }

    fn wanted(&self) -> u64 {
        let file = std::fs::metadata(self.path.with_file_name(FILE));
        let half = file.map_or(LEAST, |file| file.len() / 2).clamp(LEAST, MOST);
        half.next_multiple_of(BLOCK)
    }
}

/// A record: the changes of a commit.
pub(super) struct Commit {
    number: u64,
    bytes: Vec<u8>,
}

/// Reads the commits after `row.commit`, in order, and what is damaged in the log.
pub(super) fn read(directory: &Path, row: LogRow) -> io::Result<(Vec<Commit>, Option<Damage>)> {
    let bytes = match std::fs::read(path(directory)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
        bytes => bytes?,
    };
    let (mut commits, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let Some((number, length)) = record(&bytes[at..], row.store) else {
            at += BLOCK as usize;
            continue;
        };
        if number > row.commit {
            let bytes = bytes[at + HEAD..at + length].to_vec();
            commits.push(Commit { number, bytes });
        }
        at += length.next_multiple_of(BLOCK as usize);
    }
    commits.sort_by_key(|commit| commit.number);
    let gap = (row.commit + 1..).zip(&commits).find(|(next, commit)| *next != commit.number);
    let damage = gap.map(|(next, commit)| Damage {
        table: LOG_FILE.into(),
        row: Some(format!("commit {next}")),
        wrong: format!("it cannot be read, and commit {} follows it", commit.number),
    });
    Ok((commits, damage))
}

/// The number and the length of the record of `store` at the beginning of `bytes`.
fn record(bytes: &[u8], store: u64) -> Option<(u64, usize)> {
    let head = bytes.first_chunk::<HEAD>()?;
    let eight = |at: usize| head[at..].first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    let four = |at: usize| head[at..].first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    if head[..4] != MAGIC || eight(8)? != store {
        return None;
    }
    let length = four(4)? as usize;
    let whole = bytes.get(..length).filter(|whole| whole.len() >= HEAD)?;
    (checksum(whole) == four(24)?).then_some((eight(16)?, length))
}

/// The checksum of a record's head, without the checksum itself, and of its changes.
fn checksum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[..24]), &record[HEAD..])
}

/// The last commit in a database, with the store's number.
pub(super) fn row(database: &Database) -> Outcome<LogRow> {
    let transaction = database.begin_read()?;
    let head = transaction.open_table(Small::Head.definition())?;
    let Some(value) = head.get(LOG)? else { return Ok(LogRow::default()) };
    let name = Small::Head.name();
    decode(name, LOG, value.value()).map_err(|wrong| Fault::value(name, "log".into(), &wrong))
}

/// Commits the log's commits in redb. They are durable once its file is flushed.
pub(super) fn replay(database: &Database, commits: &[Commit]) -> Outcome {
    for commit in commits {
        let mut transaction = database.begin_write()?;
        repeat(Iter::new(&commit.bytes), &transaction)?;
        if commits.last().is_some_and(|last| last.number == commit.number) {
            transaction.set_quick_repair(true);
        } else {
            transaction.set_durability(redb::Durability::None).map_err(redb::Error::from)?;
        }
        transaction.commit()?;
    }
    Ok(())
}
