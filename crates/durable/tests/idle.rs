//! With one timer an hour away, on disk and in real time, the process must be completely idle. This is a separate
//! program, because it watches every thread.

use std::fs;
use std::time::Duration;

use tourbillon_durable::{Durable, NewTimer};

/// The context switches of these threads, and the bytes that the process has written.
fn activity(threads: &[String]) -> Option<(u64, u64)> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let mut switches = 0;
    for thread in threads {
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
        let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
        switches += lines.filter_map(|line| number(line.split_once(':')?.1)).sum::<u64>();
    }
    let io = fs::read_to_string("/proc/self/io").ok()?;
    let written = io.lines().find_map(|line| number(line.strip_prefix("wchar:")?))?;
    Some((switches, written))
}

fn threads() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[test]
fn an_idle_store_wakes_for_nothing_and_writes_nothing() {
    let before = threads();
    let directory = std::env::temp_dir().join(format!("tourbillon-idle-{}", std::process::id()));
    let durable = Durable::open(&directory).unwrap();
    let queue = durable.queue("jobs").unwrap();
    let receive = queue.receive(1, Duration::from_secs(7200));
    queue.schedule(NewTimer::after(Duration::from_secs(3600))).wait().unwrap();
    // Waits until the start has finished.
    std::thread::sleep(Duration::from_millis(300));
    let ours: Vec<String> =
        threads().into_iter().filter(|thread| !before.contains(thread)).collect();
    let began = activity(&ours);
    std::thread::sleep(Duration::from_millis(1500));
    let ended = activity(&ours);
    drop((receive, queue, durable));
    let _ = fs::remove_dir_all(&directory);
    if began.is_none() {
        println!("skipped: this system does not tell what threads do");
        return;
    }
    assert!(!ours.is_empty(), "the store has threads of its own");
    assert_eq!(began, ended, "wake-ups and bytes written");
}
