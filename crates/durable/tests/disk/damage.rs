//! Damage: a flipped byte in every page of the file, and a truncated file. Returned rows must equal the stored ones,
//! missing rows must be named, and the process must not end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use redb::{Database, ReadableTable, TableDefinition};
use tourbillon_durable::bucket::Bucket;
use tourbillon_durable::disk::{DiskStore, FILE};
use tourbillon_durable::record::{Lane, Place, Record};
use tourbillon_durable::store::{Loaded, Op, Query, Store, StoreError};
use tourbillon_durable::values::Moment;

use crate::scratch::{NOW, Scratch, bucket, elsewhere, make, queue, rows, timer};

type Rows = BTreeMap<u64, (Place, Record)>;

/// A store with rows in every table, some of them removed. Returns the rows that are left.
fn stored(directory: &Path) -> Rows {
    let mut store = DiskStore::new(directory);
    let epoch = store.open().unwrap().epoch;
    let mut living = Rows::new();
    for batch in 0..30 {
        let mut ops = Vec::new();
        for generation in batch * 40..batch * 40 + 40 {
            if generation % 8 == 7 {
                let (to, record) = elsewhere(generation);
                living.insert(generation, (to, record.clone()));
                ops.push(Op::Put { from: None, to, record });
                continue;
            }
            let record = timer(generation, generation % 3 * 80_000_000);
            living.insert(generation, (Place::Bucket(bucket(&record)), record.clone()));
            ops.extend(make(record));
        }
        if let Some((from, record)) = living.remove(&(batch * 40)) {
            ops.push(Op::Remove { from, record });
        }
        ops.extend(rows(batch * 40 + 40));
        store.commit(epoch, &ops).unwrap();
    }
    living
}

/// Reads every row that the queries return; `Err` if a query fails.
fn pages(store: &mut DiskStore, buckets: &[Bucket]) -> Result<Rows, StoreError> {
    let mut found = Rows::new();
    let mut queries = vec![
        Query::Waiting {
            queue: queue(),
            lane: Lane::Pull,
            from: (Moment::ZERO, Default::default()),
            limit: 5000,
        },
        Query::Out { after: None, limit: 5000 },
        Query::Dead { queue: queue(), after: None, limit: 5000 },
        Query::Remembered { after: None, limit: 5000 },
    ];
    queries.extend(buckets.iter().map(|&bucket| Query::Bucket {
        bucket,
        after: None,
        limit: 5000,
    }));
    for query in queries {
        let Loaded::Rows(rows) = store.load(&query)? else { panic!("{query:?}") };
        found.extend(rows.into_iter().map(|(place, row)| (row.generation().0, (place, row))));
    }
    Ok(found)
}

/// The outcomes of flipped bytes.
#[derive(Debug, Default)]
struct Tally {
    harmless: u32,
    refused: u32,
    /// The store stayed open and named the rows it left out.
    named: u32,
    /// The store failed with an error.
    failed: u32,
    silent: Vec<usize>,
}

#[test]
fn a_flipped_byte_is_refused_or_named_and_the_rest_stays_available() {
    let scratch = Scratch::in_memory("flip");
    let (whole, copy) = (scratch.path().join("whole"), scratch.path().join("copy"));
    let living = stored(&whole);
    let bytes = fs::read(whole.join(FILE)).unwrap();
    fs::create_dir_all(&copy).unwrap();
    let (mut tally, mut kept) = (Tally::default(), usize::MAX);
    // Page 0 is the header. In each other page this selects a byte of its head, its keys or its values.
    let within = |page: usize| page + [2, 40, 1700][page / 4096 % 3];
    let places = (0..16).map(|at| at * 20);
    let places = places.chain((4096..bytes.len()).step_by(4096).map(within));
    for at in places {
        // A page that was never used contains no data.
        let page = at / 4096 * 4096;
        if bytes[page..page + 4096].iter().all(|&byte| byte == 0) {
            continue;
        }
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at / 4096 % 8);
        fs::write(copy.join(FILE), &flipped).unwrap();
        let mut store = DiskStore::new(&copy);
        let head = match store.open() {
            Ok(head) => head,
            Err(StoreError::Refused(why)) => {
                assert!(why.contains("timers.redb"), "it names the file: {why}");
                tally.refused += 1;
                continue;
            }
            Err(_) => {
                tally.failed += 1;
                continue;
            }
        };
        let buckets: Vec<Bucket> = head.buckets.iter().map(|bucket| bucket.0).collect();
        let found = match pages(&mut store, &buckets) {
            Ok(found) => found,
            Err(StoreError::Damaged(damage)) => {
                assert!(!damage.table.is_empty() && !damage.wrong.is_empty());
                tally.named += 1;
                continue;
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Failed(_) | StoreError::Poisoned), "{error}");
                tally.failed += 1;
                continue;
            }
        };
        for (generation, row) in &found {
            assert_eq!(living.get(generation), Some(row), "byte {at}: a row that was not stored");
        }
        match (found.len() == living.len(), store.damage().is_empty()) {
            (true, true) => tally.harmless += 1,
            (_, false) => {
                tally.named += 1;
                kept = kept.min(found.len());
            }
            (false, true) => tally.silent.push(at),
        }
    }
    println!("{tally:?}; at least {kept} of {} rows stayed available", living.len());
    assert!(tally.silent.is_empty(), "rows are missing and nothing is said: {tally:?}");
    assert!(tally.named >= 10 && tally.refused >= 3, "the bytes that matter were met: {tally:?}");
}

#[test]
fn a_file_that_was_cut_is_refused() {
    let scratch = Scratch::in_memory("cut");
    stored(scratch.path());
    let path = scratch.path().join(FILE);
    let bytes = fs::read(&path).unwrap();
    for length in
        [0, 1, 100, 320, 4095, 4096, 8192, bytes.len() / 2, bytes.len() - 4096, bytes.len() - 1]
    {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = DiskStore::new(scratch.path()).open().expect_err("a file that was cut");
        let said = error.to_string();
        assert!(said.contains("timers.redb is damaged: "), "{length}: {said}");
        assert_eq!(fs::read(&path).unwrap(), &bytes[..length], "{length}: it is left as it is");
    }
    fs::write(&path, &bytes).unwrap();
    DiskStore::new(scratch.path()).open().expect("the whole file");
}

/// Overwrites the values of a table whose keys match. Returns how many.
fn spoil(directory: &Path, table: &str, key: impl Fn(&[u8]) -> bool) -> usize {
    let database = Database::open(directory.join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    let of: TableDefinition<&[u8], &[u8]> = TableDefinition::new(table);
    let mut rows = transaction.open_table(of).unwrap();
    let keys: Vec<Vec<u8>> =
        rows.iter().unwrap().map(|row| row.unwrap().0.value().to_vec()).collect();
    let spoilt: Vec<_> = keys.iter().filter(|name| key(name)).collect();
    for name in &spoilt {
        rows.insert(&name[..], &b"nonsense"[..]).unwrap();
    }
    let count = spoilt.len();
    drop(rows);
    transaction.commit().unwrap();
    count
}

fn names(store: &DiskStore) -> String {
    let named = store.damage();
    named.iter().map(|damage| format!("{damage}\n")).collect()
}

/// Tests every kind of change to a timer whose index entry is lost. The entry is named as damage, and the next change
/// writes it again.
#[test]
fn a_lost_entry_of_the_index_stops_no_commit() {
    let scratch = Scratch::in_memory("index");
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    // One timer in three has a chosen key.
    let timers = (0..12).flat_map(|generation| make(timer(generation, 5000)));
    store.commit(epoch, &timers.chain(rows(12)).collect::<Vec<_>>()).unwrap();
    drop(store);
    assert_eq!(spoil(scratch.path(), "keys", |_| true), 4);
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    let at = |generation: u64| {
        (Place::Bucket(bucket(&timer(generation, 5000))), timer(generation, 5000))
    };
    let remove = |generation: u64| {
        let (from, record) = at(generation);
        Op::Remove { from, record }
    };
    store.commit(epoch, &[remove(0)]).expect("it is removed with its timer");
    let (from, record) = at(3);
    let to = Place::Waiting(Lane::Pull, record.next_attempt);
    store.commit(epoch, &[Op::Put { from: Some(from), to, record }]).expect("a move");
    assert!(
        names(&store).contains("the index of keys, key order-0 of orders"),
        "{}",
        names(&store)
    );
    let found = |store: &mut DiskStore, generation: u64| {
        let key = timer(generation, 5000).spec.key.clone();
        store.load(&Query::Keys(vec![(queue(), key)]))
    };
    let Ok(Loaded::Found(moved)) = found(&mut store, 3) else { panic!("it was made anew") };
    assert_eq!(moved[0].as_ref().map(|row| row.0), Some(to));
    assert_eq!(found(&mut store, 0), Ok(Loaded::Found(vec![None])));
    assert!(matches!(found(&mut store, 6), Err(StoreError::Damaged(_))));
    let prefix = Query::Prefix { queue: queue(), prefix: "order".into(), after: None, limit: 2 };
    let Loaded::Rows(listed) = store.load(&prefix).expect("the others are listed") else {
        panic!()
    };
    assert_eq!(listed.iter().map(|row| row.1.generation().0).collect::<Vec<_>>(), [3]);
    assert!(names(&store).contains("key order-9 of orders"), "{}", names(&store));
    // The shard removes discarded rows whenever it reads them. A lost index entry must not make that fail.
    store.commit(epoch, &[remove(6), remove(9)]).expect("both are removed");
}

#[test]
fn lost_counters_of_a_day_stop_no_commit() {
    let scratch = Scratch::in_memory("cells");
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    store.commit(epoch, &make(timer(0, 5000))).unwrap();
    drop(store);
    assert_eq!(spoil(scratch.path(), "cells", |_| true), 1);
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    let cells = Query::Cells { queue: queue(), from: 0, to: u64::MAX };
    for generation in 1..4 {
        // A timer of the next day, whose counters are intact.
        let far = make(timer(generation + 10, 90_000_000));
        let ops: Vec<Op> = make(timer(generation, 5000)).into_iter().chain(far).collect();
        store.commit(epoch, &ops).expect("the timers are made");
        assert!(matches!(store.load(&cells), Err(StoreError::Damaged(_))), "it is not made up");
    }
    assert!(names(&store).contains("the forecast, orders on "), "{}", names(&store));
    let next = Query::Cells { queue: queue(), from: NOW + 80_000_000, to: u64::MAX };
    let Ok(Loaded::Cells(counted)) = store.load(&next) else { panic!("the next day") };
    assert_eq!(counted.iter().map(|cell| cell.1).sum::<u64>(), 3);
}

/// A timer can return to a bucket whose tombstones are lost, and one that left that bucket is still found.
#[test]
fn lost_markers_stop_neither_a_commit_nor_a_look_elsewhere() {
    let scratch = Scratch::in_memory("lost-marks");
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    let timers = (0..6).flat_map(|generation| make(timer(generation, 5000)));
    store.commit(epoch, &timers.chain(rows(6)).collect::<Vec<_>>()).unwrap();
    let home = Place::Bucket(bucket(&timer(0, 5000)));
    let waits = |generation: u64| {
        let record = timer(generation, 5000);
        (Place::Waiting(Lane::Pull, record.next_attempt), record)
    };
    for generation in [0, 3] {
        let (to, record) = waits(generation);
        store.commit(epoch, &[Op::Put { from: Some(home), to, record }]).unwrap();
    }
    drop(store);
    let Place::Bucket(of) = home else { panic!("a bucket") };
    let database = Database::open(scratch.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    let name = format!("hour.{}.removed", of.start());
    let marks: TableDefinition<u64, &[u8]> = TableDefinition::new(&name);
    transaction.open_table(marks).unwrap().insert(0, &b"nonsense"[..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    let (from, record) = waits(3);
    store.commit(epoch, &[Op::Put { from: Some(from), to: home, record }]).expect("it comes back");
    let (place, record) = waits(0);
    let query = Query::Keys(vec![(queue(), record.spec.key.clone())]);
    assert_eq!(store.load(&query), Ok(Loaded::Found(vec![Some((place, record))])));
}
