//! A full disk: the commit fails and no earlier one is lost. Once there is space, the same process continues.
//!
//! The disk is a real one and the runtime retries by the system's clock, so the second test runs in real time.

use std::fs;
use std::time::{Duration, Instant};

use tourbillon_durable::disk::DiskStore;
use tourbillon_durable::store::{Op, Store, StoreError};
use tourbillon_durable::{Conflict, Durable, Error, Health, NewTimer, Refused};

use crate::scratch::{Mounted, Scratch, make, rows, skip, timer};

#[test]
fn a_full_disk_loses_nothing_and_the_same_process_goes_on() {
    let scratch = Scratch::new("full");
    let Some(mounted) = Mounted::new(scratch.path(), 8 << 20) else {
        return skip("a file system cannot be mounted: run it as root");
    };
    let ballast = mounted.path().join("ballast");
    fs::write(&ballast, vec![1; 3 << 20]).unwrap();
    let directory = mounted.path().join("store");
    let mut store = DiskStore::new(&directory);
    let mut epoch = store.open().unwrap().epoch;
    let batch = |from: u64| -> Vec<Op> {
        let timers = (from..from + 100).flat_map(|generation| make(timer(generation, generation)));
        timers.chain(rows(from + 100)).collect()
    };
    let mut durable = 0;
    let error = loop {
        match store.commit(epoch, &batch(durable)) {
            Ok(()) => durable += 100,
            Err(error) => break error,
        }
        assert!(durable < 100_000, "8 MiB hold no such number");
    };
    assert!(matches!(&error, StoreError::Failed(why) if why.contains("No space left")), "{error}");
    assert!(durable > 1000, "{durable}");
    // Poisoned: only an open makes the store usable again.
    assert_eq!(store.commit(epoch, &batch(durable)), Err(StoreError::Poisoned));
    // An open must write its epoch. Without space it fails, and may be retried.
    for _ in 0..3 {
        if let Ok(head) = store.open() {
            epoch = head.epoch;
            assert!(store.commit(epoch, &batch(durable + 1_000_000)).is_err(), "there is no room");
        }
    }
    fs::remove_file(&ballast).unwrap();
    let head = store.open().expect("there is room again");
    // A failed commit may have taken effect. Every durable one must be there.
    let next = head.shard.next_generation.0;
    assert!(next == durable || next == durable + 100 || next > 1_000_000, "{next} after {durable}");
    let mut living: Vec<u64> =
        store.snapshot().unwrap().map(|row| row.unwrap().1.generation().0).collect();
    living.sort_unstable();
    living.truncate(durable as usize);
    assert_eq!(living, (0..durable).collect::<Vec<_>>());
    store.commit(head.epoch, &batch(2_000_000)).expect("it writes again");
}

/// The same through the runtime: the outcome of the failed commit is unknown, and the runtime writes again within five
/// seconds after space becomes free.
#[test]
fn the_runtime_writes_again_within_five_seconds_of_room() {
    let scratch = Scratch::new("room");
    let Some(mounted) = Mounted::new(scratch.path(), 8 << 20) else {
        return skip("a file system cannot be mounted: run it as root");
    };
    let ballast = mounted.path().join("ballast");
    fs::write(&ballast, vec![1; 3 << 20]).unwrap();
    let durable = Durable::open(mounted.path().join("store")).unwrap();
    let queue = durable.queue("orders").unwrap();
    let batch = || {
        let timer = || NewTimer::after(Duration::from_secs(86_400)).payload(vec![7; 400]);
        queue.schedule_all((0..200).map(|_| timer()).collect(), Conflict::Refuse).wait()
    };
    let mut made = 0;
    let refused = loop {
        match batch() {
            Ok(_) => made += 200,
            Err(refused) => break refused,
        }
        assert!(made < 100_000, "8 MiB hold no such number");
    };
    let Refused::Request(Error::Unknown(why)) = refused.reason else { panic!("{refused}") };
    assert!(why.contains("No space left"), "{why}");
    assert!(matches!(durable.health(), Health::Failing(_)) || batch().is_err());
    fs::remove_file(&ballast).unwrap();
    let freed = Instant::now();
    while batch().is_err() {
        assert!(freed.elapsed() < Duration::from_secs(5), "{:?}", durable.health());
        std::thread::sleep(Duration::from_millis(20));
    }
    let scheduled = queue.count().wait().unwrap().unwrap().scheduled;
    assert!(scheduled >= made + 200, "{scheduled} after {made}");
    durable.close();
}
