//! The log: commits that are durable here before redb has written them.
//!
//! A commit of redb with quick-repair writes some twenty pages and flushes twice. A small commit is appended to this
//! file instead, flushed once, and made in redb without a flush. When the log is full, or a commit is large, redb
//! makes everything durable, and the log begins anew at its front, in the blocks that it has.
//!
//! ```text
//!   0          4096                 12288
//!   ├──────────┼────────────────────┼──────────┬─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─┐
//!   │ record 7 │ record 8           │ record 9 │ older records, or zeros │
//!   └──────────┴────────────────────┴──────────┴─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─┘
//!   head of a record: magic, length, store, number, CRC32C of these and the changes
//! ```
//!
//! # The law
//! - A record is flushed before its commit is answered, and before the next record is written.
//! - A record begins at a whole block, so nothing that was answered is ever written again before redb has it.
//! - Commits are numbered. Every state of redb names the last commit in it: records up to that one are old. To open
//!   makes the ones after it, which must follow each other without a gap.
//! - A record that cannot be read ends the log if nothing newer follows: it was being written, and was not answered. If
//!   something newer follows, an answered record was damaged, and the store is not opened.
//! - The records name their store: a log beside a file that was put in its place is not that file's.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase};

use super::FILE;
use super::changes::{Changes, HEAD, Iter, repeat};
use super::error::{Fault, Outcome};
use super::table::{LOG, Small};
use crate::codec::{LogRow, decode};
use crate::store::Damage;

/// The name of the file in the directory.
pub const LOG_FILE: &str = "timers.log";
/// What the log may hold: as much as redb's file, from the least to the most, so that it is never most of what a small
/// store takes. redb writes a row once, however often it was changed meanwhile, and not at all if it came and
/// went: a larger log means less work, and a longer pause when redb makes it durable.
const LEAST: u64 = if cfg!(test) { 64 << 10 } else { 1 << 20 };
const SIZE: u64 = if cfg!(test) { 64 << 10 } else { 16 << 20 };
/// A larger commit is redb's at once.
const LARGEST: usize = SIZE as usize / 16;
/// Records begin at multiples of this: the largest sector that a disk writes in one piece.
const BLOCK: u64 = 4096;
/// The file grows by this much, in zeros, because a flush of a file that grows is slower.
const GROWTH: usize = 512 << 10;
const MAGIC: [u8; 4] = *b"tbL1";

pub(super) struct Log {
    path: PathBuf,
    file: File,
    /// Where the next record goes; `None`: the next commit is redb's.
    next: Option<u64>,
    length: u64,
    /// What it may hold now.
    size: u64,
    /// The store, and the last commit.
    pub(super) row: LogRow,
}

pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(LOG_FILE)
}

impl Log {
    /// Opens the file, which is made if it is not there. Its name is durable when the caller has synced the directory.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let path = path(directory);
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
        let length = file.metadata()?.len();
        Ok(Log { path, file, next: None, length, size: 0, row: LogRow::default() })
    }

    /// Whether a commit of these changes goes here.
    pub(super) fn takes(&self, changes: &Changes) -> bool {
        let end = |next: u64| next + (changes.len() as u64).next_multiple_of(BLOCK);
        changes.len() <= LARGEST && self.next.is_some_and(|next| end(next) <= self.size)
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
        let at = self.next.take().unwrap_or(SIZE);
        self.write(&bytes, at).map_err(|error| {
            Fault::Failed(format!("{} cannot be written: {error}", self.path.display()))
        })?;
        self.next = Some(at + bytes.len() as u64);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        let end = at + bytes.len() as u64;
        if end > self.length {
            let zeros = vec![0; GROWTH.min((SIZE - self.length) as usize)];
            self.file.write_all_at(&zeros, self.length)?;
            self.length = end.max(self.length + zeros.len() as u64);
        }
        self.file.write_all_at(bytes, at)?;
        self.file.sync_data()
    }

    /// Whether it holds commits that redb has not flushed.
    pub(super) fn is_used(&self) -> bool {
        self.next != Some(0)
    }

    /// The next commit is redb's.
    pub(super) fn end(&mut self) {
        self.next = None;
    }

    /// Everything is durable in redb: the log begins anew.
    pub(super) fn begin(&mut self) {
        let file = std::fs::metadata(self.path.with_file_name(FILE));
        self.size = file.map_or(LEAST, |file| file.len()).clamp(LEAST, SIZE);
        self.next = Some(0);
    }
}

/// A record: the changes of a commit.
pub(super) struct Commit {
    number: u64,
    bytes: Vec<u8>,
}

/// The commits after one, in their order, and what is wrong with the log.
pub(super) fn read(directory: &Path, row: LogRow) -> io::Result<(Vec<Commit>, Option<Damage>)> {
    let bytes = match std::fs::read(path(directory)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
        bytes => bytes?,
    };
    let (mut commits, mut damage, mut at) = (Vec::new(), None, 0);
    let mut next = row.commit + 1;
    while at < bytes.len() {
        let Some((number, length)) = record(&bytes[at..], row.store) else {
            at += BLOCK as usize;
            continue;
        };
        if number >= next {
            if number > next {
                let what = Some(format!("commit {next}"));
                let wrong = format!("it cannot be read, and commit {number} follows it");
                damage.get_or_insert(Damage { table: LOG_FILE.into(), row: what, wrong });
            }
            next = number + 1;
            let bytes = bytes[at + HEAD..at + length].to_vec();
            commits.push(Commit { number, bytes });
        }
        at += length.next_multiple_of(BLOCK as usize);
    }
    Ok((commits, damage))
}

/// The number and the length of the record of a store that begins there.
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

/// Of the head, but for this sum, and of the changes.
fn checksum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[..24]), &record[HEAD..])
}

/// The last commit that a database names.
pub(super) fn row(database: &Database) -> Outcome<LogRow> {
    let transaction = database.begin_read()?;
    let head = transaction.open_table(Small::Head.definition())?;
    let Some(value) = head.get(LOG)? else { return Ok(LogRow::default()) };
    let name = Small::Head.name();
    decode(name, LOG, value.value()).map_err(|wrong| Fault::value(name, "log".into(), &wrong))
}

/// Makes commits of the log in redb, durably.
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
