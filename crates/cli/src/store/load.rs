//! Loading lines of JSON into an empty store.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;

use tourbillon_durable::disk::{self, DiskStore};
use tourbillon_durable::dump::Line;
use tourbillon_durable::import::Import;
use tourbillon_durable::store::Store;

use super::{StoreProblem, now, tell};

/// Loads lines into the store of a directory, which must have no timers and is created if necessary.
///
/// All lines are loaded, or none. `name` is the source of the lines, for messages.
///
/// # Errors
/// If a line is not a timer, two timers have the same key or generation, the store has timers, or it cannot be written.
pub fn load(
    directory: &Path,
    name: &str,
    lines: impl BufRead,
    err: &mut impl Write,
) -> Result<u64, StoreProblem> {
    let mut store = DiskStore::new(directory);
    let head = store.open()?;
    if head.shard.next_generation.0 > 0 || !head.queues.is_empty() {
        let shown = directory.display();
        let why = format!("{shown} has timers already: load into a directory that has none");
        return Err(StoreProblem::Said(why));
    }
    let loaded = fill(&mut store, head.epoch, name, lines, err);
    if loaded.is_err() {
        // The store had no timers. Without the file, the next attempt starts in the same state as this one.
        drop(store);
        let _ = fs::remove_file(directory.join(disk::FILE));
    }
    loaded
}

fn fill(
    store: &mut DiskStore,
    epoch: u64,
    name: &str,
    lines: impl BufRead,
    err: &mut impl Write,
) -> Result<u64, StoreProblem> {
    let wall = now();
    let mut import = Import::new(store, epoch, wall);
    // A bit set: 64 generations in each word.
    let mut seen: HashMap<u64, u64> = HashMap::new();
    let mut timers = 0;
    for (number, line) in lines.lines().enumerate() {
        let at = |wrong: String| StoreProblem::Said(format!("{name}:{}: {wrong}", number + 1));
        let line = line.map_err(|error| at(format!("cannot be read: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let (place, record) = match Line::read(&line).map_err(at)? {
            // The line describes the store that was dumped, not this one.
            Line::Store(_) => continue,
            Line::Queue(queue, settings) => {
                import.queue(&queue, settings);
                continue;
            }
            Line::Unreadable(what) => {
                let _ = writeln!(err, "tourbillon: {name}:{}: the dump lacks {what}", number + 1);
                continue;
            }
            Line::Timer(timer) => timer.placed(wall),
        };
        let generation = record.generation().0;
        let (word, bit) = (seen.entry(generation >> 6).or_default(), 1 << (generation & 63));
        if *word & bit != 0 {
            return Err(at(format!("generation {generation} is there twice")));
        }
        *word |= bit;
        import.add(place, record).map_err(|error| at(error.to_string()))?;
        timers += 1;
        if timers % 100_000 == 0 {
            tell(err, timers);
        }
    }
    import.finish()?;
    tell(err, timers);
    Ok(timers)
}
