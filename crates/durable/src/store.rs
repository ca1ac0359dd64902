//! The store: rows of timers in their places, small tables beside them, and one operation that changes them.
//!
//! # Rules
//! - [`Store::commit`] is atomic, and durable when it returns `Ok`.
//! - After an `Err` the outcome is unknown and the store is **poisoned**: it refuses everything until it is opened
//!   again. Retrying after a failed sync can destroy the only copy.
//! - [`Store::load`] sees every earlier commit, and never a part of one.
//! - A key has one row in its queue, whatever its place. A bucket exists while it has a row; it may be dropped and
//!   created again.
//! - Every commit carries the epoch that [`Store::open`] returned. A later open fences the earlier ones: a node that
//!   has lost its shard cannot commit.
//!
//! A store decides itself how it removes rows and reclaims their space. A store that appends markers rewrites a table
//! whose removed rows outnumber the living ones, a bounded part with each commit.
//!
//! A commit is a list, so that one sync serves all waiting callers. A load is a page, so that every answer is small.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::bucket::{Bucket, Cell};
use crate::record::{Generation, Lane, Place, Record};
use crate::values::{Key, Moment, QueueName, Retry, Span, Webhook};

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Writes a row, and removes the timer's row in its previous place.
    Put {
        /// Where the timer's row is now; `None` for a new timer.
        from: Option<Place>,
        /// The new place of the row.
        to: Place,
        /// The row.
        record: Record,
    },
    /// Removes the row of a timer.
    Remove {
        /// Where it is.
        from: Place,
        /// The row.
        record: Record,
    },
    /// Adds to a counter of the forecast. A counter at zero takes no space.
    Count {
        /// The queue.
        queue: QueueName,
        /// The minute or the day.
        cell: Cell,
        /// The change of the counter.
        delta: i64,
    },
    /// Writes the row of a queue.
    Queue {
        /// The queue.
        name: QueueName,
        /// Its row.
        row: QueueRow,
    },
    /// Removes all forecast counters of a queue.
    Clear(QueueName),
    /// Removes the row of a queue.
    Forget(QueueName),
    /// Drops a bucket that has no living row, with all its removed rows.
    Drop(Bucket),
    /// Writes the shard's own row.
    Shard(ShardRow),
}

/// What is stored of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueRow {
    /// The settings made by its owner.
    pub settings: Settings,
    /// Timers that are scheduled or due.
    pub pending: u64,
    /// Pending timers in [`Place::Waiting`].
    pub waiting: u64,
    /// Waiting timers in [`Lane::Push`].
    pub waiting_push: u64,
    /// Waiting timers that expire or recur, and so may have to be changed while they wait.
    pub watched: u64,
    /// Timers that are out.
    pub out: u64,
    /// Timers that were given up.
    pub dead: u64,
    /// Timers that are done or cancelled.
    pub remembered: u64,
    /// Rows of lower generations are **discarded**.
    ///
    /// They take space until they are removed, and are not timers of the queue.
    pub floor: Generation,
    /// The number of discarded rows. No other count includes them, except that of their bucket.
    pub discarded: u64,
    /// Whether the queue was deleted. Its row is kept for the floor until no discarded row is left.
    pub deleted: bool,
}

impl QueueRow {
    /// Discards every timer of the queue and sets the floor.
    pub fn discard(&mut self, floor: Generation) {
        self.discarded += self.pending + self.out + self.dead + self.remembered;
        (self.pending, self.waiting, self.waiting_push, self.watched) = (0, 0, 0, 0);
        (self.out, self.dead, self.remembered) = (0, 0, 0);
        self.floor = floor;
    }
}

impl QueueRow {
    /// The number of rows that wait in a lane.
    pub fn waits(&self, lane: Lane) -> u64 {
        match lane {
            Lane::Pull => self.waiting.saturating_sub(self.waiting_push),
            Lane::Push => self.waiting_push,
        }
    }
}

/// The settings of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Whether hand-outs are paused.
    pub paused: bool,
    /// The default of new timers.
    pub retry: Retry,
    /// The default of new timers with a chosen key.
    pub remember: Span,
    /// How long dead timers are kept.
    pub dead_keep: Span,
    /// Maximum hand-outs in any second.
    pub rate: Option<u32>,
    /// Maximum number of timers that are out at once.
    pub concurrency: Option<u32>,
    /// The default webhook of new timers.
    pub webhook: Option<Arc<Webhook>>,
}

/// Not paused; timers are remembered for 10 minutes and kept for 30 days when dead.
impl Default for Settings {
    fn default() -> Self {
        let (remember, dead_keep) = (Span::from_secs(600), Span::from_secs(30 * 86_400));
        Settings {
            paused: false,
            retry: Retry::default(),
            remember,
            dead_keep,
            rate: None,
            concurrency: None,
            webhook: None,
        }
    }
}

/// What is stored of the shard itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardRow {
    /// The next generation to assign. Every commit that makes timers writes it.
    pub next_generation: Generation,
    /// The latest wall-clock reading so far.
    pub wall: Moment,
    /// The name of the store; 0 if it has none yet.
    pub name: u64,
}

impl ShardRow {
    /// A random name, unique with overwhelming probability.
    pub(crate) fn new_name() -> u64 {
        use std::hash::{BuildHasher, Hasher};
        // `RandomState` is seeded by the system's random numbers.
        let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
        (random() ^ random().rotate_left(32)).max(1)
    }

    /// The name as text: 16 hexadecimal digits.
    pub fn name(&self) -> String {
        format!("{:016x}", self.name)
    }
}

/// What a shard needs before its first turn. Its size does not depend on the number of timers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// The epoch of this open, above all earlier ones.
    pub epoch: u64,
    /// The shard's own row.
    pub shard: ShardRow,
    /// Every queue.
    pub queues: Vec<(QueueName, QueueRow)>,
    /// Every bucket, with the rows that live in it.
    pub buckets: Vec<(Bucket, Filling)>,
    /// When the retention of a remembered row first ends.
    pub forget: Option<Moment>,
}

/// The living rows of a bucket, or the resident rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// The number of rows.
    pub count: u64,
    /// Their total [size](Record::size).
    pub bytes: u64,
}

impl Filling {
    /// Adds a row.
    pub(crate) fn add(&mut self, record: &Record) {
        self.count += 1;
        self.bytes += record.size();
    }

    /// Removes a row that was added.
    pub(crate) fn remove(&mut self, record: &Record) {
        self.count -= 1;
        self.bytes -= record.size();
    }
}

/// A query. Every page has a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The rows of these keys.
    Keys(Vec<(QueueName, Key)>),
    /// Rows of a bucket, by generation.
    Bucket {
        /// The bucket.
        bucket: Bucket,
        /// Only generations after this one.
        after: Option<Generation>,
        /// Maximum number of rows.
        limit: usize,
    },
    /// Waiting rows of a lane of a queue, by next attempt and generation.
    Waiting {
        /// The queue.
        queue: QueueName,
        /// The lane.
        lane: Lane,
        /// Starting at this one.
        from: (Moment, Generation),
        /// Maximum number of rows.
        limit: usize,
    },
    /// Rows that are out, by next attempt and generation.
    Out {
        /// Only rows after this one.
        after: Option<(Moment, Generation)>,
        /// Maximum number of rows.
        limit: usize,
    },
    /// Dead rows of a queue, longest dead first.
    Dead {
        /// The queue.
        queue: QueueName,
        /// Only those given up after this moment and generation.
        after: Option<(Moment, Generation)>,
        /// Maximum number of rows.
        limit: usize,
    },
    /// Remembered rows of all queues, by the end of their retention.
    Remembered {
        /// Only those that end after this moment and generation.
        after: Option<(Moment, Generation)>,
        /// Maximum number of rows.
        limit: usize,
    },
    /// Rows of a queue whose key starts with `prefix`, by key, in every place. Assigned keys are not indexed, so
    /// their rows are not included.
    Prefix {
        /// The queue.
        queue: QueueName,
        /// The prefix of the keys.
        prefix: String,
        /// Only keys after this one.
        after: Option<Key>,
        /// Maximum number of rows.
        limit: usize,
    },
    /// Rows of a queue in a bucket, by next attempt and key. A bucket is sorted by its first query.
    Sorted {
        /// The bucket.
        bucket: Bucket,
        /// The queue.
        queue: QueueName,
        /// Only this generation and later ones: rows with lower generations are discarded, and may be many.
        floor: Generation,
        /// Only rows after this next attempt and key; without a key, from this next attempt on.
        after: (Moment, Option<Key>),
        /// Maximum number of rows.
        limit: usize,
    },
    /// Counters of the forecast.
    Cells {
        /// The queue.
        queue: QueueName,
        /// Cells that start at or after this millisecond.
        from: u64,
        /// And before this one.
        to: u64,
    },
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Loaded {
    /// To [`Query::Keys`], in its order.
    Found(Vec<Option<(Place, Record)>>),
    /// To the other queries. The last page has fewer rows than the limit.
    Rows(Vec<(Place, Record)>),
    /// To [`Query::Cells`].
    Cells(Vec<(Cell, u64)>),
}

/// Why a store operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// A write, a sync or a read failed; the store is poisoned.
    Failed(String),
    /// The store failed earlier and must be opened again.
    Poisoned,
    /// A later open has taken over the store.
    Fenced,
    /// It cannot be opened: why, where, and what to do. Nothing was changed.
    Refused(String),
    /// The answer needs a row that cannot be read. The store keeps working: other answers are not affected.
    Damaged(Damage),
}

/// Data that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The table, as named to an operator.
    pub table: String,
    /// The row, if the damage is in one.
    pub row: Option<String>,
    /// What is wrong with it.
    pub wrong: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.row {
            Some(row) => write!(f, "{}, {row}: {}", self.table, self.wrong),
            None => write!(f, "{}: {}", self.table, self.wrong),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Failed(why) => write!(f, "the store failed: {why}; open it anew"),
            StoreError::Poisoned => f.write_str("the store failed before: open it anew"),
            StoreError::Fenced => f.write_str("another node has taken the shard over: give it up"),
            StoreError::Refused(why) => f.write_str(why),
            StoreError::Damaged(damage) => write!(f, "damaged: {damage}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// The storage of a shard's timers. [`conformance`](crate::conformance) tests a store against the rules above.
pub trait Store {
    /// Opens the shard with the next epoch, and recovers everything durable.
    ///
    /// # Errors
    /// It cannot be read or written.
    fn open(&mut self) -> Result<Head, StoreError>;

    /// Applies every change of the list, or none, and returns when they are durable.
    ///
    /// # Errors
    /// The outcome is unknown. Exception: after [`StoreError::Fenced`] nothing was changed.
    fn commit(&mut self, epoch: u64, ops: &[Op]) -> Result<(), StoreError>;

    /// Answers a query.
    ///
    /// A page skips rows that cannot be read; [`damage`](Store::damage) lists them from then on.
    ///
    /// # Errors
    /// The store cannot be read. [`StoreError::Damaged`]: the answer needs a row or counter that cannot be read.
    fn load(&mut self, query: &Query) -> Result<Loaded, StoreError>;

    /// Every row as of the last commit, in no particular order. Later commits do not change the rows it yields.
    ///
    /// # Errors
    /// It cannot be read.
    fn snapshot(&mut self) -> Result<Snapshot, StoreError>;

    /// Does a bounded piece of housekeeping, such as returning space to the disk.
    ///
    /// Called when there is no other work. Returns whether it did something and should be called again.
    ///
    /// # Errors
    /// As [`commit`](Store::commit).
    fn tidy(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// The damage found since the store was opened.
    fn damage(&self) -> Vec<Damage> {
        Vec::new()
    }
}

/// One state of a store: its name, its queues and its rows.
pub struct Image {
    /// The shard's own row.
    pub shard: ShardRow,
    /// Every queue, including deleted ones.
    pub queues: Vec<(QueueName, QueueRow)>,
    /// Every row, including discarded ones.
    pub rows: Snapshot,
}

impl Image {
    /// The queues that were not deleted.
    pub fn queues(&self) -> impl Iterator<Item = (&QueueName, &Settings)> {
        let living = self.queues.iter().filter(|(_, row)| !row.deleted);
        living.map(|(name, row)| (name, &row.settings))
    }

    /// The rows that are not discarded.
    pub fn timers(self) -> Snapshot {
        let floors = self.queues.into_iter().map(|(name, row)| (name, row.floor));
        let floors: BTreeMap<QueueName, Generation> = floors.collect();
        let lives = move |row: &Result<(Place, Record), StoreError>| {
            let Ok((_, record)) = row else { return true };
            let floor = floors.get(&record.spec.queue);
            floor.is_none_or(|floor| record.generation() >= *floor)
        };
        Box::new(self.rows.filter(lives))
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").field("shard", &self.shard).finish_non_exhaustive()
    }
}

/// The rows of one state of a store. An unreadable row yields an error, and the rows after it follow.
pub type Snapshot = Box<dyn Iterator<Item = Result<(Place, Record), StoreError>> + Send>;
