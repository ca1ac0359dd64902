//! What only real time can show: nothing is early, and waiting is free. Every test in this file sleeps, to measure what
//! only the kernel knows.

mod common;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{HOUR, MS, PLACES, SECOND, accounted, eventually, running_on};
use tourbillon::{Context, Timer};

/// One at a time, because they measure.
static ALONE: Mutex<()> = Mutex::new(());

/// 20 000 short timers with random delays: none runs before its deadline, by the clock itself.
#[test]
fn no_timer_is_early_by_the_clock() {
    let _alone = ALONE.lock();
    let mut random = fastrand::Rng::with_seed(3);
    for tick in [Duration::from_nanos(1), Duration::from_micros(100), MS] {
        for place in PLACES {
            let timer = running_on(place).tick(tick).build().unwrap();
            let (early, ran) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            for _ in 0..20_000 / 9 {
                let after = Duration::from_nanos(random.u64(0..100_000_000) >> random.u32(0..20));
                let (early, ran) = (early.clone(), ran.clone());
                let deadline = Instant::now() + after;
                let run = move |context: &Context<'_>| {
                    // It was read before the timer read its clock: the timer's deadline is not earlier than this one.
                    let now = Instant::now();
                    let is_early = now < deadline || now < context.deadline();
                    early.fetch_add(u64::from(is_early), SeqCst);
                    ran.fetch_add(1, SeqCst);
                };
                timer.schedule(after, run).unwrap();
            }
            eventually(|| ran.load(SeqCst) == 20_000 / 9);
            assert_eq!(early.load(SeqCst), 0, "{place}, a tick of {tick:?}");
            timer.stop();
            accounted(&timer);
        }
    }
}

/// The context switches of the threads with that name, from the kernel: (voluntary, involuntary).
#[cfg(target_os = "linux")]
fn switches(name: &str) -> (u64, u64) {
    let mut found = None;
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let Ok(status) = std::fs::read_to_string(task.path().join("status")) else { continue };
        let field = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            Some(line.trim().to_owned())
        };
        if field("Name:").as_deref() == Some(name) {
            assert!(found.is_none(), "one thread is called {name}");
            let number = |name: &str| field(name).and_then(|text| text.parse().ok()).unwrap();
            let voluntary = number("voluntary_ctxt_switches:");
            found = Some((voluntary, number("nonvoluntary_ctxt_switches:")));
        }
    }
    found.expect("there is such a thread")
}

/// Waits until the thread sleeps: until its context switches have not changed for a while.
#[cfg(target_os = "linux")]
fn asleep(name: &str) -> (u64, u64) {
    let mut last = (u64::MAX, u64::MAX);
    loop {
        std::thread::sleep(50 * MS);
        let now = switches(name);
        if now == last {
            return now;
        }
        last = now;
    }
}

/// One timer an hour away: the kernel does not run the driver once within a second; neither a new driver nor one that
/// has turned its wheels before.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_driver_is_not_woken() {
    let _alone = ALONE.lock();
    let timers = [
        ("idle-a", Timer::builder()),
        ("idle-b", Timer::builder().hashed(512).shards(1)),
        ("idle-c", Timer::builder().hierarchical(&[4]).tick(Duration::from_micros(1))),
    ]
    .map(|(name, builder)| (format!("{name}-driver"), builder.name(name).build().unwrap()));
    timers.iter().for_each(|(_, timer)| _ = timer.schedule(HOUR, |_| ()).unwrap());
    let new = timers.each_ref().map(|(driver, _)| asleep(driver));
    std::thread::sleep(SECOND / 2);
    assert_eq!(timers.each_ref().map(|(driver, _)| switches(driver)), new);
    // They can still be woken.
    for (_, timer) in &timers {
        for n in 1..20_u32 {
            let soon = timer.schedule(MS * (n % 5), |_| ()).unwrap();
            eventually(|| !soon.is_pending());
        }
    }
    let turned = timers.each_ref().map(|(driver, _)| asleep(driver));
    assert!(new.iter().zip(&turned).all(|(new, turned)| new != turned));
    std::thread::sleep(SECOND);
    let after = timers.each_ref().map(|(driver, _)| switches(driver));
    assert_eq!(after, turned, "after the first turns");
}

/// Timers that are due later than the driver's next wake-up do not wake it, nor do their cancels and their moves to
/// later.
#[cfg(target_os = "linux")]
#[test]
fn scheduling_later_timers_does_not_wake_the_driver() {
    let _alone = ALONE.lock();
    let timer = Timer::builder().name("later").shards(4).build().unwrap();
    let first = timer.schedule(HOUR, |_| ()).unwrap();
    // A shard's first timer notifies the driver only if it is earlier than the driver's next wake-up; these are not.
    let before = asleep("later-driver");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..25_000_u32 {
                    let key = timer.arm(HOUR + MS * n, |_| ()).unwrap();
                    match n % 3 {
                        0 => assert!(timer.cancel(key)),
                        1 => timer.reschedule(key, 2 * HOUR).unwrap(),
                        _ => {}
                    }
                }
            });
        }
    });
    std::thread::sleep(50 * MS);
    assert_eq!(switches("later-driver"), before, "100 000 later timers");
    assert!(first.is_pending());
    // The timer that it sleeps for is moved to later, and cancelled: the driver may wake at the old deadline, but not
    // now.
    first.reschedule(2 * HOUR).unwrap();
    assert!(first.cancel());
    std::thread::sleep(50 * MS);
    assert_eq!(switches("later-driver"), before);
    accounted(&timer);
}

/// hierarchical_hash_wheel_timer: the driver spins while the lowest level is not empty, 80 % of a core for one timer
/// of 100 ms. Here it wakes for the timer, and the worker for its callback.
#[cfg(target_os = "linux")]
#[test]
fn a_driver_wakes_once_for_one_timer() {
    let _alone = ALONE.lock();
    let timer = Timer::builder().name("once").on_driver().build().unwrap();
    timer.schedule(HOUR, |_| ()).unwrap();
    let (before, _) = asleep("once-driver");
    let one = timer.schedule(300 * MS, |_| ()).unwrap();
    eventually(|| !one.is_pending());
    let (after, _) = asleep("once-driver");
    // One to learn of the timer, one to run it; a lock that was held at that moment may cost one more.
    assert!((1..=4).contains(&(after - before)), "{} wake-ups", after - before);
}

/// An idle pool sleeps as well, and so does a timer whose timers were all cancelled.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_pool_is_not_woken() {
    let _alone = ALONE.lock();
    let timer = Timer::builder().name("pool").pool(1).build().unwrap();
    let one = timer.schedule(MS, |_| ()).unwrap();
    eventually(|| !one.is_pending());
    (0..1000).for_each(|_| assert!(timer.schedule(HOUR, |_| ()).unwrap().cancel()));
    let before = (asleep("pool-driver"), asleep("pool-worker"));
    std::thread::sleep(300 * MS);
    assert_eq!((switches("pool-driver"), switches("pool-worker")), before);
}

/// Lateness is measured: for most timers, at most a tick plus the time in which the machine wakes a thread. A thread
/// that only sleeps measures that time.
#[test]
fn timers_are_hardly_late() {
    let _alone = ALONE.lock();
    let timer = Timer::builder().on_driver().build().unwrap();
    let last = Arc::new(AtomicU64::new(0));
    for n in 0..2000_u32 {
        let last = last.clone();
        timer.arm(MS / 10 * n, move |_| _ = last.fetch_add(1, SeqCst)).unwrap();
    }
    let mut sleeps = Vec::new();
    while last.load(SeqCst) < 2000 {
        let begin = Instant::now();
        std::thread::sleep(MS);
        sleeps.push(begin.elapsed());
    }
    sleeps.sort_unstable();
    let usual = sleeps[sleeps.len() / 2];
    let lateness = timer.lateness();
    assert_eq!(lateness.count(), 2000);
    // A loaded machine is sometimes slow; half of the timers must be nearly on time.
    let late = lateness.quantile(0.5);
    assert!(late < 20 * MS + 10 * usual, "{late:?}; a sleep of 1 ms takes {usual:?}");
}
