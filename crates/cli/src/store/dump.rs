//! All timers of a store, a line each.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use tourbillon_durable::disk::{self, DiskStore};
use tourbillon_durable::record::Generation;
use tourbillon_durable::store::{Store, StoreError};
use tourbillon_durable::values::QueueName;

use super::line::{Line, state};
use super::{StoreProblem, now, tell};
use crate::replay::Verdict;

/// Writes every timer to `out`, progress and what cannot be read to `err`.
///
/// # Errors
/// The store cannot be opened, or the output cannot be written.
pub fn dump(
    directory: &Path,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<Verdict, StoreProblem> {
    if !directory.join(disk::FILE).exists() {
        let why =
            format!("{} holds no store: there is no {} in it", directory.display(), disk::FILE);
        return Err(StoreProblem::Said(why));
    }
    let mut store = DiskStore::new(directory);
    let head = store.open()?;
    let floors: BTreeMap<&QueueName, Generation> =
        head.queues.iter().map(|(name, row)| (name, row.floor)).collect();
    let (wall, mut timers, mut verdict) = (now(), 0_u64, Verdict::Passed);
    for row in store.snapshot()? {
        match row {
            Ok((_, record))
                if floors
                    .get(&record.spec.queue)
                    .is_some_and(|&floor| record.generation() < floor) => {}
            Ok((place, record)) => {
                let state = state(place, &record, wall);
                Line { state, record }.write(out)?;
                timers += 1;
                if timers.is_multiple_of(100_000) {
                    tell(err, timers);
                }
            }
            Err(StoreError::Damaged(damage)) => {
                verdict = Verdict::Failed;
                let _ = writeln!(err, "tourbillon: not dumped: {damage}");
            }
            Err(error) => return Err(error.into()),
        }
    }
    out.flush()?;
    tell(err, timers);
    Ok(verdict)
}
