//! The machine: its cores, and its name for the report.

use std::hint::black_box;
use std::time::Instant;

use crate::wheel::load::Load;

#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_gib: f64,
    pub os: String,
    pub arch: String,
}

/// Pins this thread to a core, counted from the last, which is interrupted least often.
///
/// Threads that this thread starts inherit the core.
pub fn pin_thread(number: usize) -> Option<usize> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let core = cores.iter().rev().nth(number % cores.len().max(1))?;
    core_affinity::set_for_current(*core).then_some(core.id)
}

pub fn describe() -> Machine {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    Machine {
        cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
        cores: cores.len(),
        memory_gib: memory().unwrap_or(0.0),
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
    }
}

fn memory() -> Option<f64> {
    let total = field("/proc/meminfo", "MemTotal")?;
    Some(total.split(' ').next()?.parse::<f64>().ok()? / f64::from(1 << 20))
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The floor: nanoseconds to read, modify and write one cache line of an array with one line per timer, in this order.
///
/// The accesses are independent of each other, so the processor overlaps as many as it can.
pub fn floor(load: &Load, order: &[u32]) -> f64 {
    #[derive(Clone)]
    #[repr(align(64))]
    struct Line(u64);

    let mut lines = vec![Line(1); load.population];
    let repeats = load.repeats();
    // Once to warm up.
    order.iter().for_each(|&line| lines[line as usize].0 += 1);
    let begin = Instant::now();
    for _ in 0..repeats {
        order.iter().for_each(|&line| lines[line as usize].0 += 1);
    }
    let spent = begin.elapsed().as_nanos() as f64;
    black_box(&lines);
    spent / (repeats * order.len()) as f64
}
