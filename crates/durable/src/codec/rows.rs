//! The other rows: the shard, queues, buckets, the index, markers and counters.

use std::sync::Arc;

use super::bytes::{Reader, invalid, put_i64, put_u64};
use super::{DecodeError, Row};
use crate::bucket::{Bucket, Level};
use crate::record::{Generation, Lane, Place};
use crate::store::{Filling, QueueRow, Settings, ShardRow};
use crate::values::{Moment, Retry, Webhook};

/// The shard's own row, with the epoch of the last open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardState {
    /// The epoch.
    pub epoch: u64,
    /// The row.
    pub row: ShardRow,
}

impl Row for ShardState {
    fn write(&self, out: &mut Vec<u8>) {
        put_u64(out, self.epoch);
        put_u64(out, self.row.next_generation.0);
        put_u64(out, self.row.wall.millis());
        put_u64(out, self.row.name);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let epoch = bytes.u64("epoch")?;
        let next_generation = Generation(bytes.u64("next generation")?);
        let wall = bytes.moment("greatest wall clock")?;
        let name = bytes.u64("name of the store")?;
        Ok(ShardState { epoch, row: ShardRow { next_generation, wall, name } })
    }
}

impl Row for QueueRow {
    fn write(&self, out: &mut Vec<u8>) {
        let Settings { paused, retry, remember, dead_keep, rate, concurrency, webhook } =
            &self.settings;
        out.push((*paused).into());
        retry.write(out);
        put_u64(out, remember.millis());
        put_u64(out, dead_keep.millis());
        for most in [rate, concurrency] {
            put_u64(out, most.map_or(0, |most| u64::from(most) + 1));
        }
        out.push(webhook.is_some().into());
        webhook.iter().for_each(|webhook| webhook.write(out));
        let counts = [self.pending, self.waiting, self.waiting_push, self.watched, self.out];
        let more = [self.dead, self.remembered, self.floor.0, self.discarded];
        for count in counts.into_iter().chain(more) {
            put_u64(out, count);
        }
        out.push(self.deleted.into());
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let paused = read_bool(bytes, "paused")?;
        let retry = Retry::read(bytes)?;
        let remember = bytes.span("remember")?;
        let dead_keep = bytes.span("dead_keep")?;
        let mut most = |field| {
            let most = bytes.u64(field)?.checked_sub(1).map(u32::try_from).transpose();
            most.map_err(|_| invalid(field, "an integer above 2^32"))
        };
        let (rate, concurrency) = (most("rate")?, most("concurrency")?);
        let webhook = read_bool(bytes, "webhook")?.then(|| Webhook::read(bytes));
        let webhook = webhook.transpose()?.map(Arc::new);
        Ok(QueueRow {
            settings: Settings { paused, retry, remember, dead_keep, rate, concurrency, webhook },
            pending: bytes.u64("pending timers")?,
            waiting: bytes.u64("waiting timers")?,
            waiting_push: bytes.u64("timers that wait for an agent")?,
            watched: bytes.u64("watched timers")?,
            out: bytes.u64("timers that are out")?,
            dead: bytes.u64("dead timers")?,
            remembered: bytes.u64("remembered timers")?,
            floor: Generation(bytes.u64("floor")?),
            discarded: bytes.u64("discarded rows")?,
            deleted: read_bool(bytes, "deleted")?,
        })
    }
}

fn read_bool(bytes: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match bytes.byte(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(invalid(field, other)),
    }
}

/// What is stored of a bucket beside its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketRow {
    /// The rows that live in it.
    pub filling: Filling,
    /// Rows that are marked as removed and still take space.
    pub removed: u64,
    /// The number of the next list of markers.
    pub next_marks: u64,
}

impl Row for BucketRow {
    fn write(&self, out: &mut Vec<u8>) {
        for number in [self.filling.count, self.filling.bytes, self.removed, self.next_marks] {
            put_u64(out, number);
        }
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let filling = Filling { count: bytes.u64("count")?, bytes: bytes.u64("bytes")? };
        let removed = bytes.u64("removed rows")?;
        Ok(BucketRow { filling, removed, next_marks: bytes.u64("next markers")? })
    }
}

/// An index entry: the timer of a key, and its home: the moment at which to look for its row.
///
/// A timer has an additional entry in `places` only if its row is not at its home: in a bucket around this moment, or
/// waiting or out with this moment as its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The timer.
    pub generation: Generation,
    /// The first due moment, which determines its first bucket.
    pub moment: Moment,
}

impl Row for Home {
    fn write(&self, out: &mut Vec<u8>) {
        put_u64(out, self.generation.0);
        put_u64(out, self.moment.millis());
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let generation = Generation(bytes.u64("generation")?);
        Ok(Home { generation, moment: bytes.moment("home")? })
    }
}

impl Row for Place {
    fn write(&self, out: &mut Vec<u8>) {
        let (tag, moment) = match *self {
            Place::Bucket(bucket) => (bucket.level() as u8, bucket.start()),
            Place::Waiting(Lane::Pull, at) => (16, at.millis()),
            Place::Waiting(Lane::Push, at) => (20, at.millis()),
            Place::Out(at) => (17, at.millis()),
            Place::Dead(at) => (18, at.millis()),
            Place::Remembered(until) => (19, until.millis()),
        };
        out.push(tag);
        put_u64(out, moment);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (tag, moment) = (bytes.byte("place")?, bytes.moment("moment of the place")?);
        Ok(match tag {
            16 => Place::Waiting(Lane::Pull, moment),
            20 => Place::Waiting(Lane::Push, moment),
            17 => Place::Out(moment),
            18 => Place::Dead(moment),
            19 => Place::Remembered(moment),
            level => {
                let level = Level::from_number(level).ok_or_else(|| invalid("place", level))?;
                Place::Bucket(Bucket::of(level, moment))
            }
        })
    }
}

/// Removals of rows from a bucket, and returns to it, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub Vec<(Generation, bool)>);

impl Row for Marks {
    fn write(&self, out: &mut Vec<u8>) {
        let mut last = 0;
        for &(Generation(generation), removed) in &self.0 {
            // A generation is below 2^53: doubled, it fits.
            let number = (generation << 1) | u64::from(removed);
            put_i64(out, number.wrapping_sub(last) as i64);
            last = number;
        }
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (mut marks, mut last) = (Vec::new(), 0_u64);
        while bytes.left() > 0 {
            last = last.wrapping_add_signed(bytes.i64("marker")?);
            marks.push((Generation(last >> 1), last & 1 == 1));
        }
        Ok(Marks(marks))
    }
}

/// The counters of a queue for one day, in one row.
///
/// So a batch of timers spread over a day changes one row instead of a thousand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayCells {
    /// Timers counted by the day.
    pub day: u64,
    /// Timers counted by the minute, one counter for each minute of the day.
    pub minutes: Box<[u64]>,
}

/// Counts no timers.
impl Default for DayCells {
    fn default() -> Self {
        DayCells { day: 0, minutes: vec![0; 1440].into_boxed_slice() }
    }
}

impl DayCells {
    /// Whether it counts no timers.
    pub fn is_empty(&self) -> bool {
        self.day == 0 && self.minutes.iter().all(|&count| count == 0)
    }
}

/// Writes only non-zero minutes: the number of minutes to skip, then the count.
impl Row for DayCells {
    fn write(&self, out: &mut Vec<u8>) {
        put_u64(out, self.day);
        let mut skipped = 0;
        for &count in &self.minutes {
            if count == 0 {
                skipped += 1;
                continue;
            }
            put_u64(out, skipped);
            put_u64(out, count);
            skipped = 0;
        }
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut cells = DayCells { day: bytes.u64("counter of the day")?, ..DayCells::default() };
        let mut minutes = cells.minutes.iter_mut();
        while bytes.left() > 0 {
            let skip = usize::try_from(bytes.u64("minute")?).unwrap_or(usize::MAX);
            let minute = minutes.nth(skip);
            let minute = minute.ok_or_else(|| invalid("minute", "after the end of the day"))?;
            *minute = bytes.u64("counter of the minute")?;
        }
        Ok(cells)
    }
}

/// The last commit contained in a state of the store on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRow {
    /// The store to which the log belongs: a random number.
    pub store: u64,
    /// The number of the commit.
    pub commit: u64,
}

impl Row for LogRow {
    fn write(&self, out: &mut Vec<u8>) {
        put_u64(out, self.store);
        put_u64(out, self.commit);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(LogRow { store: bytes.u64("store")?, commit: bytes.u64("commit")? })
    }
}

/// A counter, or the number of the format.
impl Row for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        put_u64(out, *self);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        bytes.u64("number")
    }
}
