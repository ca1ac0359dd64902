//! Compaction returns the space of removed rows to the disk, both during commits and when idle. It loses nothing, even
//! to kill -9 at a random moment (in real time).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tourbillon_durable::disk::{DiskStore, FILE, check};
use tourbillon_durable::record::{Place, Record};
use tourbillon_durable::store::{Op, Store};
use tourbillon_durable::values::Payload;

use crate::scratch::{Scratch, bucket, child, make, rows, timer, told};

/// A cycle of commits: four fill a bucket, four remove most of it, and each remaining one adds a single timer.
const FILLS: u64 = 4;
const FILLED: u64 = 3000;
const CYCLE: u64 = 100;
/// One timer in eight is kept.
const KEPT: u64 = 8;
/// Generations per cycle; those of the single timers come last.
const NUMBERS: u64 = FILLS * FILLED + CYCLE;

/// Large enough that the unused space after one cycle triggers a copy.
fn record(generation: u64) -> Record {
    let mut record = timer(generation, 5000);
    let spec = std::sync::Arc::make_mut(&mut record.spec);
    spec.payload = Payload::bytes(vec![generation as u8; 1500]);
    record
}

fn remove(generation: u64) -> Op {
    let record = record(generation);
    Op::Remove { from: Place::Bucket(bucket(&record)), record }
}

/// The generations that a commit adds and those that it removes, by the number of the commit.
fn work(number: u64) -> (Vec<u64>, Vec<u64>) {
    let (first, step) = (number / CYCLE * NUMBERS, number % CYCLE);
    let part = |step: u64| first + step * FILLED..first + (step + 1) * FILLED;
    match step {
        step if step < FILLS => (part(step).collect(), Vec::new()),
        step if step < 2 * FILLS => {
            let gone = part(step - FILLS).filter(|generation| generation % KEPT != 0);
            (Vec::new(), gone.collect())
        }
        step => (vec![first + FILLS * FILLED + step], Vec::new()),
    }
}

/// Makes the commit with this number. The shard's row holds the number of the next one.
fn commit(store: &mut DiskStore, epoch: u64, number: u64) {
    let (made, gone) = work(number);
    let made = made.into_iter().flat_map(|generation| make(record(generation)));
    let ops = made.chain(gone.into_iter().map(remove)).chain(rows(number + 1));
    store.commit(epoch, &ops.collect::<Vec<_>>()).unwrap();
}

/// Compares every row with those that the commits below `next` should have left.
fn compare(store: &mut DiskStore, next: u64) {
    let mut living = BTreeSet::new();
    for number in 0..next {
        let (made, gone) = work(number);
        living.extend(made);
        gone.iter().for_each(|generation| assert!(living.remove(generation)));
    }
    for row in store.snapshot().unwrap() {
        let (_, found) = row.unwrap();
        let generation = found.generation().0;
        assert!(living.remove(&generation), "{generation} is there, and should not be");
        assert_eq!(found, record(generation));
    }
    assert!(living.is_empty(), "{} are lost", living.len());
}

fn file(directory: &Path) -> std::fs::Metadata {
    std::fs::metadata(directory.join(FILE)).unwrap()
}

#[test]
fn room_is_given_back_when_nothing_else_is_done() {
    let scratch = Scratch::in_memory("tidy");
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    assert_eq!(store.tidy(), Ok(false), "there is nothing to do");
    (0..FILLS).for_each(|number| commit(&mut store, epoch, number));
    let full = file(scratch.path()).blocks();
    (FILLS..2 * FILLS).for_each(|number| commit(&mut store, epoch, number));
    let pieces = (0..1000).take_while(|_| store.tidy().unwrap()).count();
    let left = file(scratch.path()).blocks();
    assert!(left * 2 < full, "{left} blocks are left of {full} after {pieces} pieces");
    assert!((2..1000).contains(&pieces), "it ends: {pieces}");
    assert_eq!(store.tidy(), Ok(false));
    compare(&mut store, 2 * FILLS);
}

#[test]
fn a_file_that_is_mostly_unused_is_replaced_by_a_small_one() {
    let scratch = Scratch::in_memory("compact");
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    (0..FILLS).for_each(|number| commit(&mut store, epoch, number));
    let full = file(scratch.path()).blocks();
    // A snapshot of the old file stays readable after the file is replaced.
    let snapshot = store.snapshot().unwrap();
    (FILLS..2 * CYCLE).for_each(|number| commit(&mut store, epoch, number));
    let left = file(scratch.path()).blocks();
    assert!(left * 2 < full, "{left} blocks are left of {full}");
    assert_eq!(snapshot.filter_map(Result::ok).count() as u64, FILLS * FILLED);
    compare(&mut store, 2 * CYCLE);
    drop(store);
    assert!(!scratch.path().join(format!("{FILE}.new")).exists());
    let report = check(scratch.path(), |_| ()).unwrap();
    // The shard writes the counters; these commits bypass it, so the counters do not match.
    let counters = ["head", "the forecast"];
    assert!(report.damage.iter().all(|damage| counters.contains(&&damage.table[..])), "{report:?}");
    let mut store = DiskStore::new(scratch.path());
    store.open().unwrap();
    compare(&mut store, 2 * CYCLE);
}

#[test]
fn a_copy_that_cannot_be_made_harms_nothing() {
    let scratch = Scratch::in_memory("no-copy");
    let mut store = DiskStore::new(scratch.path());
    let epoch = store.open().unwrap().epoch;
    let inode = file(scratch.path()).ino();
    // The path of the copy is occupied, so the copy cannot be created.
    let taken = scratch.path().join(format!("{FILE}.new"));
    std::fs::create_dir(&taken).unwrap();
    (0..CYCLE).for_each(|number| commit(&mut store, epoch, number));
    assert_eq!(file(scratch.path()).ino(), inode);
    compare(&mut store, CYCLE);
    drop(store);
    std::fs::remove_dir(&taken).unwrap();
    let mut store = DiskStore::new(scratch.path());
    store.open().unwrap();
    compare(&mut store, CYCLE);
}

/// Commits until it is killed, and reports each commit when it is durable.
#[test]
fn child_compacts() {
    let Some(directory) = told() else { return };
    let mut store = DiskStore::new(directory);
    let head = store.open().unwrap();
    let first = head.shard.next_generation.0;
    // Ends the line that the test runner has begun.
    println!("\nopened {first}");
    for number in first.. {
        commit(&mut store, head.epoch, number);
        println!("committed {}", number + 1);
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn kill_9_while_a_file_is_copied_loses_nothing() {
    let rounds = if std::env::var_os("TOURBILLON_LONG").is_some() { 100 } else { 8 };
    let scratch = Scratch::in_memory("compact-kill");
    let (mut durable, mut seed, mut unfinished) = (0, 1_u64, 0);
    for round in 0..rounds {
        let mut command = child("compact::child_compacts", scratch.path());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines =
            BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut number = |word: &str| {
            let named = |line: String| line.strip_prefix(word)?.trim().parse::<u64>().ok();
            lines.find_map(named)
        };
        assert!(number("opened").unwrap() >= durable, "round {round}");
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Each cycle copies the file once.
        let copy = scratch.path().join(format!("{FILE}.new"));
        let end = Instant::now() + Duration::from_secs(10);
        while !copy.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros((seed >> 33) % 4000));
        process.kill().unwrap();
        process.wait().unwrap();
        while let Some(number) = number("committed") {
            durable = number;
        }
        unfinished += u64::from(copy.exists());
        let mut store = DiskStore::new(scratch.path());
        let next = store.open().unwrap().shard.next_generation.0;
        assert!(next >= durable, "round {round}: {durable} was reported, {next} is there");
        compare(&mut store, next);
        durable = next;
    }
    assert!(unfinished > 0, "no round ended in the middle of a copy");
}
