//! Figures from the operating system: the CPU time of the process, the context switches of its threads, and how long
//! measuring threads waited for a core.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The CPU time of all threads of the process, ended ones included.
#[cfg(unix)]
pub fn process_cpu() -> Option<Duration> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(spent.tv_sec.try_into().ok()?, spent.tv_nsec.try_into().ok()?))
}

/// The CPU time of all threads of the process, ended ones included.
#[cfg(not(unix))]
pub fn process_cpu() -> Option<Duration> {
    None
}

/// Threads of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads(BTreeSet<u32>);

/// The resources that threads have used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Context switches, voluntary or not.
    pub switches: u64,
    pub cpu: Duration,
}

impl Threads {
    pub fn all() -> Self {
        let entries = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        Threads(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
    }

    /// The threads that are alive now and not in this set.
    pub fn started_since(&self) -> Self {
        Threads(Threads::all().0.difference(&self.0).copied().collect())
    }

    /// What these threads have used; `None` if the kernel does not report it, or a thread has ended.
    pub fn used(&self) -> Option<Used> {
        let mut sum = Used::default();
        for thread in &self.0 {
            let file = |name| std::fs::read_to_string(format!("/proc/self/task/{thread}/{name}"));
            let status = file("status").ok()?;
            let switches = status.lines().filter(|line| line.contains("voluntary_ctxt_switches"));
            for line in switches {
                sum.switches += line.split_once(':')?.1.trim().parse::<u64>().ok()?;
            }
            let schedstat = file("schedstat").ok()?;
            sum.cpu += Duration::from_nanos(schedstat.split(' ').next()?.parse().ok()?);
        }
        (!self.0.is_empty()).then_some(sum)
    }
}

// The running and waiting time of measuring threads, in nanoseconds. Relaxed: they are sums, read at the end.
static RAN: AtomicU64 = AtomicU64::new(0);
static WAITED: AtomicU64 = AtomicU64::new(0);

/// Adds the running and waiting time of the current thread, which has finished measuring.
pub fn note_waits() {
    let Ok(schedstat) = std::fs::read_to_string("/proc/thread-self/schedstat") else { return };
    for (field, sum) in schedstat.split(' ').zip([&RAN, &WAITED]) {
        sum.fetch_add(field.parse().unwrap_or(0), Relaxed);
    }
}

/// How long measuring threads ran, and waited for a core.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Waits {
    ran: u64,
    waited: u64,
}

pub fn waits() -> Waits {
    Waits { ran: RAN.load(Relaxed), waited: WAITED.load(Relaxed) }
}

impl Waits {
    pub fn add(&mut self, other: Waits) {
        self.ran += other.ran;
        self.waited += other.waited;
    }

    /// The share of the time spent waiting: near zero on an otherwise idle machine.
    ///
    /// `None` if the kernel does not report it.
    pub fn share(self) -> Option<f64> {
        let (ran, waited) = (self.ran as f64, self.waited as f64);
        (ran > 0.0).then(|| waited / (ran + waited))
    }
}
