//! Checking and repairing: damage is named, nothing is changed unless a repair is requested, and a repair keeps every
//! readable row.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use redb::{Database, TableDefinition};
use tourbillon_durable::disk::{DiskStore, FILE, Report, check, repair};
use tourbillon_durable::record::Place;
use tourbillon_durable::store::{Op, QueueRow, Settings, Store, StoreError};

use crate::scratch::{NOW, Scratch, bucket, elsewhere, queue, timer};

/// Imports 600 timers, then removes every tenth. Returns the generations that are left.
fn stored(directory: &Path) -> BTreeSet<u64> {
    let mut store = DiskStore::new(directory);
    let epoch = store.open().unwrap().epoch;
    let wall = tourbillon_durable::values::Moment::from_millis(NOW);
    let mut import = tourbillon_durable::import::Import::new(&mut store, epoch, wall);
    import.queue(&queue(), Settings { paused: true, ..Settings::default() });
    for generation in 0..600 {
        if generation % 5 == 4 {
            let (place, record) = elsewhere(generation);
            import.add(place, record).unwrap();
        } else {
            let record = timer(generation, generation % 3 * 80_000_000);
            import.add(Place::Bucket(bucket(&record)), record).unwrap();
        }
    }
    import.finish().unwrap();
    let mut row = QueueRow { pending: 510, waiting: 30, out: 30, dead: 30, ..QueueRow::default() };
    row.remembered = 30;
    row.settings.paused = true;
    let mut ops = Vec::new();
    for generation in (0..600).step_by(10) {
        let record = timer(generation, generation % 3 * 80_000_000);
        let (queue, from) = (record.spec.queue.clone(), Place::Bucket(bucket(&record)));
        let cell = tourbillon_durable::bucket::Cell::of(bucket(&record).level(), record.due);
        ops.push(Op::Remove { from, record });
        ops.push(Op::Count { queue, cell, delta: -1 });
        row.pending -= 1;
    }
    ops.push(Op::Queue { name: queue(), row });
    store.commit(epoch, &ops).unwrap();
    (0..600).filter(|generation| generation % 10 != 0).collect()
}

fn read(directory: &Path) -> BTreeSet<u64> {
    let mut store = DiskStore::new(directory);
    let head = store.open().unwrap();
    assert_eq!(head.shard.next_generation.0, 600);
    let rows = store.snapshot().unwrap();
    rows.map(|row| row.unwrap().1.generation().0).collect()
}

/// Writes a value into a numbered table with redb alone, bypassing our code.
fn write(directory: &Path, table: &str, number: u64, value: &[u8]) {
    let database = Database::open(directory.join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    let definition: TableDefinition<'_, u64, &[u8]> = TableDefinition::new(table);
    transaction.open_table(definition).unwrap().insert(number, value).unwrap();
    transaction.commit().unwrap();
}

fn named(report: &Report) -> String {
    report.damage.iter().map(|damage| format!("{damage}\n")).collect()
}

#[test]
fn a_sound_store_is_left_as_it_is() {
    let scratch = Scratch::in_memory("sound");
    let living = stored(scratch.path());
    let before = fs::read(scratch.path().join(FILE)).unwrap();
    let mut told = 0;
    let report = check(scratch.path(), |timers| told = timers).unwrap();
    assert_eq!(named(&report), "");
    assert_eq!((report.timers, told), (living.len() as u64, living.len() as u64));
    let report = repair(scratch.path(), |_| {}).unwrap();
    assert_eq!(report.set_aside, None);
    assert_eq!(fs::read(scratch.path().join(FILE)).unwrap(), before);
    assert_eq!(read(scratch.path()), living);
}

#[test]
fn a_damaged_row_is_named_and_a_repair_keeps_the_rest() {
    let scratch = Scratch::in_memory("row");
    let mut living = stored(scratch.path());
    let path = scratch.path().join(FILE);
    let mut bytes = fs::read(&path).unwrap();
    let text = b"payload 123 payload 123 ";
    let at =
        bytes.windows(text.len()).position(|window| window == text).expect("it is in the file");
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let report = check(scratch.path(), |_| {}).unwrap();
    let said = named(&report);
    assert!(said.contains("the file's pages: "), "{said}");
    assert!(said.contains(", generation 123: the checksum of the value is "), "{said}");
    assert!(said.contains("it counts 140 timers and has 139"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), bytes, "a check changes nothing");
    let report = repair(scratch.path(), |_| {}).unwrap();
    let aside = report.set_aside.expect("the damaged file is kept");
    assert_eq!(fs::read(aside).unwrap(), bytes);
    living.remove(&123);
    assert_eq!(report.timers, living.len() as u64);
    assert_eq!(read(scratch.path()), living);
    assert_eq!(named(&check(scratch.path(), |_| {}).unwrap()), "", "it is sound now");
    let head = DiskStore::new(scratch.path()).open().unwrap();
    assert!(head.queues[0].1.settings.paused, "settings are kept");
}

#[test]
fn without_its_markers_a_bucket_is_refused_and_a_repair_asks_the_index() {
    let scratch = Scratch::in_memory("markers");
    let living = stored(scratch.path());
    let of = bucket(&timer(0, 0));
    write(scratch.path(), &format!("hour.{}.removed", of.start()), 0, b"nonsense");
    let mut store = DiskStore::new(scratch.path());
    store.open().unwrap();
    let query = |bucket| tourbillon_durable::store::Query::Bucket { bucket, after: None, limit: 9 };
    let refused = store.load(&query(of));
    let Err(StoreError::Damaged(damage)) = refused else { panic!("{refused:?}") };
    assert_eq!(damage.table, "the hour of 2027-01-15T08:00:00.000Z");
    assert_eq!(damage.row.as_deref(), Some("list 0 of its removed rows"));
    store.load(&query(bucket(&timer(1, 80_000_000)))).expect("the others go on");
    drop(store);
    let report = repair(scratch.path(), |_| {}).unwrap();
    assert!(named(&report).contains("list 0 of its removed rows"), "{}", named(&report));
    // For a chosen key, the index shows that the timer was removed. For an assigned key nothing does: its timer
    // reappears.
    let repaired = read(scratch.path());
    let unknown: BTreeSet<u64> = repaired.difference(&living).copied().collect();
    assert!(living.is_subset(&repaired));
    assert!(unknown.iter().all(|generation| generation % 30 != 0), "{unknown:?}");
}

#[test]
fn a_lost_row_of_the_head_is_made_anew() {
    let scratch = Scratch::in_memory("lost");
    let living = stored(scratch.path());
    let database = Database::open(scratch.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let head: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("head");
        let mut head = transaction.open_table(head).unwrap();
        let of = bucket(&timer(0, 0));
        let key = [b"b", &of.start().to_be_bytes()[..], &[2]].concat();
        assert!(head.remove(&key[..]).unwrap().is_some());
        head.insert(&b"qorders"[..], &b"nonsense"[..]).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    let report = repair(scratch.path(), |_| {}).unwrap();
    let said = named(&report);
    assert!(said.contains("it has timers, and no row in the head"), "{said}");
    assert!(said.contains("head, queue orders: the checksum"), "{said}");
    assert_eq!(read(scratch.path()), living);
    assert_eq!(named(&check(scratch.path(), |_| {}).unwrap()), "");
}

#[test]
fn there_must_be_a_store_and_nobody_in_it() {
    let scratch = Scratch::in_memory("nobody");
    let error = check(scratch.path(), |_| {}).unwrap_err().to_string();
    assert!(error.ends_with("holds no store: there is no timers.redb in it"), "{error}");
    assert!(!scratch.path().join(FILE).exists());
    let mut store = DiskStore::new(scratch.path());
    store.open().unwrap();
    let error = check(scratch.path(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("is in use by process"), "{error}");
}
