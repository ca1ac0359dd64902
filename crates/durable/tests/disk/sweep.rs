//! The sweep reclaims removed rows, a bounded part with each commit, and removes nothing else.

use std::collections::BTreeSet;

use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition, TableHandle};
use tourbillon_durable::disk::{DiskStore, FILE};
use tourbillon_durable::record::Place;
use tourbillon_durable::store::{Loaded, Op, Query, Store};

use crate::scratch::{Scratch, bucket, make, rows, timer};

const TIMERS: u64 = 20_000;

#[test]
fn removed_rows_are_swept_and_the_living_stay() {
    let scratch = Scratch::in_memory("sweep");
    let mut store = DiskStore::new(scratch.path());
    let mut epoch = store.open().unwrap().epoch;
    for from in (0..TIMERS).step_by(2000) {
        let timers = (from..from + 2000).flat_map(|generation| make(timer(generation, 5000)));
        store.commit(epoch, &timers.chain(rows(from + 2000)).collect::<Vec<_>>()).unwrap();
    }
    let of = bucket(&timer(0, 5000));
    let place = Place::Bucket(of);
    // Nine in ten are removed, in scattered order, so the sweep finds removed rows both behind and ahead of its
    // position. One in a hundred leaves the bucket first and returns during the sweep.
    let (gone, back): (Vec<u64>, Vec<u64>) = (0..TIMERS)
        .map(|nth| nth * 7919 % TIMERS)
        .filter(|generation| generation % 10 != 3)
        .partition(|generation| generation % 100 != 50);
    let remove = |&generation: &u64| {
        let record = timer(generation, 5000);
        Op::Remove { from: place, record }
    };
    let out = |&generation: &u64| Op::Put {
        from: Some(place),
        to: Place::Out(timer(generation, 5000).next_attempt),
        record: timer(generation, 5000),
    };
    let returns = |&generation: &u64| Op::Put {
        from: Some(Place::Out(timer(generation, 5000).next_attempt)),
        to: place,
        record: timer(generation, 5000),
    };
    store.commit(epoch, &back.iter().map(out).collect::<Vec<_>>()).unwrap();
    for (nth, chunk) in gone.chunks(2000).enumerate() {
        let mut ops: Vec<Op> = chunk.iter().map(remove).collect();
        if nth % 2 == 0 {
            let coming = back.iter().skip(nth * 30).take(60);
            ops.extend(coming.map(returns));
        } else {
            // A sweep also works before the store has loaded which rows are removed.
            drop(store);
            store = DiskStore::new(scratch.path());
            epoch = store.open().unwrap().epoch;
        }
        store.commit(epoch, &ops).unwrap();
    }
    let rest: Vec<Op> =
        back.iter().skip(gone.chunks(2000).len().div_ceil(2) * 60).map(returns).collect();
    store.commit(epoch, &rest).unwrap();
    for _ in 0..8 {
        store.commit(epoch, &rows(TIMERS)).unwrap();
    }
    let living: BTreeSet<u64> =
        (0..TIMERS).filter(|generation| generation % 10 == 3 || generation % 100 == 50).collect();
    // Checks in the same process, then after a restart.
    for _ in 0..2 {
        let query = Query::Bucket { bucket: of, after: None, limit: TIMERS as usize };
        let Loaded::Rows(found) = store.load(&query).unwrap() else { panic!("rows") };
        let found: BTreeSet<u64> = found.iter().map(|(_, row)| row.generation().0).collect();
        assert_eq!(found, living);
        drop(store);
        store = DiskStore::new(scratch.path());
        let head = store.open().unwrap();
        assert_eq!(head.buckets[0].1.count, living.len() as u64);
    }
    drop(store);
    let database = Database::open(scratch.path().join(FILE)).unwrap();
    let name = format!("hour.{}", of.start());
    let table: TableDefinition<'_, u64, &[u8]> = TableDefinition::new(&name);
    let rows = database.begin_read().unwrap().open_table(table).unwrap().len().unwrap();
    assert!(rows < living.len() as u64 + 5000, "{rows} rows are there for {} living", living.len());
}

/// A list of tombstones is lost during a sweep. The bucket is reported as damaged and is no longer swept; the store
/// opens, and commits to other buckets succeed.
#[test]
fn markers_that_cannot_be_read_stop_no_commit() {
    let scratch = Scratch::in_memory("marks");
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    let timers = (0..TIMERS).flat_map(|generation| make(timer(generation, 5000)));
    store.commit(epoch, &timers.chain(rows(TIMERS)).collect::<Vec<_>>()).unwrap();
    let of = bucket(&timer(0, 5000));
    let remove = |generation: u64| {
        let record = timer(generation, 5000);
        Op::Remove { from: Place::Bucket(of), record }
    };
    // So many removals that the sweep takes more than one commit.
    store.commit(epoch, &(0..15_000).map(remove).collect::<Vec<_>>()).unwrap();
    drop(store);
    let database = Database::open(scratch.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    let name = transaction.list_tables().unwrap().map(|table| table.name().to_owned());
    let name = name.into_iter().find(|name| name.ends_with(".removed")).unwrap();
    let marks: TableDefinition<u64, &[u8]> = TableDefinition::new(&name);
    transaction.open_table(marks).unwrap().insert(0, &b"nonsense"[..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    for generation in 0..9 {
        let far = make(timer(TIMERS + generation, 90_000_000));
        store.commit(epoch, &far.into_iter().chain(rows(TIMERS + 9)).collect::<Vec<_>>()).unwrap();
    }
    let damage = store.damage();
    let row = "list 0 of its removed rows";
    assert!(damage.iter().any(|damage| damage.row.as_deref() == Some(row)), "{damage:?}");
    let query = Query::Bucket { bucket: of, after: None, limit: 10 };
    assert!(store.load(&query).is_err(), "what was cancelled must not live again");
}
