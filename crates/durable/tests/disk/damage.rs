//! Damage: a flipped byte in every page of the file, and a file that was cut. What is returned is what was stored;
//! what is missing is named; nothing ends the process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tourbillon_durable::bucket::Bucket;
use tourbillon_durable::disk::{DiskStore, FILE};
use tourbillon_durable::record::{Lane, Place, Record};
use tourbillon_durable::store::{Loaded, Op, Query, Store, StoreError};
use tourbillon_durable::values::Moment;

use crate::scratch::{Scratch, bucket, elsewhere, make, queue, rows, timer};

type Rows = BTreeMap<u64, (Place, Record)>;

/// A store with rows in every table, some of them removed, and what lives in it.
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
            let (queue, key) = (record.spec.queue.clone(), record.spec.key.clone());
            ops.push(Op::Remove { from, queue, key, generation: record.generation() });
        }
        ops.extend(rows(batch * 40 + 40));
        store.commit(epoch, &ops).unwrap();
    }
    living
}

/// Everything that a store returns of its rows, by pages; `Err` if a page is refused.
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
        Query::Remembered { limit: 5000 },
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

/// What became of a flipped byte.
#[derive(Debug, Default)]
struct Tally {
    harmless: u32,
    refused: u32,
    /// The store went on, and named what it left out.
    named: u32,
    /// The store failed, and says so.
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
    // The first page is the header; of each other one, a byte in its head, among its keys or among its values.
    let within = |page: usize| page + [2, 40, 1700][page / 4096 % 3];
    let places = (0..16).map(|at| at * 20);
    let places = places.chain((4096..bytes.len()).step_by(4096).map(within));
    for at in places {
        // A page that was never used has nothing to lose.
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
