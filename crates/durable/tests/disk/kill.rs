//! kill -9 of a process that commits, at random moments in real time. The parent keeps a ledger: after the next open,
//! every commit that the child has reported must be complete.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use tourbillon_durable::disk::DiskStore;
use tourbillon_durable::record::Place;
use tourbillon_durable::store::{Op, Store};

use crate::scratch::{Scratch, bucket, child, make, rows, timer, told};

/// Each commit adds this many timers and removes the first timer of the previous commit.
const BATCH: u64 = 7;

/// Commits until it is killed, and reports each commit when it is durable.
#[test]
fn child_commits() {
    let Some(directory) = told() else { return };
    let mut store = DiskStore::new(directory);
    let head = store.open().unwrap();
    let mut next = head.shard.next_generation.0;
    // Ends the line that the test runner has begun.
    println!("\nopened {next}");
    loop {
        let mut ops = Vec::new();
        if next > 0 {
            let record = timer(next - BATCH, delay(next - BATCH));
            ops.push(Op::Remove { from: Place::Bucket(bucket(&record)), record });
        }
        for generation in next..next + BATCH {
            ops.extend(make(timer(generation, delay(generation))));
        }
        next += BATCH;
        ops.extend(rows(next));
        store.commit(head.epoch, &ops).unwrap();
        println!("committed {next}");
        std::io::stdout().flush().unwrap();
    }
}

/// The delay of a timer: from zero to four days.
fn delay(generation: u64) -> u64 {
    generation % 50 * 7_000_000
}

#[test]
fn what_was_committed_survives_kill_9() {
    let rounds = if std::env::var_os("TOURBILLON_LONG").is_some() { 300 } else { 20 };
    let scratch = Scratch::new("kill");
    let (mut durable, mut seed) = (0, 1_u64);
    for round in 0..rounds {
        let mut command = child("kill::child_commits", scratch.path());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let patience = Duration::from_micros(seed >> 33).min(Duration::from_millis(60));
        let mut killer = Some(process);
        let mut reported = Vec::new();
        // Output still in the pipe after the kill counts: the child had reported it.
        for line in output.lines().map_while(Result::ok) {
            let Some((word, number)) = line.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match word {
                "opened" => {
                    assert!(number >= durable, "round {round}: {number} after {durable}");
                    std::thread::sleep(patience);
                    let mut process = killer.take().expect("it opens once");
                    process.kill().unwrap();
                    process.wait().unwrap();
                }
                "committed" => reported.push(number),
                _ => {}
            }
        }
        assert!(killer.is_none(), "round {round}: the child did not open the store");
        durable = reported.last().copied().unwrap_or(durable);
        durable = check(&scratch, durable, round);
    }
    assert!(durable > rounds * BATCH, "the child was given time to commit: {durable}");
}

/// Opens the store, compares every row with the ledger and returns the next generation.
fn check(scratch: &Scratch, durable: u64, round: u64) -> u64 {
    let mut store = DiskStore::new(scratch.path());
    let head = store.open().unwrap();
    let next = head.shard.next_generation.0;
    assert!(next >= durable, "round {round}: {durable} was reported, {next} is there");
    assert!(next.is_multiple_of(BATCH), "round {round}: a part of a commit");
    let mut living: Vec<u64> = Vec::new();
    for row in store.snapshot().unwrap() {
        let (place, record) = row.unwrap();
        let generation = record.generation().0;
        let expected = timer(generation, delay(generation));
        assert_eq!(place, Place::Bucket(bucket(&expected)));
        assert_eq!(record, expected, "round {round}");
        living.push(generation);
    }
    living.sort_unstable();
    // Each commit removed the first timer of the previous one, so only the last commit still has its first timer.
    let expected: Vec<u64> = (0..next)
        .filter(|generation| generation % BATCH > 0 || generation + BATCH == next)
        .collect();
    assert_eq!(living, expected, "round {round}");
    let counted: u64 = head.buckets.iter().map(|bucket| bucket.1.count).sum();
    assert_eq!(counted, living.len() as u64, "round {round}: the head counts them");
    next
}
