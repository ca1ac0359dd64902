//! Tables: their names and keys. Pure; the only place that defines how a row is addressed on disk.
//!
//! | table | key | value |
//! |---|---|---|
//! | `head` | `format`, `shard`, `log`, `q` + queue, `b` + bucket | what an opening reads: small, whatever is pending |
//! | `hour.START` and so on | generation | rows of a bucket, appended |
//! | `hour.START.removed` | 0, 1, 2 … | lists of rows that were removed from it |
//! | `waiting`, `waiting.push`, `dead` | queue, moment, generation | rows |
//! | `remembered` | moment, generation | rows |
//! | `out` | next attempt, generation | rows |
//! | `keys` | queue, key | the generation and home of a timer with a chosen key |
//! | `places` | generation | the place of a timer that is not at home |
//! | `cells` | queue, start of the day | counters of the forecast, a row for each day |
//!
//! Integers in keys are big-endian, so that bytes compare as numbers do. A queue's name is followed by a zero byte,
//! which no name contains, so the keys of a queue whose name is a prefix of another's stay apart.

use redb::TableDefinition;

use crate::bucket::{Bucket, Cell, Level};
use crate::codec::DayCells;
use crate::record::{Generation, Lane, Place};
use crate::values::{Moment, QueueName};

/// A table of a bucket: rows by generation, or lists of markers by number.
pub(super) type Numbered<'a> = TableDefinition<'a, u64, &'static [u8]>;
/// Any other table.
pub(super) type Plain<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;

/// The tables that always exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Small {
    Head,
    Waiting,
    WaitingPush,
    Out,
    Dead,
    Remembered,
    Keys,
    Places,
    Cells,
}

impl Small {
    pub(super) const ALL: [Small; 9] = [
        Small::Head,
        Small::Waiting,
        Small::WaitingPush,
        Small::Out,
        Small::Dead,
        Small::Remembered,
        Small::Keys,
        Small::Places,
        Small::Cells,
    ];

    /// Those that hold rows of timers.
    pub(super) const ROWS: [Small; 5] =
        [Small::Waiting, Small::WaitingPush, Small::Out, Small::Dead, Small::Remembered];

    /// The waiting rows of a lane.
    pub(super) const fn waiting(lane: Lane) -> Self {
        match lane {
            Lane::Pull => Small::Waiting,
            Lane::Push => Small::WaitingPush,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Small::Head => "head",
            Small::Waiting => "waiting",
            Small::WaitingPush => "waiting.push",
            Small::Out => "out",
            Small::Dead => "dead",
            Small::Remembered => "remembered",
            Small::Keys => "keys",
            Small::Places => "places",
            Small::Cells => "cells",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Small::ALL.into_iter().find(|small| small.name() == name)
    }

    pub(super) const fn definition(self) -> Plain<'static> {
        TableDefinition::new(self.name())
    }
}

/// The keys of `head`.
pub(super) const FORMAT: &[u8] = b"format";
pub(super) const SHARD: &[u8] = b"shard";
pub(super) const LOG: &[u8] = b"log";
pub(super) const QUEUE: u8 = b'q';
pub(super) const BUCKET: u8 = b'b';

const LEVELS: [(&str, Level); 6] = [
    ("second", Level::Second),
    ("minute", Level::Minute),
    ("hour", Level::Hour),
    ("day", Level::Day),
    ("month", Level::Month),
    ("era", Level::Era),
];

/// The name of a bucket's table.
pub(super) fn bucket_name(bucket: Bucket) -> String {
    let (name, _) = LEVELS[bucket.level() as usize];
    format!("{name}.{}", bucket.start())
}

/// The name of a bucket's table of markers.
pub(super) fn marks_name(bucket: Bucket) -> String {
    format!("{}.removed", bucket_name(bucket))
}

/// The bucket that a table's name denotes.
pub(super) fn bucket_of(name: &str) -> Option<Bucket> {
    let (level, start) = name.split_once('.')?;
    let &(_, level) = LEVELS.iter().find(|(name, _)| *name == level)?;
    let start = start.strip_suffix(".removed").unwrap_or(start).parse().ok()?;
    Some(Bucket::of(level, Moment::from_millis(start))).filter(|bucket| bucket.start() == start)
}

/// Names a bucket, for messages.
pub(super) fn describe(bucket: Bucket) -> String {
    let (name, _) = LEVELS[bucket.level() as usize];
    format!("the {name} of {}", Moment::from_millis(bucket.start()))
}

pub(super) fn queue_key(queue: &QueueName) -> Vec<u8> {
    [&[QUEUE], queue.as_str().as_bytes()].concat()
}

pub(super) fn bucket_key(bucket: Bucket) -> Vec<u8> {
    [&[BUCKET][..], &bucket.start().to_be_bytes(), &[bucket.level() as u8]].concat()
}

/// The bucket that a key of `head` denotes.
pub(super) fn bucket_of_key(key: &[u8]) -> Option<Bucket> {
    let (start, level) = key.strip_prefix(&[BUCKET])?.split_first_chunk::<8>()?;
    let &[level] = level else { return None };
    let start = u64::from_be_bytes(*start);
    let bucket = Bucket::of(Level::from_number(level)?, Moment::from_millis(start));
    (bucket.start() == start).then_some(bucket)
}

/// Names a key of `head`, for messages.
pub(super) fn name_of_head_key(key: &[u8]) -> String {
    match (key.first(), bucket_of_key(key)) {
        (_, Some(bucket)) => describe(bucket),
        (Some(&QUEUE), _) => format!("queue {}", String::from_utf8_lossy(&key[1..])),
        _ => String::from_utf8_lossy(key).into_owned(),
    }
}

/// The prefix of all keys of a queue.
pub(super) fn of_queue(queue: &QueueName) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key.extend_from_slice(queue.as_str().as_bytes());
    key.push(0);
    key
}

pub(super) fn index_key(queue: &QueueName, key: &str) -> Vec<u8> {
    let mut index = of_queue(queue);
    index.extend_from_slice(key.as_bytes());
    index
}

/// The key of the counters of a day, by its first millisecond.
pub(super) fn day_key(queue: &QueueName, day: u64) -> Vec<u8> {
    let mut key = of_queue(queue);
    key.extend_from_slice(&day.to_be_bytes());
    key
}

/// The day at the end of its key.
pub(super) fn day_of_key(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*key.split_last_chunk::<8>()?.1))
}

/// The non-zero cells of a day, in order.
pub(super) fn cells_of(day: u64, cells: &DayCells) -> impl Iterator<Item = (Cell, u64)> {
    let width = Level::Minute.width();
    let minute = move |(nth, &count): (usize, &u64)| {
        (Cell { start: day + nth as u64 * width, width }, count)
    };
    // Ordered by start, then width: the whole day comes after its first minute.
    let (first, rest) = cells.minutes.split_at(1);
    let whole = (Cell { start: day, width: Level::Day.width() }, cells.day);
    let rest = (1..).zip(rest).map(minute);
    first.iter().enumerate().map(minute).chain([whole]).chain(rest).filter(|(_, count)| *count > 0)
}

/// The key of a waiting or dead row.
pub(super) fn moment_key(queue: &QueueName, at: Moment, generation: Generation) -> Vec<u8> {
    let mut key = of_queue(queue);
    key.extend_from_slice(&at.millis().to_be_bytes());
    key.extend_from_slice(&generation.0.to_be_bytes());
    key
}

/// The key of a row that is out or remembered, of any queue.
pub(super) fn number_key(at: Moment, generation: Generation) -> Vec<u8> {
    [at.millis().to_be_bytes(), generation.0.to_be_bytes()].concat()
}

/// The table and key of a row that is not in a bucket.
pub(super) fn small_row(
    place: Place,
    queue: &QueueName,
    generation: Generation,
) -> Option<(Small, Vec<u8>)> {
    Some(match place {
        Place::Bucket(_) => return None,
        Place::Waiting(lane, at) => (Small::waiting(lane), moment_key(queue, at, generation)),
        Place::Dead(at) => (Small::Dead, moment_key(queue, at, generation)),
        Place::Out(at) => (Small::Out, number_key(at, generation)),
        Place::Remembered(until) => (Small::Remembered, number_key(until, generation)),
    })
}

/// The place of a row that is not in a bucket, by its key.
pub(super) fn place_of_key(table: Small, key: &[u8]) -> Option<Place> {
    let (rest, _) = key.split_last_chunk::<8>()?;
    let moment = || {
        let millis = u64::from_be_bytes(*rest.split_last_chunk::<8>()?.1);
        Some(Moment::from_millis(millis)).filter(|moment| moment.millis() == millis)
    };
    match table {
        Small::Waiting => moment().map(|at| Place::Waiting(Lane::Pull, at)),
        Small::WaitingPush => moment().map(|at| Place::Waiting(Lane::Push, at)),
        Small::Dead => moment().map(Place::Dead),
        Small::Remembered => moment().map(Place::Remembered),
        Small::Out => moment().map(Place::Out),
        _ => None,
    }
}

/// Whether the home alone finds a timer in that place.
pub(super) fn is_home(place: Place, home: Moment) -> bool {
    match place {
        Place::Bucket(bucket) => (bucket.start()..bucket.end()).contains(&home.millis()),
        Place::Waiting(_, at) | Place::Out(at) => at == home,
        Place::Dead(_) | Place::Remembered(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_keys_are_read_back() {
        for level in Level::ALL {
            let bucket = Bucket::of(level, Moment::from_millis(1_800_000_000_000));
            assert_eq!(bucket_of(&bucket_name(bucket)), Some(bucket));
            assert_eq!(bucket_of(&marks_name(bucket)), Some(bucket));
            assert_eq!(bucket_of_key(&bucket_key(bucket)), Some(bucket));
        }
        for name in ["out", "hour", "hour.1", "hour.x", "week.0", "hour.0.removed.removed"] {
            assert_eq!(bucket_of(name), None, "{name}");
        }
        let (queue, at) = (QueueName::new("q").unwrap(), Moment::from_millis(1 << 40));
        let waiting = Lane::ALL.map(|lane| Place::Waiting(lane, at));
        let others = [Place::Out(at), Place::Dead(at), Place::Remembered(at)];
        for place in waiting.into_iter().chain(others) {
            let (table, key) = small_row(place, &queue, Generation(9)).unwrap();
            assert_eq!(place_of_key(table, &key), Some(place));
        }
        assert_eq!(day_of_key(&day_key(&queue, 7)), Some(7));
    }
}
