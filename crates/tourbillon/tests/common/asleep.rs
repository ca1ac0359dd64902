//! Detects through the kernel when threads sleep: for threads that block inside a verb and cannot report it.
//!
//! It waits until all given threads sleep at the same moment: then none holds a lock that another waits for, so each is
//! as far as it can get. Without `/proc`, it waits some milliseconds of real time instead.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// A thread of this process, by its kernel id.
#[derive(Clone)]
pub(crate) struct Tid(#[cfg(target_os = "linux")] std::path::PathBuf);

#[cfg(target_os = "linux")]
impl Tid {
    /// The calling thread.
    pub(crate) fn own() -> Self {
        Tid(std::path::Path::new("/proc").join(std::fs::read_link("/proc/thread-self").unwrap()))
    }

    /// The threads whose name has this prefix. The kernel keeps 15 characters of a name.
    pub(crate) fn called(name: &str) -> Vec<Self> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
        let is_called = |task: &std::path::PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with(name))
        };
        tasks.filter(is_called).map(Tid).collect()
    }

    /// Whether it sleeps, and how often it has gone to sleep. `None` if it has ended.
    fn state(&self) -> Option<(bool, String)> {
        let status = std::fs::read_to_string(self.0.join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let sleeps = field("State:")?.trim().starts_with('S');
        Some((sleeps, field("voluntary_ctxt_switches:")?.trim().to_owned()))
    }
}

#[cfg(not(target_os = "linux"))]
impl Tid {
    pub(crate) fn own() -> Self {
        Tid()
    }

    pub(crate) fn called(_: &str) -> Vec<Self> {
        vec![Tid()]
    }
}

/// Waits until all threads sleep at the same moment, or have ended.
#[track_caller]
pub(crate) fn await_asleep(threads: &[Tid]) {
    #[cfg(target_os = "linux")]
    super::eventually(|| {
        // The threads are read one after another: only if none ran in between did they sleep at the same moment.
        let look = || threads.iter().map(Tid::state).collect::<Vec<_>>();
        let first = look();
        first.iter().flatten().all(|(sleeps, _)| *sleeps) && look() == first
    });
    #[cfg(not(target_os = "linux"))]
    if !threads.is_empty() {
        thread::sleep(30 * super::MS);
    }
}

/// Runs `body` on a thread, and returns the thread's id.
pub(crate) fn spawn_known<R: Send + 'static>(
    body: impl FnOnce() -> R + Send + 'static,
) -> (Tid, JoinHandle<R>) {
    let (own, tid) = mpsc::channel();
    let thread = thread::spawn(move || {
        own.send(Tid::own()).unwrap();
        body()
    });
    (tid.recv().unwrap(), thread)
}

/// Runs `body` on a thread, and returns once it sleeps or has ended.
#[track_caller]
pub(crate) fn spawn_asleep<R: Send + 'static>(
    body: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let (tid, thread) = spawn_known(body);
    await_asleep(&[tid]);
    thread
}
