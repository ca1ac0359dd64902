//! Knows from the kernel when threads sleep: the handshake with a thread that blocks inside a verb and cannot say so.
//!
//! All of them sleep at the same moment: none holds a lock that another waits for, so each has come as far as it can.
//! Where there is no `/proc`, they are given some milliseconds of real time instead.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// A thread of this process, as the kernel knows it.
#[derive(Clone)]
pub(crate) struct Tid(#[cfg(target_os = "linux")] std::path::PathBuf);

#[cfg(target_os = "linux")]
impl Tid {
    /// The calling thread's.
    pub(crate) fn own() -> Self {
        Tid(std::path::Path::new("/proc").join(std::fs::read_link("/proc/thread-self").unwrap()))
    }

    /// Those of all threads whose name begins like that. The kernel keeps 15 characters of a name.
    pub(crate) fn called(name: &str) -> Vec<Self> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
        let is_called = |task: &std::path::PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with(name))
        };
        tasks.filter(is_called).map(Tid).collect()
    }

    /// Whether it sleeps, and how often it has gone to sleep; nothing, if it has ended.
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

/// Waits until all of them sleep at the same moment, or have ended.
#[track_caller]
pub(crate) fn await_asleep(threads: &[Tid]) {
    #[cfg(target_os = "linux")]
    super::eventually(|| {
        // One after the other is not at the same moment; unless none has run in between.
        let look = || threads.iter().map(Tid::state).collect::<Vec<_>>();
        let first = look();
        first.iter().flatten().all(|(sleeps, _)| *sleeps) && look() == first
    });
    #[cfg(not(target_os = "linux"))]
    if !threads.is_empty() {
        thread::sleep(30 * super::MS);
    }
}

/// Runs `body` on a thread, and says which.
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

/// Runs `body` on a thread, and returns when that sleeps, or has ended.
#[track_caller]
pub(crate) fn spawn_asleep<R: Send + 'static>(
    body: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let (tid, thread) = spawn_known(body);
    await_asleep(&[tid]);
    thread
}
