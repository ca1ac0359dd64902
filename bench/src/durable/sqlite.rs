//! SQLite as a job table: a write-ahead log, synchronous FULL, an index on the due time, one on the keys.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::{Contestant, PAYLOAD, Timer};

struct Sqlite(Connection);

pub(super) fn open(directory: &Path) -> Result<Box<dyn Contestant>, String> {
    let made = Connection::open(directory.join("jobs.sqlite")).and_then(|connection| {
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
             CREATE TABLE jobs (id INTEGER PRIMARY KEY, queue TEXT, key TEXT, due INTEGER, payload BLOB);
             CREATE INDEX due ON jobs (due);
             CREATE UNIQUE INDEX keys ON jobs (queue, key) WHERE key IS NOT NULL;",
        )?;
        Ok(connection)
    });
    Ok(Box::new(Sqlite(made.map_err(|error| error.to_string())?)))
}

impl Contestant for Sqlite {
    fn store(&mut self, timers: &[Timer]) -> Result<Duration, String> {
        let sql = "INSERT INTO jobs (id, queue, key, due, payload) VALUES (?, 'orders', ?, ?, ?)";
        let begin = Instant::now();
        let mut done = || -> rusqlite::Result<()> {
            let transaction = self.0.transaction()?;
            let mut statement = transaction.prepare_cached(sql)?;
            for timer in timers {
                let (id, due) = (timer.generation as i64, timer.due as i64);
                statement.execute(params![id, timer.key, due, PAYLOAD])?;
            }
            drop(statement);
            transaction.commit()
        };
        done().map_err(|error| error.to_string())?;
        Ok(begin.elapsed())
    }
}
