//! Simulated disk crashes at any step: every acknowledged commit survives, and nothing else appears.
//!
//! A [`Recorder`] records every write, sync and rename of a store. After a simulated crash, everything synced is there.
//! Each write that was not synced is complete, absent, or torn at a sector boundary.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::tests::Scratch;
use super::waste::STILL;
use super::{DiskStore, FILE, LOG_FILE};
use crate::bucket::{Bucket, Level};
use crate::record::{Generation, Place, Record, Spec};
use crate::store::{Loaded, Op, Query, ShardRow, Store};
use crate::values::{Key, Moment, Payload, QueueName, Retry, Span};

const NOW: u64 = 1_800_000_000_000;
const SECTOR: usize = 512;

/// The steps of a store, in order. Files are numbered in the order in which they are opened.
#[derive(Clone, Debug)]
enum Step {
    Open(PathBuf),
    Write(usize, u64, Vec<u8>),
    Length(usize, u64),
    /// All steps of this file before the given one are durable.
    Sync(usize, usize),
    /// The copy was renamed to the name of the store.
    Rename,
    /// The names in the directory are durable.
    Names,
    Begun,
    Answered,
}

type Steps = Arc<Mutex<Vec<Step>>>;

/// The directories whose steps are recorded.
static RECORDED: Mutex<BTreeMap<PathBuf, Steps>> = Mutex::new(BTreeMap::new());

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records the steps of one file.
#[derive(Debug)]
pub(super) struct Recorder {
    file: usize,
    steps: Steps,
}

impl Recorder {
    /// The recorder of a file, if its directory is recorded.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let steps = lock(&RECORDED).get(path.parent()?)?.clone();
        let mut held = lock(&steps);
        let file = held.iter().filter(|step| matches!(step, Step::Open(_))).count();
        held.push(Step::Open(path.to_path_buf()));
        drop(held);
        Some(Recorder { file, steps })
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) {
        lock(&self.steps).push(Step::Write(self.file, offset, bytes.to_vec()));
    }

    /// The number of steps before a sync begins.
    pub(super) fn now(&self) -> usize {
        lock(&self.steps).len()
    }

    pub(super) fn set_len(&self, length: u64) {
        lock(&self.steps).push(Step::Length(self.file, length));
    }

    /// Slows every sync except that of the log, which is file 0, so that the log is ahead of redb's file.
    pub(super) fn sync(&self, begun: usize) {
        if self.file > 0 {
            std::thread::sleep(Duration::from_millis(4));
        }
        lock(&self.steps).push(Step::Sync(self.file, begun));
    }
}

/// Records that a copy is about to take the name of the store.
pub(super) fn renamed(directory: &Path) {
    lock(&RECORDED).get(directory).iter().for_each(|steps| lock(steps).push(Step::Rename));
}

/// Records that the names of a directory are durable.
pub(super) fn named(directory: &Path) {
    lock(&RECORDED).get(directory).iter().for_each(|steps| lock(steps).push(Step::Names));
}

/// Splitmix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }
}

/// One run of a store: the files at its start, its steps, and the timers after each of its commits.
struct Life {
    base: BTreeMap<PathBuf, Vec<u8>>,
    steps: Vec<Step>,
    states: Vec<BTreeSet<u64>>,
}

/// The bytes of the files of a directory, by name.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let names = [FILE, LOG_FILE].map(|name| directory.join(name));
    names.into_iter().filter_map(|path| Some((path.clone(), fs::read(path).ok()?))).collect()
}

fn record(generation: u64, size: usize) -> Record {
    let due = Moment::from_millis(NOW + 60_000 * (generation % 3));
    let spec = Spec {
        generation: Generation(generation),
        queue: QueueName::new("q").expect("a name"),
        key: Key::new(&format!("~{generation:x}-{:x}", due.millis())).expect("a key"),
        created: Moment::from_millis(NOW),
        payload: Payload::bytes(vec![generation as u8; size]),
        recurrence: None,
        remember: Span::from_secs(600),
        retry: Retry::default(),
        expires: None,
        webhook: None,
    };
    Record::new(spec, due)
}

fn bucket(record: &Record) -> Place {
    Place::Bucket(Bucket::of(Level::Minute, record.due))
}

/// Opens a store, makes random changes, and closes it.
fn live(directory: &Path, mut state: BTreeSet<u64>, first: u64, rng: &mut Rng) -> Life {
    let base = files(directory);
    let steps = Steps::default();
    lock(&RECORDED).insert(directory.to_path_buf(), steps.clone());
    let mut states = vec![state.clone()];
    // With a small cache redb writes between its flushes and reads queued writes.
    let cache = if rng.below(2) == 0 { 64 << 10 } else { 64 << 20 };
    let mut store = DiskStore::new(directory).cache(cache);
    let epoch = store.open().expect("it opens").epoch;
    // In half of the runs, one commit in eight is too large for the log.
    let (mut sizes, large) = (BTreeMap::new(), rng.below(2) == 0);
    for generation in first..first + 40 {
        let size = if large && rng.below(8) == 0 { 20_000 } else { rng.below(3000) };
        let new = record(generation, size);
        let shard = ShardRow { next_generation: Generation(generation), ..ShardRow::default() };
        let mut ops = vec![Op::Shard(shard)];
        ops.push(Op::Put { from: None, to: bucket(&new), record: new });
        sizes.insert(generation, size);
        state.insert(generation);
        let old = state.iter().copied().nth(rng.below(state.len()));
        if let Some((old, size)) = old.and_then(|old| Some((old, *sizes.get(&old)?)))
            && old != generation
            && rng.below(2) == 0
        {
            let record = record(old, size);
            ops.push(Op::Remove { from: bucket(&record), record });
            state.remove(&old);
        }
        states.push(state.clone());
        lock(&steps).push(Step::Begun);
        store.commit(epoch, &ops).expect("it commits");
        lock(&steps).push(Step::Answered);
    }
    drop(store);
    lock(&RECORDED).remove(directory);
    let steps = lock(&steps).clone();
    Life { base, steps, states }
}

/// Applies a step to a file's bytes. `is` decides how much of it survives the crash.
fn apply(bytes: &mut Vec<u8>, step: &Step, is: &mut impl FnMut(usize) -> usize) {
    match step {
        Step::Write(_, offset, new) => {
            // Keeps a prefix of its sectors, usually none or all.
            let sectors = new.len().div_ceil(SECTOR);
            let kept = (is(sectors) * SECTOR).min(new.len());
            let end = *offset as usize + kept;
            if kept > 0 {
                bytes.resize(bytes.len().max(end), 0);
                bytes[end - kept..end].copy_from_slice(&new[..kept]);
            }
        }
        Step::Length(_, length) if is(1) == 1 => bytes.resize(*length as usize, 0),
        _ => {}
    }
}

impl Life {
    /// Writes into a new directory what a crash after `count` steps leaves.
    fn crash(&self, count: usize, to: &Path, rng: &mut Rng) {
        let steps = &self.steps[..count];
        let mut opened: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        let mut names: BTreeMap<PathBuf, usize> = BTreeMap::new();
        let named = steps.iter().rposition(|step| matches!(step, Step::Names)).unwrap_or(0);
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Open(path) => {
                    // The store's files start as they were, and a new copy starts empty.
                    let bytes = self.base.get(path).cloned().unwrap_or_default();
                    names.insert(path.clone(), opened.len());
                    opened.push((path.clone(), bytes));
                }
                Step::Rename if at < named || rng.below(2) == 0 => {
                    let copy = names.keys().find(|path| path.extension() == Some("new".as_ref()));
                    let number = copy.cloned().and_then(|copy| names.remove(&copy));
                    let path = opened[0].0.with_file_name(FILE);
                    names.extend(number.map(|number| (path, number)));
                }
                Step::Write(file, ..) | Step::Length(file, _) => {
                    let synced = steps[at..]
                        .iter()
                        .any(|s| matches!(s, Step::Sync(of, begun) if of == file && *begun > at));
                    let mut keep = |all: usize| match rng.below(4) {
                        _ if synced => all,
                        0 => rng.below(all + 1),
                        1 => 0,
                        _ => all,
                    };
                    apply(&mut opened[*file].1, step, &mut keep);
                }
                _ => {}
            }
        }
        fs::create_dir_all(to).expect("a directory");
        for path in self.base.keys().chain(names.keys()).collect::<BTreeSet<_>>() {
            let bytes = names.get(path).map(|&number| &opened[number].1);
            if let Some(bytes) = bytes.or_else(|| self.base.get(path)) {
                fs::write(to.join(path.file_name().expect("a name")), bytes).expect("a file");
            }
        }
    }

    /// Chooses a random step to crash after: any step, or one right after an answer, when the most must survive.
    fn moment(&self, rng: &mut Rng) -> usize {
        let answers = (0..self.steps.len()).filter(|&at| matches!(self.steps[at], Step::Answered));
        let answers: Vec<usize> = answers.map(|at| at + 1).collect();
        match rng.below(2) {
            0 => rng.below(self.steps.len() + 1),
            _ => answers[rng.below(answers.len())],
        }
    }

    /// The states that are correct after a crash at that step.
    fn allowed(&self, count: usize) -> &[BTreeSet<u64>] {
        let of = |is: fn(&Step) -> bool| self.steps[..count].iter().filter(|step| is(step)).count();
        let answered = of(|step| matches!(step, Step::Answered));
        &self.states[answered..=of(|step| matches!(step, Step::Begun))]
    }
}

/// The generations in a store.
fn timers(directory: &Path) -> BTreeSet<u64> {
    let mut store = DiskStore::new(directory);
    let head = store.open().unwrap_or_else(|error| panic!("it does not open: {error}"));
    let buckets: Vec<Bucket> = head.buckets.iter().map(|(bucket, _)| *bucket).collect();
    let mut all = BTreeSet::new();
    for bucket in buckets {
        match store.load(&Query::Bucket { bucket, after: None, limit: 1000 }) {
            Ok(Loaded::Rows(rows)) => all.extend(rows.iter().map(|(_, row)| row.generation().0)),
            other => panic!("{other:?}"),
        }
    }
    all
}

#[test]
fn a_crash_at_any_step_keeps_what_was_answered() {
    let scratch = Scratch::new();
    let seeds =
        std::env::var("TOURBILLON_CRASH_SEEDS").map_or(5, |seeds| seeds.parse().expect("a number"));
    for seed in 0..seeds {
        let mut rng = Rng(seed);
        // The store of every other seed is never compacted, because a compaction restarts the log.
        let name = if seed % 2 == 0 { "copied" } else { STILL };
        let mut directory = scratch.0.join(format!("{seed}/{name}"));
        drop(DiskStore::new(&directory).open());
        let mut state = BTreeSet::new();
        for life in 0..3_u64 {
            let lived = live(&directory, state, 1 + life * 1000, &mut rng);
            let next = scratch.0.join(format!("{seed}-{life}/{name}"));
            let mut left = BTreeSet::new();
            for _ in 0..20 {
                let _ = fs::remove_dir_all(&next);
                let count = lived.moment(&mut rng);
                lived.crash(count, &next, &mut rng);
                // Checks a duplicate of the directory, so that the next run begins with the recovery, and may crash
                // during it.
                let seen = scratch.0.join("seen");
                let _ = fs::remove_dir_all(&seen);
                fs::create_dir_all(&seen).expect("a directory");
                for (path, bytes) in files(&next) {
                    fs::write(seen.join(path.file_name().expect("a name")), bytes).expect("a file");
                }
                left = timers(&seen);
                let allowed = lived.allowed(count);
                let all = lived.steps.len();
                assert!(
                    allowed.contains(&left),
                    "seed {seed}, life {life}, after {count} of {all} steps: {left:?} is none of {allowed:?}"
                );
            }
            (directory, state) = (next, left);
        }
    }
}

/// Otherwise a power cut could take a new data directory with everything in it.
#[test]
fn the_names_of_new_directories_are_durable_too() {
    let scratch = Scratch::new();
    fs::create_dir_all(&scratch.0).expect("a directory");
    let recorded: Vec<PathBuf> = ["", "new", "new/data"].map(|name| scratch.0.join(name)).into();
    for directory in &recorded {
        lock(&RECORDED).insert(directory.clone(), Steps::default());
    }
    drop(DiskStore::new(scratch.0.join("new/data")).open().expect("it opens"));
    for directory in &recorded {
        let steps = lock(&RECORDED).remove(directory).expect("it was recorded");
        let synced = lock(&steps).iter().any(|step| matches!(step, Step::Names));
        assert!(synced, "{}", directory.display());
    }
}

/// The simulated disk does lose unsynced writes; otherwise the test above could not fail.
#[test]
fn a_crash_loses_what_was_not_synced() {
    let scratch = Scratch::new();
    drop(DiskStore::new(&scratch.0).open());
    let mut rng = Rng(1);
    let mut life = live(&scratch.0, BTreeSet::new(), 1, &mut rng);
    life.steps.retain(|step| !matches!(step, Step::Sync(..)));
    let to = scratch.0.join("crashed");
    let lost = (0..20).any(|_| {
        let _ = fs::remove_dir_all(&to);
        life.crash(life.steps.len(), &to, &mut rng);
        let left = std::panic::catch_unwind(|| timers(&to));
        left.map_or(true, |left| !life.allowed(life.steps.len()).contains(&left))
    });
    assert!(lost);
}
