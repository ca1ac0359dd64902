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

impl Sqlite {
    fn all(
        &mut self,
        sql: &str,
        timers: &[Timer],
        one: impl Fn(&mut rusqlite::CachedStatement<'_>, &Timer) -> rusqlite::Result<usize>,
    ) -> Result<Duration, String> {
        let begin = Instant::now();
        let mut done = || -> rusqlite::Result<()> {
            let transaction = self.0.transaction()?;
            let mut statement = transaction.prepare_cached(sql)?;
            for timer in timers {
                let changed = one(&mut statement, timer)?;
                assert_eq!(changed, 1, "one row");
            }
            drop(statement);
            transaction.commit()
        };
        done().map_err(|error| error.to_string())?;
        Ok(begin.elapsed())
    }
}

impl Contestant for Sqlite {
    fn store(&mut self, timers: &[Timer]) -> Result<Duration, String> {
        let sql = "INSERT INTO jobs (id, queue, key, due, payload) VALUES (?, 'orders', ?, ?, ?)";
        self.all(sql, timers, |statement, timer| {
            let (id, due) = (timer.generation as i64, timer.due as i64);
            statement.execute(params![id, timer.key, due, PAYLOAD])
        })
    }

    fn cancel(&mut self, timers: &[Timer]) -> Result<Duration, String> {
        let keyed = timers.first().is_some_and(|timer| timer.key.is_some());
        let sql = match keyed {
            true => "DELETE FROM jobs WHERE queue = 'orders' AND key = ?",
            false => "DELETE FROM jobs WHERE id = ?",
        };
        self.all(sql, timers, |statement, timer| match &timer.key {
            Some(key) => statement.execute(params![key]),
            None => statement.execute(params![timer.generation as i64]),
        })
    }
}
