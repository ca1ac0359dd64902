//! Round trips with edge values, and invalid bytes.

use std::sync::Arc;

use super::*;
use crate::bucket::{Bucket, Level};
use crate::conformance::Random;
use crate::record::{Fate, Generation, Lane, Lease, Place, Record, Spec};
use crate::store::{Filling, QueueRow, Settings, ShardRow};
use crate::values::{
    Key, Missed, Moment, Payload, QueueName, Recurrence, Retry, Rhythm, Secret, Span, Webhook,
};

const TABLE: &str = "out";

/// Encodes and decodes a row. Also decodes it under another key or table, truncated, with flipped bits, and altered.
fn round_trip<R: Row + PartialEq + fmt::Debug>(row: &R, random: &mut Random) {
    let value = encode(TABLE, b"key", row);
    assert_eq!(decode::<R>(TABLE, b"key", &value).as_ref(), Ok(row));
    assert!(decode::<R>(TABLE, b"kez", &value).is_err(), "another key");
    assert!(decode::<R>("dead", b"key", &value).is_err(), "another table");
    for length in 0..value.len() {
        assert!(decode::<R>(TABLE, b"key", &value[..length]).is_err(), "cut at {length}");
    }
    let mut flipped = value.clone();
    for at in 0..value.len() {
        let bit = 1 << random.below(8);
        flipped[at] ^= bit;
        let wrong = decode::<R>(TABLE, b"key", &flipped).expect_err("a flipped bit");
        assert!(matches!(wrong.wrong, Wrong::Checksum { .. }), "{wrong}");
        flipped[at] ^= bit;
    }
    // Wrong bytes with a matching checksum must not cause a panic. If they decode to a row, that row can be encoded.
    let mut body = value[..value.len() - 4].to_vec();
    for _ in 0..4 {
        let at = 1 + random.below(body.len() as u64 - 1) as usize;
        match random.below(3) {
            0 => body[at] = random.edge() as u8,
            1 => body.truncate(at.max(2)),
            _ => body.insert(at, random.edge() as u8),
        }
        let sum = checksum(TABLE, b"key", &body);
        let sealed = [&body[..], &sum.to_le_bytes()].concat();
        if let Ok(other) = decode::<R>(TABLE, b"key", &sealed) {
            let again = encode(TABLE, b"key", &other);
            assert_eq!(decode::<R>(TABLE, b"key", &again).as_ref(), Ok(&other));
        }
    }
}

impl Random {
    /// A number near a power of two, or near zero.
    fn edge(&mut self) -> u64 {
        let power = 1_u64 << self.below(64);
        power.wrapping_add(self.below(3)).wrapping_sub(1)
    }

    fn moment(&mut self) -> Moment {
        [Moment::ZERO, Moment::MAX, Moment::from_millis(self.edge())][self.below(3) as usize]
    }

    fn span(&mut self) -> Span {
        [Span::ZERO, Span::MAX, Span::from_millis(self.edge())][self.below(3) as usize]
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Random) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| value(self))
    }

    fn generation(&mut self) -> Generation {
        Generation(self.edge() % (1 << 53))
    }

    fn retry(&mut self) -> Retry {
        let (attempts, first) = (1 + self.below(u64::from(u32::MAX)) as u32, self.span());
        let factor = [1.0, 1e6, 1.5][self.below(3) as usize];
        let jitter = [0.0, 1.0, f64::MIN_POSITIVE][self.below(3) as usize];
        Retry { attempts, first, factor, longest: self.span(), jitter }
    }

    fn recurrence(&mut self) -> Recurrence {
        let every = Rhythm::every(Span::from_secs(1 + self.edge() / 2)).expect("a period");
        let cron = Rhythm::cron("*/5 * * * *", "UTC").expect("a rhythm");
        Recurrence {
            rhythm: if self.below(2) == 0 { every } else { cron },
            missed: [Missed::Skip, Missed::Once, Missed::All][self.below(3) as usize],
            until: self.maybe(Random::moment),
            times: self.maybe(Random::edge),
        }
    }

    fn webhook(&mut self) -> Webhook {
        let header = |n: u64| ("n".repeat(1 + n as usize), Secret::new("v".repeat(n as usize)));
        Webhook {
            url: "u".repeat(1 + self.below(300) as usize),
            headers: (0..self.below(4)).map(header).collect(),
            timeout: Span::from_millis([1000, 60_000][self.below(2) as usize]),
        }
    }

    fn fate(&mut self) -> Fate {
        let acked = Fate::Acked { occurrence: self.edge(), attempt: self.edge() as u32 };
        let other = [Fate::Open, Fate::Nacked, Fate::Lapsed, Fate::Released, Fate::Moved];
        let more = [Fate::GivenUp, Fate::Cancelled, Fate::CancelledOut, acked];
        [&other[..], &more].concat()[self.below(9) as usize]
    }

    fn record(&mut self) -> Record {
        let generation = self.generation();
        let due = self.moment();
        let keys = [
            Key::assigned(generation.0, due.millis()),
            // A key assigned to another generation, and one that was never assigned.
            Key::assigned(generation.0 ^ 1, due.millis()),
            Key::assigned(generation.0, u64::MAX),
            Key::new("k").expect("a key"),
            Key::new(&"ä".repeat(128)).expect("a key"),
        ];
        let length = [0, 1, 127, 128, 300][self.below(5) as usize];
        let spec = Spec {
            generation,
            queue: QueueName::new(&"q".repeat(1 + self.below(64) as usize)).expect("a name"),
            key: keys[self.below(5) as usize].clone(),
            created: self.moment(),
            payload: match self.below(2) {
                0 => Payload::bytes(vec![self.edge() as u8; length]),
                _ => Payload::json("7".repeat(length)),
            },
            recurrence: self.maybe(Random::recurrence),
            remember: self.span(),
            retry: self.maybe(Random::retry).unwrap_or_default(),
            expires: self.maybe(Random::span),
            webhook: self.maybe(Random::webhook).map(Arc::new),
        };
        Record {
            spec: Arc::new(spec),
            due,
            next_attempt: self.maybe(Random::moment).unwrap_or(due),
            behind: self.maybe(Random::moment),
            occurrence: self.maybe(Random::edge).unwrap_or(1),
            attempt: self.maybe(Random::edge).unwrap_or(0) as u32,
            failed: self.maybe(Random::edge).unwrap_or(0) as u32,
            fate: self.fate(),
            lease: self.maybe(|random| Lease { until: random.moment(), length: random.span() }),
            last_error: self.maybe(|random| "é".repeat(random.below(200) as usize).into()),
        }
    }

    fn place(&mut self) -> Place {
        let at = self.moment();
        match self.below(6) {
            0 => Place::Waiting(Lane::ALL[self.below(2) as usize], at),
            1 => Place::Out(at),
            2 => Place::Dead(at),
            3 => Place::Remembered(at),
            _ => Place::Bucket(Bucket::of(Level::ALL[self.below(6) as usize], at)),
        }
    }
}

#[test]
fn records_survive_a_round_trip_and_nothing_else_does() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let record = random.record();
        round_trip(&record, &mut random);
        let value = encode("t", b"k", &record);
        let (queue, next_attempt) = decode_order("t", b"k", &value).unwrap();
        assert_eq!((queue, next_attempt), (record.spec.queue.as_str(), record.next_attempt));
        assert!(decode_order("t", b"j", &value).is_err(), "the checksum is verified");
    }
}

#[test]
fn rows_survive_a_round_trip_and_nothing_else_does() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let row = ShardRow {
            next_generation: random.generation(),
            wall: random.moment(),
            name: random.edge(),
        };
        round_trip(&ShardState { epoch: random.edge(), row }, &mut random);
        let (remember, dead_keep) = (random.span(), random.span());
        let most = |random: &mut Random| random.edge() as u32;
        let (rate, concurrency) = (random.maybe(most), random.maybe(most));
        let (paused, retry) = (seed % 2 == 0, random.retry());
        let webhook = random.maybe(Random::webhook).map(Arc::new);
        let settings = Settings { paused, retry, remember, dead_keep, rate, concurrency, webhook };
        let (pending, waiting) = (random.edge(), random.edge());
        let (watched, out, dead) = (random.edge(), random.edge(), random.edge());
        let row = QueueRow {
            settings,
            pending,
            waiting,
            waiting_push: random.edge(),
            watched,
            out,
            dead,
            remembered: random.edge(),
            floor: random.generation(),
            discarded: random.edge(),
            deleted: seed % 3 == 0,
        };
        round_trip(&row, &mut random);
        let filling = Filling { count: random.edge(), bytes: random.edge() };
        let (removed, next_marks) = (random.edge(), random.edge());
        round_trip(&BucketRow { filling, removed, next_marks }, &mut random);
        let home = Home { generation: random.generation(), moment: random.moment() };
        round_trip(&home, &mut random);
        let place = random.place();
        round_trip(&place, &mut random);
        let count = random.edge();
        round_trip(&count, &mut random);
        let mut cells = DayCells { day: random.edge(), ..DayCells::default() };
        (cells.minutes[0], cells.minutes[1439]) = (random.edge(), 1 + random.below(9));
        for _ in 0..seed % 9 {
            cells.minutes[random.below(1440) as usize] = random.edge();
        }
        round_trip(&cells, &mut random);
        let marks = (0..random.below(40)).map(|_| (random.generation(), random.below(2) == 0));
        let marks = Marks(marks.collect::<Vec<_>>());
        if !marks.0.is_empty() {
            round_trip(&marks, &mut random);
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let value = encode(TABLE, b"k", &7_u64);
    let sealed = |body: &[u8]| {
        let sum = checksum(TABLE, b"k", body);
        let error = decode::<u64>(TABLE, b"k", &[body, &sum.to_le_bytes()].concat());
        error.expect_err("it is wrong").to_string()
    };
    assert_eq!(sealed(&[2, 7]), "the value has version 2; this program knows 1");
    assert_eq!(sealed(&[1, 7, 7]), "1 bytes follow the value");
    assert_eq!(sealed(&[1, 0x80]), "the number is cut short");
    let large = [&[1], &[0xff; 9][..], &[2]].concat();
    assert_eq!(sealed(&large), "the number is not valid: an integer above 2^64");
    assert_eq!(
        decode::<u64>(TABLE, b"k", &value[..3]).unwrap_err().to_string(),
        "the value is cut short"
    );
    let other = decode::<u64>(TABLE, b"l", &value).unwrap_err().to_string();
    assert!(other.starts_with("the checksum of the value is "), "{other}");
}

#[test]
fn a_plain_timer_is_small() {
    let generation = Generation(10_000_000);
    let due = Moment::from_millis(1_800_000_000_000);
    let spec = Spec {
        generation,
        queue: QueueName::new("orders").expect("a name"),
        key: Key::assigned(generation.0, due.millis()),
        created: due.back(Span::from_secs(1_800)),
        payload: Payload::bytes(vec![1; 100]),
        recurrence: None,
        remember: Span::ZERO,
        retry: Retry::default(),
        expires: None,
        webhook: None,
    };
    let record = Record::new(spec, due);
    assert_eq!(encode("hour", &generation.0.to_be_bytes(), &record).len(), 133);
}
