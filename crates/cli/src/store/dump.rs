//! Dumping a store as lines of JSON.

use std::io::Write;
use std::path::Path;

use tourbillon_durable::disk::{self, DiskStore};
use tourbillon_durable::dump::{Dump, unreadable};
use tourbillon_durable::store::{Image, Store, StoreError};

use super::{StoreProblem, now, tell};
use crate::replay::Verdict;

/// Writes every timer to `out`, and progress and unreadable timers to `err`.
///
/// # Errors
/// If the store cannot be opened, or the output cannot be written.
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
    let image = Image { shard: head.shard, queues: head.queues, rows: store.snapshot()? };
    let before = 1 + image.queues().count() as u64;
    let (mut lines, mut verdict) = (0_u64, Verdict::Passed);
    for line in Dump::new(image, now()) {
        match line {
            Ok(line) => {
                out.write_all(line.as_bytes())?;
                lines += 1;
                if lines.is_multiple_of(100_000) {
                    tell(err, lines - before);
                }
            }
            Err(StoreError::Damaged(damage)) => {
                verdict = Verdict::Failed;
                let _ = writeln!(err, "tourbillon: not dumped: {damage}");
                out.write_all(unreadable(&StoreError::Damaged(damage)).as_bytes())?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    out.flush()?;
    tell(err, lines - before);
    Ok(verdict)
}
