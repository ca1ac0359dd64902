//! In real time: alarms fire by the system's clocks, leases are extended, and an idle store does not wake up.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use tourbillon_durable::Durable;

use crate::{SECOND, seconds, take};

#[test]
fn a_timer_is_handed_out_in_time_by_the_system_clock() {
    let durable = Durable::memory().unwrap();
    let queue = durable.queue("orders").unwrap();
    let at = SystemTime::now() + Duration::from_millis(50);
    queue.schedule(tourbillon_durable::NewTimer::at(at)).wait().unwrap();
    let mut nothing = queue.schedule(seconds(3600));
    assert!(nothing.wait_for(10 * SECOND).is_some());
    assert!(nothing.wait_for(Duration::ZERO).is_none(), "taken before");
    let [delivery] = queue.receive(1, 20 * SECOND).wait().unwrap().try_into().unwrap();
    let late = SystemTime::now().duration_since(at).expect("never early");
    assert!(late < SECOND, "{late:?}");
    delivery.ack().wait().unwrap();
    let began = Instant::now();
    assert!(queue.receive(1, Duration::from_millis(20)).wait().unwrap().is_empty());
    assert!(began.elapsed() >= Duration::from_millis(20) - Duration::from_millis(1));
}

#[test]
fn a_worker_extends_its_lease_up_to_a_limit() {
    let durable = Durable::memory().unwrap();
    let queue = durable.queue("orders").unwrap().lease(SECOND).unwrap();
    let (send, attempts) = std::sync::mpsc::channel();
    let worker = queue.worker_within(2, Duration::from_millis(2100), move |delivery| {
        send.send((delivery.attempt(), Instant::now()))?;
        std::thread::sleep(Duration::from_millis(if delivery.attempt() == 1 { 4000 } else { 0 }));
        Ok(())
    });
    queue.schedule(seconds(0)).wait().unwrap();
    let (first, began) = attempts.recv_timeout(20 * SECOND).unwrap();
    let (second, again) = attempts.recv_timeout(20 * SECOND).unwrap();
    assert_eq!((first, second), (1, 2));
    let held = again.duration_since(began);
    assert!(held > Duration::from_millis(2400), "extended at 0.5, 1, 1.5 and 2 s: {held:?}");
    drop(worker);
}

/// The number of wake-ups of the runtime's threads.
fn wakes() -> u64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let statuses =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let ours = statuses.filter(|status| status.starts_with("Name:\ttourbillon"));
    let count = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    ours.map(count).sum()
}

/// Runs in its own process, because other tests have runtimes too.
#[test]
fn an_idle_store_does_not_wake() {
    if std::env::var_os("TOURBILLON_IDLE").is_none() {
        let program = std::env::current_exe().unwrap();
        let alone = std::process::Command::new(program)
            .args(["--exact", "real::an_idle_store_does_not_wake", "--nocapture"])
            .env("TOURBILLON_IDLE", "1")
            .output()
            .unwrap();
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
        return;
    }
    let durable = Durable::memory().unwrap();
    let queue = durable.queue("orders").unwrap();
    queue.schedule(seconds(3600)).wait().unwrap();
    let waiting = queue.receive(1, Duration::MAX);
    assert!(take(&queue).is_empty());
    std::thread::sleep(Duration::from_millis(300));
    let before = wakes();
    std::thread::sleep(2 * SECOND);
    if cfg!(target_os = "linux") {
        assert_eq!(wakes() - before, 0);
    }
    drop(waiting);
}
