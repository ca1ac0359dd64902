//! The file: creating it, opening it, and reading its head.
//!
//! A new file is created under another name and renamed when it is complete. So a file with the right name that is
//! empty or short is damaged, and is never mistaken for a new one. A file that is missing or cannot be reached is not
//! mistaken for a new one either, if anything of a store is left: see [`is_new`].

use std::fs::{self, File};
use std::io;
use std::path::Path;

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::behind::Tables;
use super::compact;
use super::device::sync_names;
use super::error::{self, Fault, Outcome, contain};
use super::log::{self, Log};
use super::table::{self, Small};
use super::view::{Held, View};
use super::{FILE, FORMAT};
use crate::codec::{BucketRow, DecodeError, LogRow, ShardState, decode, encode};
use crate::record::Place;
use crate::store::{Damage, Head, QueueRow, ShardRow, StoreError};
use crate::values::QueueName;

/// Opens the file of a directory, with the commits of its log, and the next epoch.
pub(super) fn open(
    directory: &Path,
    cache: usize,
) -> Result<(Tables, Log, Head, View), StoreError> {
    let path = directory.join(FILE);
    // First, because a refusal changes nothing.
    let new =
        planted!("disk.missing-file-is-a-new-store", !path.exists(), is_new(directory, &path)?);
    // Removes what an unfinished copy left.
    compact::remove(&compact::path(directory)).map_err(|fault| refuse(&path, fault))?;
    if new {
        make(directory, &path)?;
    }
    let log_path = log::path(directory);
    let mut log = Log::open(directory).map_err(|error| error::io(&log_path, "opened", &error))?;
    // The log may be new, or a copy may have taken the name of the file just before a crash: names must be durable
    // before a commit is.
    sync_names(directory).map_err(|error| error::io(directory, "written", &error))?;
    // redb reports an unwritable file and a short one alike, so this tells them apart.
    let file = File::options().read(true).write(true).open(&path);
    let file = file.map_err(|error| error::io(&path, "opened", &error))?;
    let length = file.metadata().map_err(|error| error::io(&path, "read", &error))?.len();
    drop(file);
    if length == 0 {
        return Err(error::damaged(&path, "it is empty"));
    }
    let opened = contain(|| Ok(Tables::open(&path, cache)));
    let tables = match opened {
        Ok(Ok(tables)) => tables,
        Ok(Err(error)) => return Err(error::open(&path, error)),
        Err(fault) => return Err(refuse(&path, fault)),
    };
    let read = || {
        let read = contain(|| read_head(&tables.database.begin_read()?));
        let (head, view) = read.map_err(|fault| refuse(&path, fault))?;
        Ok((head.map_err(|format| error::newer(&path, format))?, view))
    };
    // An unknown format is refused before anything is written.
    let (mut head, mut view) = read()?;
    log.row = contain(|| log::row(&tables.database)).map_err(|fault| refuse(&path, fault))?;
    let (commits, damage) =
        log::read(directory, log.row).map_err(|error| error::io(&log_path, "read", &error))?;
    if let Some(damage) = damage {
        return Err(error::damaged(&log_path, &damage.to_string()));
    }
    if !commits.is_empty() {
        let replay = || {
            log::replay(&tables.database, &commits)?;
            tables.behind.drain()
        };
        contain(replay).map_err(|fault| refuse(&path, fault))?;
        (head, view) = read()?;
        log.row = contain(|| log::row(&tables.database)).map_err(|fault| refuse(&path, fault))?;
    }
    if log.row.store == 0 {
        log.row.store = ShardRow::new_name();
    }
    match view.damage.first() {
        Some(damage) => Err(error::damaged(&path, &damage.to_string())),
        None => Ok((tables, log, head, view)),
    }
}

/// Whether the directory holds no store yet.
///
/// The file is made before the log, and never removed. So a log with records, without the file, is what is left of a
/// store: a new file would hide its timers, and new records overwrite them.
fn is_new(directory: &Path, path: &Path) -> Result<bool, StoreError> {
    if is_there(path, fs::metadata(path))? {
        return Ok(false);
    }
    let refused = |what: String| Err(StoreError::Refused(what));
    let shown = path.display();
    if is_there(path, fs::symlink_metadata(path))? {
        return refused(format!(
            "{shown} is a link to a file that is not there: mount its disk, or name another directory"
        ));
    }
    let log = log::path(directory);
    match fs::read(&log) {
        Ok(bytes) if bytes.iter().any(|&byte| byte != 0) => refused(format!(
            "{shown} is missing, and {} beside it is of a store: restore that file, or name another directory",
            log::LOG_FILE
        )),
        read => is_there(&log, read).map(|_| true),
    }
}

/// Whether a file is there. That it cannot be reached does not mean that it is not there.
fn is_there<T>(path: &Path, found: io::Result<T>) -> Result<bool, StoreError> {
    match found {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error::io(path, "read", &error)),
    }
}

fn refuse(path: &Path, fault: Fault) -> StoreError {
    match fault {
        Fault::Failed(why) => StoreError::Failed(format!("{}: {why}", path.display())),
        Fault::Damaged(damage) => error::damaged(path, &damage.to_string()),
    }
}

fn make(directory: &Path, path: &Path) -> Result<(), StoreError> {
    let new = compact::path(directory);
    let failed = |error: std::io::Error| error::io(&new, "written", &error);
    let database = Database::create(&new).map_err(|error| error::open(&new, error))?;
    contain(|| {
        let mut transaction = database.begin_write()?;
        transaction.set_quick_repair(true);
        for small in Small::ALL {
            transaction.open_table(small.definition())?;
        }
        {
            let mut head = transaction.open_table(Small::Head.definition())?;
            let value = encode(Small::Head.name(), table::FORMAT, &FORMAT);
            head.insert(table::FORMAT, &value[..])?;
        }
        transaction.commit()?;
        Ok(())
    })
    .map_err(|fault| refuse(&new, fault))?;
    drop(database);
    fs::rename(&new, path).map_err(failed)?;
    // The rename is durable once the directory is synced.
    sync_names(directory).map_err(|error| error::io(directory, "written", &error))
}

/// Reads what an open returns, and records unreadable rows of `head`. The inner `Err` is an unknown format.
pub(super) fn read_head(transaction: &ReadTransaction) -> Outcome<(Result<Head, u64>, View)> {
    let (mut view, mut head, name) = (View::default(), Head::default(), Small::Head.name());
    let table = transaction.open_table(Small::Head.definition())?;
    let Some(format) = table.get(table::FORMAT)? else {
        return Err(Fault::damage(name, Some("format".into()), "it is not there"));
    };
    let format = decode::<u64>(name, table::FORMAT, format.value());
    let format = format.map_err(|wrong| Fault::value(name, "format".into(), &wrong))?;
    if format != FORMAT {
        return Ok((Err(format), view));
    }
    for entry in ReadableTable::iter(&table)? {
        let (key, value) = entry?;
        if let Err(wrong) = read_row(key.value(), value.value(), &mut head, &mut view) {
            let row = Some(table::name_of_head_key(key.value()));
            view.damage.insert(Damage { table: name.into(), row, wrong });
        }
    }
    head.epoch += 1;
    head.buckets = view.fillings();
    let remembered = transaction.open_table(Small::Remembered.definition())?;
    if let Some((key, _)) = remembered.first()?
        && let Some(Place::Remembered(until)) = table::place_of_key(Small::Remembered, key.value())
    {
        head.forget = Some(until);
    }
    Ok((Ok(head), view))
}

/// Reads one row of the head.
fn read_row(key: &[u8], value: &[u8], head: &mut Head, view: &mut View) -> Result<(), String> {
    let (name, wrong) = (Small::Head.name(), |wrong: DecodeError| wrong.to_string());
    match key.first() {
        _ if key == table::FORMAT => {}
        _ if key == table::LOG => drop(decode::<LogRow>(name, key, value).map_err(wrong)?),
        _ if key == table::SHARD => {
            let state: ShardState = decode(name, key, value).map_err(wrong)?;
            (head.epoch, head.shard) = (state.epoch, state.row);
        }
        Some(&table::QUEUE) => {
            let queue = str::from_utf8(&key[1..]).map_err(|wrong| wrong.to_string())?;
            let queue = QueueName::new(queue).map_err(|wrong| wrong.to_string())?;
            head.queues.push((queue, decode::<QueueRow>(name, key, value).map_err(wrong)?));
        }
        _ => {
            let bucket = table::bucket_of_key(key).ok_or("it is no key of the head")?;
            let row: BucketRow = decode(name, key, value).map_err(wrong)?;
            view.buckets.insert(bucket, Held { row, ..Held::default() });
        }
    }
    Ok(())
}
