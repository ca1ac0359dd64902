//! Measures a lasting state: the CPU time of the process, and the wake-ups of its threads.
//!
//! In real time: a state has to last for a while before its cost can be measured.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::common::{MS, eventually};

/// Ends a state.
pub(crate) type End = Box<dyn FnOnce()>;

/// A state that must cost little while it stands.
pub(crate) struct Row {
    pub(crate) name: String,
    /// The limit on wake-ups, of all threads together.
    pub(crate) wakes: u64,
    pub(crate) begin: Box<dyn Fn() -> End>,
}

impl Row {
    pub(crate) fn new(name: &str, wakes: u64, begin: impl Fn() -> End + 'static) -> Self {
        Row { name: name.to_owned(), wakes, begin: Box::new(begin) }
    }
}

/// Measures every row for that long, and fails with the names of those that use over a tenth of a core or too many
/// wake-ups.
pub(crate) fn stand(rows: &[Row], time: Duration) {
    let _alone = alone();
    let fails = |row: &&Row| {
        let limit = Cost { cpu: time / 10, wakes: row.wakes };
        judge(&row.name, limit, || {
            let end = (row.begin)();
            settle();
            let cost = measure(|| thread::sleep(time));
            end();
            cost
        })
    };
    let failed: Vec<&str> = rows.iter().filter(fails).map(|row| &*row.name).collect();
    assert!(failed.is_empty(), "too dear: {failed:?}");
}

/// One measurement at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Whether the cost exceeds the limit three times in a row; then it is printed.
pub(crate) fn judge(name: &str, limit: Cost, take: impl Fn() -> Cost) -> bool {
    let is_dear = |_: &i32| {
        let cost = take();
        let is_dear = cost.cpu > limit.cpu || cost.wakes > limit.wakes;
        println!("{name}: {cost}{}", if is_dear { ", too dear" } else { "" });
        is_dear
    };
    (0..3).take_while(is_dear).count() == 3
}

#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) cpu: Duration,
    pub(crate) wakes: u64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of CPU, {} wake-ups", self.cpu, self.wakes)
    }
}

/// The cost of all threads while `during` runs; of the measuring thread, only the CPU time.
pub(crate) fn measure(during: impl FnOnce()) -> Cost {
    let before = wakes();
    let begin = cpu();
    during();
    let cpu = cpu() - begin;
    let since = |(thread, now): (&String, &u64)| now - before.get(thread).copied().unwrap_or(0);
    Cost { cpu, wakes: wakes().iter().map(since).sum() }
}

/// The CPU time that the process has used.
pub(crate) fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Waits until no thread has been woken for a while; but not forever, because some rows never become idle.
pub(crate) fn settle() {
    let mut last = wakes();
    for _ in 0..6 {
        thread::sleep(8 * MS);
        let now = wakes();
        if std::mem::replace(&mut last, now.clone()) == now {
            break;
        }
    }
}

/// How often each other thread has gone to sleep voluntarily, from the kernel.
fn wakes() -> HashMap<String, u64> {
    let own = fs::read_link("/proc/thread-self").unwrap();
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let others = tasks.filter(|task| Some(&*task.file_name()) != own.file_name());
    let count = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((task.file_name().into_string().ok()?, line.trim().parse().ok()?))
    };
    others.filter_map(count).collect()
}

/// The number of threads with this name, of which the kernel keeps 15 characters.
pub(crate) fn threads_called(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let is_called = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    tasks.filter(is_called).count()
}

/// Blocks callbacks until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<(bool, usize)>, Condvar)>);

impl Gate {
    /// Blocks until it is opened.
    pub(crate) fn pass(&self) {
        let (state, opened) = &*self.0;
        let mut state = state.lock().unwrap();
        state.1 += 1;
        drop(opened.wait_while(state, |(open, _)| !*open).unwrap());
    }

    pub(crate) fn open(&self) {
        self.0.0.lock().unwrap().0 = true;
        self.0.1.notify_all();
    }

    /// Waits until this many threads are blocked here.
    #[track_caller]
    pub(crate) fn await_standing(&self, count: usize) {
        eventually(|| self.0.0.lock().unwrap().1 >= count);
    }
}
