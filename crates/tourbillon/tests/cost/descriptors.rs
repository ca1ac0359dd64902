//! File descriptors: no child process inherits one, and without free descriptors the engine works, at the same cost. In
//! real time, because a virtual clock has no descriptors.

use std::fs::{self, File};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::common::faces::{FACES, WALL_FACES};
use crate::common::{HOUR, MS, eventually};
use crate::meter::{alone, cpu};
use tourbillon::{BootClock, Timer};

/// The descriptors of the engine: eventfds and timerfds, each with whether it closes on exec.
fn opened() -> Vec<(String, bool)> {
    let descriptor = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?.to_str()?.to_owned();
        let number = entry.file_name().into_string().ok()?;
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let closes_on_exec = i64::from_str_radix(flags.trim(), 8).ok()? & 0o2_000_000 != 0;
        let is_ours = ["eventfd", "timerfd"].iter().any(|kind| link.contains(kind));
        is_ours.then_some((link, closes_on_exec))
    };
    fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(descriptor).collect()
}

#[test]
fn no_child_inherits_a_descriptor() {
    let _alone = alone();
    // The boot clock's timerfd and eventfd, the watch of the wall clock, and the descriptor that wakes an event loop.
    let timer = Timer::builder().clock(BootClock).build().unwrap();
    timer.schedule_wall(SystemTime::now() + HOUR, |_| ()).unwrap();
    let (_driven, mut driver) = Timer::builder().build_driven().unwrap();
    let _fd = driver.wake_fd().unwrap();
    eventually(|| opened().len() >= 4);
    let inherited: Vec<_> = opened().into_iter().filter(|(_, closes)| !closes).collect();
    assert!(inherited.is_empty(), "{inherited:?}");
}

/// The environment variable that marks the child process, and holds how many descriptors it may open.
const CHILD: &str = "TOURBILLON_DESCRIPTORS_LEFT";

/// In a child process, so that it does not take the descriptors of other tests.
#[test]
fn without_descriptors() {
    if let Ok(left) = std::env::var(CHILD) {
        return with(left.parse().unwrap());
    }
    let _alone = alone();
    // None; and one for a timerfd, with none for the eventfd that goes with it.
    for left in [0, 1] {
        let child = Command::new("sh")
            .args(["-c", r#"ulimit -n 64 && exec "$0" "$@""#])
            .arg(std::env::current_exe().unwrap())
            .args(["descriptors::without_descriptors", "--exact"])
            .env(CHILD, left.to_string())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && told.contains("1 passed"), "{left} are left: {told}");
    }
}

/// Every face on the boot clock or the wall clock waits, wakes and ends with this many descriptors left.
fn with(left: usize) {
    // A run that records which planted faults are reached opens a file for that when it reaches the first one.
    Timer::new().arm(HOUR, |_| ()).unwrap();
    let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    taken.truncate(taken.len() - left);
    let (_driven, mut driver) = Timer::builder().build_driven().unwrap();
    assert_eq!(driver.wake_fd().is_ok(), left > 0);
    drop(driver);
    let boot = || Timer::builder().clock(BootClock);
    let all: Vec<_> = FACES.iter().chain(WALL_FACES).map(|face| (face.open)(boot())).collect();
    let (told, happened) = mpsc::channel();
    let soon = |after: Duration| {
        for arm in &all {
            let told = told.clone();
            arm(after, Box::new(move || told.send(()).unwrap()));
        }
    };
    let await_all = || {
        for _ in &all {
            happened.recv_timeout(Duration::from_secs(10)).expect("it happens in time");
        }
    };
    all.iter().for_each(|arm| arm(HOUR, Box::new(|| ())));
    // Earlier than the deadlines for which the threads sleep.
    soon(MS);
    await_all();
    let is_dear = |_: &i32| {
        soon(60 * MS);
        thread::sleep(5 * MS);
        let begin = cpu();
        thread::sleep(40 * MS);
        let spent = cpu() - begin;
        await_all();
        spent > 4 * MS
    };
    assert!((0..3).take_while(is_dear).count() < 3, "it spins while it waits");
    drop(taken);
    // Descriptors are available again.
    soon(MS);
    await_all();
}
