//! Shared helpers: temporary directories, timers, and this program as a child process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tourbillon_durable::bucket::{Bucket, Cell, Level};
use tourbillon_durable::record::{Generation, Lane, Lease, Place, Record, Spec};
use tourbillon_durable::store::{Op, QueueRow, ShardRow};
use tourbillon_durable::values::{Key, Moment, Payload, QueueName, Retry, Span};

/// 2027-01-15T08:00:00Z, the start of an hour.
pub(crate) const NOW: u64 = 1_800_000_000_000;

/// A directory that is removed with the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tourbillon-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        Scratch::at(path)
    }

    /// In memory if possible, for tests that do not depend on the disk and would only wait for its syncs.
    pub(crate) fn in_memory(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let scratch = Scratch::new(name);
        match memory.is_dir() {
            true => Scratch::at(memory.join(scratch.0.file_name().expect("it has a name"))),
            false => scratch,
        }
    }

    fn at(path: PathBuf) -> Self {
        std::fs::create_dir_all(&path).expect("a directory for temporary files");
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn queue() -> QueueName {
    QueueName::new("orders").expect("a name")
}

/// A timer due `delay` milliseconds after [`NOW`]; one in three has a chosen key.
pub(crate) fn timer(generation: u64, delay: u64) -> Record {
    let due = Moment::from_millis(NOW + delay);
    let key = match generation % 3 {
        0 => format!("order-{generation}"),
        _ => format!("~{generation:x}-{:x}", due.millis()),
    };
    let spec = Spec {
        generation: Generation(generation),
        queue: queue(),
        key: Key::new(&key).expect("a key"),
        created: Moment::from_millis(NOW),
        payload: Payload::bytes(format!("payload {generation} ").repeat(8)),
        recurrence: None,
        remember: Span::from_secs(600),
        retry: Retry::default(),
        expires: None,
        webhook: None,
    };
    Record::new(spec, due)
}

/// The bucket of a new timer.
pub(crate) fn bucket(record: &Record) -> Bucket {
    Bucket::of(Level::of(record.due, Moment::from_millis(NOW)), record.due)
}

/// The ops that add a timer and count it.
pub(crate) fn make(record: Record) -> [Op; 2] {
    let bucket = bucket(&record);
    let cell = Cell::of(bucket.level(), record.due);
    let count = Op::Count { queue: record.spec.queue.clone(), cell, delta: 1 };
    [Op::Put { from: None, to: Place::Bucket(bucket), record }, count]
}

/// A timer in a place other than a bucket, chosen by its generation.
pub(crate) fn elsewhere(generation: u64) -> (Place, Record) {
    let mut record = timer(generation, generation);
    let at = Moment::from_millis(NOW + generation);
    let place = match generation % 4 {
        0 => Place::Waiting(Lane::Pull, at),
        1 => Place::Out(at),
        2 => Place::Dead(at),
        _ => Place::Remembered(at),
    };
    if let Place::Out(_) = place {
        record.lease = Some(Lease { until: at, length: Span::from_secs(30) });
    }
    (place, record)
}

/// The rows of the queue and of the shard, as a shard writes them with every commit.
pub(crate) fn rows(next: u64) -> [Op; 2] {
    let shard = ShardRow {
        next_generation: Generation(next),
        wall: Moment::from_millis(NOW),
        ..ShardRow::default()
    };
    let row = QueueRow { pending: next, ..QueueRow::default() };
    [Op::Queue { name: queue(), row }, Op::Shard(shard)]
}

/// Runs one test of this program as a child process with that directory.
pub(crate) fn child(test: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a program knows its path"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, directory);
    command
}

/// The directory of a child. `None` in a normal run, in which the tests meant for children do nothing.
pub(crate) fn told() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

const CHILD: &str = "TOURBILLON_DISK_CHILD";

/// Runs a program. Returns whether it succeeded.
pub(crate) fn run(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

/// Prints why a test was skipped.
pub(crate) fn skip(why: &str) {
    println!("skipped: {why}");
}

/// A file system in memory with a size limit. Only root can mount it.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    pub(crate) fn new(directory: &Path, bytes: u64) -> Option<Self> {
        let path = directory.join("mounted");
        std::fs::create_dir_all(&path).expect("a directory");
        let size = format!("size={bytes}");
        let name = path.to_str().expect("a path of text");
        let fine = run("mount", &["-t", "tmpfs", "-o", &size, "tourbillon-test", name]);
        fine.then_some(Mounted(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn remount(&self, options: &str) -> bool {
        run("mount", &["-o", &format!("remount,{options}"), self.0.to_str().expect("text")])
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &["-l", self.0.to_str().expect("a path of text")]);
    }
}
