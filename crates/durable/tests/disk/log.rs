//! The log: commits that only the log holds survive a crash, and damage to the log is reported.
//!
//! A crash is simulated by copying both files while the store is open: redb's file then holds only what was flushed.

use std::fs;
use std::path::{Path, PathBuf};

use tourbillon_durable::bucket::Bucket;
use tourbillon_durable::disk::{DiskStore, FILE, LOG_FILE, check, repair};
use tourbillon_durable::store::{Loaded, Op, Query, Store};

use super::scratch::{Scratch, make, rows, timer};

const BLOCK: usize = 4096;

/// Commits these generations, one timer per commit.
fn commit(store: &mut DiskStore, epoch: u64, generations: std::ops::RangeInclusive<u64>) {
    for generation in generations {
        let ops: Vec<Op> =
            make(timer(generation, 60_000)).into_iter().chain(rows(generation)).collect();
        store.commit(epoch, &ops).unwrap();
    }
}

/// An open store with ten timers that are only in its log.
fn logged(directory: &Path) -> DiskStore {
    let mut store = DiskStore::new(directory);
    let epoch = store.open().unwrap().epoch;
    commit(&mut store, epoch, 1..=10);
    store
}

/// Copies both files as a crash would leave them.
fn crashed(from: &Path, to: &Path) -> PathBuf {
    fs::create_dir_all(to).unwrap();
    for name in [FILE, LOG_FILE] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    to.to_path_buf()
}

/// The generations in a store.
fn generations(directory: &Path) -> Result<Vec<u64>, String> {
    let mut store = DiskStore::new(directory);
    let head = store.open().map_err(|error| error.to_string())?;
    let of =
        |bucket: Bucket| match store.load(&Query::Bucket { bucket, after: None, limit: 100_000 }) {
            Ok(Loaded::Rows(rows)) => rows.into_iter().map(|(_, row)| row.generation().0).collect(),
            other => panic!("{other:?}"),
        };
    let mut all: Vec<u64> =
        head.buckets.iter().map(|(bucket, _)| *bucket).flat_map::<Vec<u64>, _>(of).collect();
    all.sort_unstable();
    Ok(all)
}

#[test]
fn what_the_log_alone_holds_is_there_after_a_crash() {
    let scratch = Scratch::in_memory("log");
    let (whole, copy) = (scratch.path().join("whole"), scratch.path().join("copy"));
    let store = logged(&whole);
    crashed(&whole, &copy);
    drop(store);
    let alone = scratch.path().join("alone");
    fs::create_dir_all(&alone).unwrap();
    fs::copy(copy.join(FILE), alone.join(FILE)).unwrap();
    assert_eq!(generations(&alone).unwrap(), [0; 0], "redb has flushed nothing of them");
    let report = check(&copy, |_| ()).unwrap();
    assert_eq!((report.timers, report.damage), (10, Vec::new()), "a check reads the log, too");
    let all: Vec<u64> = (1..=10).collect();
    assert_eq!(generations(&copy).unwrap(), all);
    assert_eq!(generations(&copy).unwrap(), all, "and again");
    // After a clean close, redb's file alone is the whole store.
    fs::remove_file(whole.join(LOG_FILE)).unwrap();
    assert_eq!(generations(&whole).unwrap(), all);
}

#[test]
fn a_record_that_was_being_written_was_not_answered() {
    let scratch = Scratch::in_memory("log-torn");
    let (whole, copy) = (scratch.path().join("whole"), scratch.path().join("copy"));
    let _store = logged(&whole);
    let bytes = fs::read(whole.join(LOG_FILE)).unwrap();
    for (torn, left) in [(9 * BLOCK + 50, 9), (9 * BLOCK, 9), (50, 0)] {
        crashed(&whole, &copy);
        let zeros = vec![0; bytes.len() - torn];
        fs::write(copy.join(LOG_FILE), [&bytes[..torn], &zeros].concat()).unwrap();
        let all: Vec<u64> = (1..=left).collect();
        assert_eq!(generations(&copy).unwrap(), all, "{torn}");
    }
}

#[test]
fn a_damaged_record_is_named_and_repaired_without_it() {
    let scratch = Scratch::in_memory("log-damage");
    let (whole, copy) = (scratch.path().join("whole"), scratch.path().join("copy"));
    let _store = logged(&whole);
    for at in [0, 5, 9, 20, 26, 40, 200] {
        crashed(&whole, &copy);
        let mut bytes = fs::read(copy.join(LOG_FILE)).unwrap();
        bytes[4 * BLOCK + at] ^= 4;
        fs::write(copy.join(LOG_FILE), &bytes).unwrap();
        let why = generations(&copy).expect_err("an answered record was damaged");
        assert!(
            why.contains("timers.log is damaged: ") && why.contains("cannot be read"),
            "{at}: {why}"
        );
        assert_eq!(fs::read(copy.join(LOG_FILE)).unwrap(), bytes, "it is left as it is");
        let report = repair(&copy, |_| ()).unwrap();
        assert!(report.damage.iter().any(|damage| damage.table == LOG_FILE), "{report:?}");
        assert_eq!(generations(&copy).unwrap(), [1, 2, 3, 4, 6, 7, 8, 9, 10]);
        assert!(copy.join(format!("{LOG_FILE}.damaged")).exists());
        fs::remove_dir_all(&copy).unwrap();
    }
}

#[test]
fn a_log_of_another_store_is_left_alone_and_an_older_file_is_refused() {
    let scratch = Scratch::in_memory("log-other");
    let (whole, other) = (scratch.path().join("whole"), scratch.path().join("other"));
    let store = logged(&whole);
    drop(logged(&other));
    fs::copy(whole.join(LOG_FILE), other.join(LOG_FILE)).unwrap();
    assert_eq!(generations(&other).unwrap().len(), 10);
    drop(store);
    let older = fs::read(whole.join(FILE)).unwrap();
    let mut store = DiskStore::new(&whole);
    let epoch = store.open().unwrap().epoch;
    commit(&mut store, epoch, 11..=20);
    drop(store);
    fs::write(whole.join(FILE), older).unwrap();
    let why = generations(&whole).expect_err("the log goes on from a later state");
    assert!(why.contains("timers.log is damaged: "), "{why}");
}

#[test]
fn a_full_log_begins_anew() {
    let scratch = Scratch::in_memory("log-full");
    let (whole, copy) = (scratch.path().join("whole"), scratch.path().join("copy"));
    let mut store = DiskStore::new(&whole);
    let epoch = store.open().unwrap().epoch;
    let (mut done, mut largest) = (0, 0);
    // A record takes a block and the log grows to the size of redb's file, so these commits fill it more than once.
    for more in [250, 3, 1, 1, 1, 1, 1, 5, 400, 700] {
        commit(&mut store, epoch, done + 1..=done + more);
        done += more;
        crashed(&whole, &copy);
        let all: Vec<u64> = (1..=done).collect();
        assert_eq!(generations(&copy).unwrap(), all);
        largest = fs::metadata(whole.join(LOG_FILE)).unwrap().len().max(largest);
    }
    assert!((1 << 20..=16 << 20).contains(&largest), "it was full, and no larger: {largest}");
}
