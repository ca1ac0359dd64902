//! The near window: which buckets are resident, and how they enter and leave memory.
//!
//! ```text
//!        passed            now                      end
//!   ──┬───────────┬─────────┼──────────┬─────────────┼───────────┬──────────────┬──
//!     │ drained   │   resident: in the wheel         │ hour      │ day          │ month …
//!   ──┴───────────┴─────────┴──────────┴─────────────┴───────────┴──────────────┴──
//! ```
//!
//! - **No bucket straddles the window's end.** All rows of a bucket before the end are resident or being loaded; no
//!   row of a bucket after it is.
//! - The end moves first, then the bucket is read. So a row inserted during the read becomes resident, whether or not
//!   the cursor has passed it.
//! - A bucket that comes near and does not fit into memory is split. A bucket of one second cannot be split: if it does
//!   not fit, it stays on disk until it has passed.
//! - A bucket that has passed is **drained**: its remaining rows move to the waiting rows of their queues, and the
//!   bucket is dropped whole. So no single timer keeps a bucket alive.
//! - A bucket with only unreadable rows left is **set aside** until a row enters or leaves it.
//!
//! One pass runs at a time, one page per turn. After each page of a drain or a split, the most urgent work is selected
//! again. So even if splitting a wide bucket takes an hour, it delays nothing else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::source::Source;
use super::{LoadId, Purpose, Shard};
use crate::bucket::{Bucket, Level, ceil, floor};
use crate::record::{Generation, Lane, Place, Record};
use crate::store::{Filling, Query};
use crate::values::{Moment, QueueName};

/// The window reaches at least this many milliseconds ahead, if there is room, and at most an hour further.
const AHEAD: u64 = 600_000;
/// Maximum number of buckets that one turn examines without loading.
const STEPS: usize = 64;

pub(super) struct Window {
    /// The first millisecond after the window; a whole second.
    pub(super) end: u64,
    /// Every bucket of the store, with its number of rows and bytes.
    pub(super) buckets: BTreeMap<Bucket, Filling>,
    /// Buckets set aside: their remaining rows cannot be read.
    aside: BTreeSet<Bucket>,
    /// The resident rows of the buckets.
    pub(super) held: Filling,
    /// Lanes whose waiting rows may be in the future, because the clock was set back.
    pub(super) recede: BTreeSet<(QueueName, Lane)>,
    pass: Option<Pass>,
    /// Progress of the last drain or split: its bucket, and the last generation read.
    cursor: Option<(Bucket, Generation)>,
    /// Hours and minutes that did not fit. Their rows go to narrower buckets instead.
    split: BTreeSet<Bucket>,
    /// No bucket wider than an hour has to be split before this moment.
    far: u64,
}

/// A pass: work for which a page is being loaded.
struct Pass {
    work: Work,
    load: LoadId,
    /// Whether this page is the first of its bucket, and the bucket has not changed since the load was emitted.
    alone: bool,
}

/// What a pass does with the rows it reads.
enum Work {
    /// Makes them resident, then those of the listed buckets.
    Load(Bucket, VecDeque<Bucket>),
    /// Moves them to narrower buckets.
    Split(Bucket),
    /// Moves them to the waiting rows of their queues.
    Drain(Bucket),
    /// Moves waiting rows that are not due back to buckets.
    Recede(QueueName, Lane),
    /// Removes discarded rows.
    Reclaim(Source),
}

impl Work {
    fn bucket(&self) -> Option<Bucket> {
        match self {
            Work::Load(bucket, _) | Work::Split(bucket) | Work::Drain(bucket) => Some(*bucket),
            Work::Recede(..) | Work::Reclaim(_) => None,
        }
    }
}

impl Window {
    pub(super) fn new(begin: u64, buckets: Vec<(Bucket, Filling)>) -> Self {
        Window {
            end: floor(begin, Level::Second.width()),
            buckets: buckets.into_iter().collect(),
            aside: BTreeSet::new(),
            held: Filling::default(),
            recede: BTreeSet::new(),
            pass: None,
            cursor: None,
            split: BTreeSet::new(),
            far: 0,
        }
    }

    /// The bucket for a row with that next attempt: as wide as its distance and the window's end allow.
    pub(super) fn bucket_for(&self, moment: Moment, now: Moment) -> Bucket {
        let mut level = Level::of(moment, now);
        loop {
            let bucket = Bucket::of(level, moment);
            let straddles = bucket.start() < self.end && self.end < bucket.end();
            match level.below() {
                Some(below) if straddles || self.split.contains(&bucket) => level = below,
                _ => return bucket,
            }
        }
    }

    /// Counts a row that enters a bucket (`by` = 1) or leaves it (`by` = -1).
    pub(super) fn fill(&mut self, bucket: Bucket, record: &Record, by: i64) {
        self.far = self.far.min(comes_near(bucket));
        self.aside.remove(&bucket);
        if let Some(pass) = &mut self.pass
            && pass.work.bucket() == Some(bucket)
        {
            pass.alone = false;
        }
        let filling = self.buckets.entry(bucket).or_default();
        filling.count =
            filling.count.checked_add_signed(by).expect("a bucket has no fewer rows than none");
        filling.bytes = filling.bytes.saturating_add_signed(by * record.size() as i64);
    }

    /// Counts a row of a bucket that becomes resident.
    pub(super) fn hold(&mut self, record: &Record) {
        self.held.add(record);
    }

    /// Counts a row of a bucket that leaves memory.
    pub(super) fn let_go(&mut self, record: &Record) {
        self.held.remove(record);
    }

    #[cfg(planted)]
    pub(super) fn is_loading(&self, place: Place) -> bool {
        matches!(&self.pass, Some(Pass { work: Work::Load(now, _), .. }) if Place::Bucket(*now) == place)
    }

    /// Begins a pass that reads a page for its discarded rows.
    pub(super) fn reclaims(&mut self, source: Source, load: LoadId) {
        self.pass = Some(Pass { work: Work::Reclaim(source), load, alone: false });
    }

    /// Whether a bucket before the window's end is being loaded.
    pub(super) fn is_reading(&self) -> bool {
        matches!(&self.pass, Some(Pass { work: Work::Load(..), .. }))
    }

    /// The first readable bucket that starts at or after `start`.
    pub(super) fn after(&self, start: u64) -> Option<(Bucket, Filling)> {
        let mut next = self.buckets.range(Bucket::bound(start)..);
        next.find(|(bucket, _)| !self.aside.contains(bucket))
            .map(|(&bucket, &filling)| (bucket, filling))
    }

    /// The readable buckets that have begun.
    fn begun(&self, now: u64) -> impl Iterator<Item = (Bucket, Filling)> {
        let begun = self.buckets.range(..Bucket::bound(now + 1));
        begun
            .filter(|(bucket, _)| !self.aside.contains(bucket))
            .map(|(&bucket, &filling)| (bucket, filling))
    }

    /// The last possible window end that is not after `end`: no bucket straddles it.
    fn whole(&self, end: u64) -> u64 {
        let around = Bucket::around(Moment::from_millis(end));
        let straddles =
            |bucket: &&Bucket| self.buckets.contains_key(bucket) && !self.aside.contains(bucket);
        around.iter().find(straddles).map_or(end, |bucket| bucket.start())
    }

    /// The rows and bytes in the buckets that start in that range.
    fn filling(&self, from: u64, to: u64) -> Filling {
        let within = self.buckets.range(Bucket::bound(from)..Bucket::bound(to));
        within.fold(Filling::default(), |sum, (_, one)| Filling {
            count: sum.count + one.count,
            bytes: sum.bytes + one.bytes,
        })
    }
}

impl Shard {
    /// Advances the window. At most one pass is in progress.
    pub(super) fn step_window(&mut self) {
        self.shrink();
        for _ in 0..STEPS {
            if self.window.pass.is_some() || !self.step() {
                return;
            }
        }
        self.more = true;
    }

    /// One step: drops a bucket, moves the end, or begins a pass. Returns `false` if there is nothing to do now.
    fn step(&mut self) -> bool {
        if let Some((queue, lane)) = self.window.recede.pop_first() {
            let from = (Moment::from_millis(self.wall.millis() + 1), Generation(0));
            self.recede(queue, lane, from);
            return true;
        }
        let now = self.wall.millis();
        let passed = self.window.begun(now).find(|(bucket, _)| bucket.end() <= now);
        if let Some((bucket, filling)) = passed {
            match planted!("bucket-dropped-with-a-timer", filling.count <= 1, filling.count == 0) {
                true => self.drop_bucket(bucket),
                false => self.begin(Work::Drain(bucket)),
            }
            return true;
        }
        self.step_end(now) || self.split_far(now) || self.reclaim()
    }

    /// Moves the window's end towards its target.
    fn step_end(&mut self, now: u64) -> bool {
        let near = ceil(now + AHEAD, Level::Hour.width());
        let end = self.window.end;
        let Some((bucket, filling)) =
            self.window.after(end).filter(|(bucket, _)| bucket.start() < near)
        else {
            self.move_end(end.max(near));
            return false;
        };
        self.move_end(bucket.start());
        if filling.count == 0 {
            self.drop_bucket(bucket);
            return true;
        }
        if bucket.level() > Level::Hour {
            self.begin(Work::Split(bucket));
            return true;
        }
        let (whole, limits) = (self.window.filling(bucket.start(), bucket.end()), self.limits);
        let fits = self.window.held.count + whole.count <= limits.window
            && self.window.held.bytes + whole.bytes <= limits.window_bytes;
        if fits {
            let within = self.window.buckets.range(bucket..Bucket::bound(bucket.end()));
            let rest = within.skip(1).map(|(&bucket, _)| bucket).collect();
            self.move_end(bucket.end());
            self.begin(Work::Load(bucket, rest));
            return true;
        }
        let split = bucket.level() > Level::Second && now >= self.split_at(bucket);
        if split {
            self.window.split.insert(bucket);
            self.begin(Work::Split(bucket));
        }
        split
    }

    /// When to split a bucket that does not fit. Until then room may become free.
    fn split_at(&self, bucket: Bucket) -> u64 {
        let early = if bucket.level() == Level::Hour { 120_000 } else { 10_000 };
        bucket.start().saturating_sub(early)
    }

    fn move_end(&mut self, end: u64) {
        if end < self.window.end {
            self.queues.values_mut().for_each(|queue| queue.far.forget());
        }
        self.window.end = end;
        self.window.split.retain(|bucket| bucket.end() > end);
    }

    /// Splits a wide bucket that has come near.
    fn split_far(&mut self, now: u64) -> bool {
        if now < self.window.far {
            return false;
        }
        let readable = |bucket: &Bucket| !self.window.aside.contains(bucket);
        let buckets = self.window.buckets.keys().copied().filter(readable);
        let next = buckets.min_by_key(|&bucket| comes_near(bucket));
        self.window.far = next.map_or(u64::MAX, comes_near);
        let Some(bucket) = next.filter(|_| self.window.far <= now) else { return false };
        match self.window.buckets[&bucket].count {
            0 => self.drop_bucket(bucket),
            _ => self.begin(Work::Split(bucket)),
        }
        true
    }

    fn drop_bucket(&mut self, bucket: Bucket) {
        self.window.buckets.remove(&bucket);
        self.window.aside.remove(&bucket);
        self.outbox.drop_bucket(bucket);
    }

    /// If too much is resident, moves the window's end back until at most three quarters of the limit remain.
    fn shrink(&mut self) {
        let (held, limits) = (self.window.held, self.limits);
        if held.count <= limits.window && held.bytes <= limits.window_bytes {
            return;
        }
        // The resident rows of each bucket; its filling would include discarded rows.
        let mut resident: BTreeMap<Bucket, Filling> = BTreeMap::new();
        for timer in self.timers.values() {
            let Place::Bucket(bucket) = timer.place else { continue };
            let filling = resident.entry(bucket).or_default();
            filling.count += 1;
            filling.bytes += timer.record.size();
        }
        let (mut left, mut end) = (held, self.window.end);
        for (bucket, filling) in resident.iter().rev() {
            if left.count <= limits.window / 4 * 3 && left.bytes <= limits.window_bytes / 4 * 3 {
                break;
            }
            end = bucket.start();
            left.count -= filling.count;
            left.bytes -= filling.bytes;
        }
        if let Some(Pass { work: Work::Load(bucket, _), load, .. }) = &self.window.pass {
            // The rows that this load has read so far are released with the rest.
            end = end.min(bucket.start());
            self.loads.take(*load);
            self.window.pass = None;
        }
        end = self.window.whole(end);
        self.move_end(end);
        let beyond = |timer: &super::Timer| matches!(timer.place, Place::Bucket(bucket) if bucket.start() >= end);
        let mut gone: Vec<Generation> = self
            .timers
            .iter()
            .filter(|(_, timer)| beyond(timer))
            .map(|(&generation, _)| generation)
            .collect();
        gone.sort_unstable();
        gone.into_iter().for_each(|generation| self.release(generation));
    }

    /// The clock was set back: cancels a drain or recede, and has every lane checked for rows that are not due yet.
    pub(super) fn set_window_back(&mut self) {
        if let Some(Pass { work: Work::Drain(_) | Work::Recede(..), load, .. }) = &self.window.pass
        {
            self.loads.take(*load);
            self.window.pass = None;
        }
        let lanes = self.queues.iter().flat_map(|(name, queue)| {
            let waits = Lane::ALL.into_iter().filter(|&lane| queue.row.waits(lane) > 0);
            waits.map(|lane| (name.clone(), lane))
        });
        self.window.recede = lanes.collect();
    }

    /// The next moment at which the shard needs a turn by the wall clock, if nothing else happens.
    pub(super) fn wake(&mut self) -> Option<Moment> {
        if self.more {
            return Some(self.wall);
        }
        if self.opening.is_some() {
            return None;
        }
        let (now, window) = (self.wall.millis(), &self.window);
        let begun = window
            .begun(now)
            .filter(|(_, filling)| filling.count > 0)
            .map(|(bucket, _)| bucket.end());
        let passes = begun.chain(window.after(now + 1).map(|(bucket, _)| bucket.end())).min();
        let comes = window.after(window.end).map(|(next, _)| {
            let near = floor(next.start(), Level::Hour.width()).saturating_sub(AHEAD) + 1;
            if near <= now { self.split_at(next) } else { near }
        });
        let far = (window.far < u64::MAX).then_some(window.far);
        let window = [passes, comes, far].into_iter().flatten().filter(|&at| at > now);
        let due = self.due.next_due().map(|at| at.units());
        let kept = self
            .forget
            .into_iter()
            .chain([self.purge_at, self.sweep_at].into_iter().filter(|&at| at < Moment::MAX));
        let at = window.chain(due).chain(kept.map(Moment::millis)).min()?;
        (at <= Moment::MAX.millis()).then(|| Moment::from_millis(at))
    }
}

/// When a bucket wider than an hour is split. From then on its moments belong to narrower buckets.
fn comes_near(bucket: Bucket) -> u64 {
    match bucket.level() {
        Level::Second | Level::Minute | Level::Hour => u64::MAX,
        level => bucket.start().saturating_sub(level.width()),
    }
}

/// Passes.
impl Shard {
    /// Begins a pass, or continues it at the cursor.
    fn begin(&mut self, work: Work) {
        let read = match (&work, self.window.cursor) {
            (Work::Split(bucket) | Work::Drain(bucket), Some((of, last))) if of == *bucket => {
                Some(last)
            }
            _ => None,
        };
        self.read(work, read);
    }

    /// Loads the next page of a bucket.
    fn read(&mut self, work: Work, after: Option<Generation>) {
        let Some(bucket) = work.bucket() else { return };
        let load = self
            .loads
            .emit(Query::Bucket { bucket, after, limit: self.limits.page }, Purpose::Pass);
        self.window.pass = Some(Pass { work, load, alone: after.is_none() });
    }

    /// Loads a page of waiting rows, starting at `from`.
    fn recede(&mut self, queue: QueueName, lane: Lane, from: (Moment, Generation)) {
        let query = Query::Waiting { queue: queue.clone(), lane, from, limit: self.limits.page };
        let load = self.loads.emit(query, Purpose::Pass);
        self.window.pass = Some(Pass { work: Work::Recede(queue, lane), load, alone: false });
    }

    /// Processes a page of the current pass.
    pub(super) fn passed(&mut self, id: LoadId, rows: Vec<(Place, Record)>) {
        let Some(Pass { work, alone, .. }) = self.window.pass.take() else { return };
        if let Work::Reclaim(source) = work {
            return self.reclaimed(id, source, rows);
        }
        if let (Work::Split(bucket) | Work::Drain(bucket), true) = (&work, alone && rows.is_empty())
        {
            // By count the bucket has rows, or no pass would have begun. So none of its rows can be read.
            self.window.aside.insert(*bucket);
        }
        let more = rows.len() == self.limits.page;
        let last = rows.last().map(|(_, record)| (record.next_attempt, record.generation()));
        for (place, record) in rows {
            if self.is_stale(id, &record) || self.drop_discarded(place, &record) {
                continue;
            }
            match work {
                Work::Load(..) if self.timers.contains_key(&record.generation()) => {}
                Work::Load(..) => self.keep(place, record),
                Work::Split(_) => {
                    let to = Place::Bucket(self.narrower(place, &record));
                    self.change(Some((place, &record)), Some((to, record.clone())));
                }
                Work::Drain(_) => {
                    let to = Place::Waiting(record.spec.lane(), record.next_attempt);
                    self.change(Some((place, &record)), Some((to, record.clone())));
                }
                Work::Recede(..) if record.next_attempt <= self.wall => {}
                Work::Reclaim(_) => {}
                Work::Recede(..) => {
                    let to = self.place_for(&record.spec, record.next_attempt);
                    self.change(Some((place, &record)), Some((to, record.clone())));
                }
            }
        }
        // A row that is due again when its page arrives stays in place. This notifies its takers; nothing else would.
        if let Work::Recede(queue, _) = &work {
            self.stirred.insert(queue.clone());
        }
        self.next_page(work, last.filter(|_| more));
    }

    /// The new bucket for a row of a bucket being split. It is narrower, even if the row has become due meanwhile.
    fn narrower(&self, place: Place, record: &Record) -> Bucket {
        let to = self.window.bucket_for(record.next_attempt, self.wall);
        let Place::Bucket(from) = place else { return to };
        let below = from.level().below().expect("a second is not split");
        if to.level() > below { Bucket::of(below, record.next_attempt) } else { to }
    }

    fn next_page(&mut self, work: Work, after: Option<(Moment, Generation)>) {
        match (work, after) {
            (Work::Recede(..), None) | (Work::Reclaim(_), _) => {}
            (Work::Recede(queue, lane), Some((at, generation))) => {
                self.recede(queue, lane, (at, Generation(generation.0 + 1)));
            }
            (work @ Work::Load(..), Some((_, generation))) => self.read(work, Some(generation)),
            (Work::Split(bucket) | Work::Drain(bucket), Some((_, generation))) => {
                self.window.cursor = Some((bucket, generation));
            }
            (Work::Load(_, mut rest), None) => {
                if let Some(next) = rest.pop_front() {
                    self.read(Work::Load(next, rest), None);
                }
            }
            // The next step drops the bucket, or starts again if it has rows.
            (Work::Split(bucket) | Work::Drain(bucket), None) => {
                self.window.cursor = None;
                if self.window.buckets.get(&bucket).is_some_and(|filling| filling.count == 0) {
                    self.drop_bucket(bucket);
                }
            }
        }
    }
}
