//! The file: making it, opening it, and reading what an opening needs.
//!
//! A new file is made under another name and renamed when it is complete: a file with the right name that is empty or
//! short was damaged, and is never taken for a new one.

use std::fs::{self, File};
use std::path::Path;

use redb::{Builder, Database, ReadableDatabase, ReadableTable};

use super::error::{self, Fault, Outcome, contain};
use super::read::Reader;
use super::table::{self, Small};
use super::view::{Held, View};
use super::{FILE, FORMAT};
use crate::codec::{BucketRow, ShardState, decode, encode};
use crate::record::Place;
use crate::store::{Head, QueueRow, StoreError};
use crate::values::QueueName;

/// Opens the file of a directory, with the next epoch.
pub(super) fn open(directory: &Path, cache: usize) -> Result<(Database, Head, View), StoreError> {
    let path = directory.join(FILE);
    if !path.exists() {
        make(directory, &path)?;
    }
    // What redb says of a file that it cannot write, or that is short, does not tell one from the other.
    let file = File::options().read(true).write(true).open(&path);
    let file = file.map_err(|error| error::io(&path, "opened", &error))?;
    let length = file.metadata().map_err(|error| error::io(&path, "read", &error))?.len();
    drop(file);
    if length == 0 {
        return Err(error::damaged(&path, "it is empty"));
    }
    let opened = contain(|| Ok(Builder::new().set_cache_size(cache).open(&path)));
    let database = match opened {
        Ok(Ok(database)) => database,
        Ok(Err(error)) => return Err(error::open(&path, error)),
        Err(fault) => return Err(refuse(&path, fault)),
    };
    let (head, view) = contain(|| head(&database)).map_err(|fault| refuse(&path, fault))?;
    let head = head.map_err(|found| {
        StoreError::Refused(format!(
            "{} has format {found}; this program knows {FORMAT}: use the version that wrote it, or a newer one",
            path.display()
        ))
    })?;
    Ok((database, head, view))
}

fn refuse(path: &Path, fault: Fault) -> StoreError {
    match fault {
        Fault::Failed(why) => StoreError::Failed(format!("{}: {why}", path.display())),
        Fault::Damaged(damage) => error::damaged(path, &damage.to_string()),
    }
}

fn make(directory: &Path, path: &Path) -> Result<(), StoreError> {
    let new = directory.join(format!("{FILE}.new"));
    let failed = |error: std::io::Error| error::io(&new, "written", &error);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
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
    // The rename is durable when the directory is.
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| error::io(directory, "written", &error))
}

/// What an opening returns. `Err` has the version of a format that is not known.
fn head(database: &Database) -> Outcome<(Result<Head, u64>, View)> {
    let transaction = database.begin_read()?;
    let (mut view, name) = (View::default(), Small::Head.name());
    let table = transaction.open_table(Small::Head.definition())?;
    let row = |key: &[u8]| Some(table::name_of_head_key(key));
    let format = table.get(table::FORMAT)?;
    let Some(format) = format else {
        return Err(Fault::damage(name, Some("format".into()), "it is not there"));
    };
    let format = decode::<u64>(name, table::FORMAT, format.value());
    let format = format.map_err(|wrong| Fault::value(name, "format".into(), &wrong))?;
    if format != FORMAT {
        return Ok((Err(format), view));
    }
    let mut head = Head::default();
    for entry in ReadableTable::iter(&table)? {
        let (key, value) = entry?;
        let (key, value) = (key.value(), value.value());
        let wrong = |wrong| Fault::value(name, row(key).unwrap_or_default(), &wrong);
        match key.first() {
            _ if key == table::FORMAT => {}
            _ if key == table::SHARD => {
                let state: ShardState = decode(name, key, value).map_err(wrong)?;
                (head.epoch, head.shard) = (state.epoch, state.row);
            }
            Some(&table::QUEUE) => {
                let queue = str::from_utf8(&key[1..]).ok().and_then(|it| QueueName::new(it).ok());
                let queue = queue.ok_or_else(|| Fault::damage(name, row(key), "no queue"))?;
                let row: QueueRow = decode(name, key, value).map_err(wrong)?;
                head.queues.push((queue, row));
            }
            _ => {
                let bucket = table::bucket_of_key(key);
                let bucket = bucket.ok_or_else(|| Fault::damage(name, row(key), "no bucket"))?;
                let row: BucketRow = decode(name, key, value).map_err(wrong)?;
                view.buckets.insert(bucket, Held { row, ..Held::default() });
            }
        }
    }
    head.epoch += 1;
    head.buckets = view.fillings();
    let mut reader = Reader::new(&transaction, &mut view);
    let first = reader.range(Small::Remembered, &[], &[], 1)?;
    head.forget = first.first().and_then(|(place, _)| match place {
        Place::Remembered(until) => Some(*until),
        _ => None,
    });
    Ok((Ok(head), view))
}
