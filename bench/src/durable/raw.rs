//! redb used directly: an appended table for each bucket, an index of keys, quick-repair. No checksums, no counters.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::time::{Duration, Instant};

use redb::{Builder, Database, TableDefinition};

use super::{Contestant, DAY, PAYLOAD, Timer};

const KEYS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");

struct Raw(Database);

pub(crate) fn open(directory: &Path) -> Result<Box<dyn Contestant>, String> {
    let database = Builder::new().set_cache_size(64 << 20).create(directory.join("raw.redb"));
    Ok(Box::new(Raw(database.map_err(|error| error.to_string())?)))
}

impl Contestant for Raw {
    fn store(&mut self, timers: &[Timer]) -> Result<Duration, String> {
        self.commit(timers).map_err(|error| error.to_string())
    }
}

impl Raw {
    fn commit(&mut self, timers: &[Timer]) -> Result<Duration, redb::Error> {
        // As long as our value, which has a queue, a key, moments and a checksum besides the payload.
        let value = [&PAYLOAD[..], &[1; 33]].concat();
        let begin = Instant::now();
        let mut transaction = self.0.begin_write()?;
        transaction.set_quick_repair(true);
        {
            let mut keys = None;
            let mut buckets = BTreeMap::new();
            for timer in timers {
                if let Some(key) = &timer.key {
                    if keys.is_none() {
                        keys = Some(transaction.open_table(KEYS)?);
                    }
                    let place = [timer.generation.to_le_bytes(), timer.due.to_le_bytes()].concat();
                    if let Some(keys) = &mut keys {
                        keys.insert(key.as_bytes(), &place[..])?;
                    }
                }
                let day = timer.due / DAY;
                let bucket = match buckets.entry(day) {
                    Entry::Occupied(there) => there.into_mut(),
                    Entry::Vacant(vacant) => {
                        let name = day.to_string();
                        let bucket: TableDefinition<'_, u64, &[u8]> = TableDefinition::new(&name);
                        vacant.insert(transaction.open_table(bucket)?)
                    }
                };
                bucket.insert(timer.generation, &value[..])?;
            }
        }
        transaction.commit()?;
        Ok(begin.elapsed())
    }
}
