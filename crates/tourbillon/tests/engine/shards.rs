//! What holds for one shard holds for all of them together: keys refer to their timers in any shard, and reports of the
//! engine cover every shard.

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::common::{HOUR, MS, SECOND, accounted, panic_quietly};
use tourbillon::{Context, Key, State, Timeout, Timer, VirtualClock};

/// Runs on this many threads, one after another. Each thread keeps to a shard, and the next one gets the next shard.
fn on_threads(count: usize, run: impl Fn(usize) + Sync) {
    for n in 0..count {
        thread::scope(|scope| {
            scope.spawn(|| run(n));
        });
    }
}

/// More shards than a byte can number.
const MANY: usize = 512;

#[test]
fn keys_and_handles_name_their_timers_on_every_shard() {
    let clock = VirtualClock::new();
    let builder = Timer::builder().clock(&clock).shards(MANY).hierarchical(&[2]).on_driver();
    let timer = builder.build().unwrap();
    let armed: Mutex<Vec<(Key, Timeout)>> = Mutex::default();
    let is_used = |shard: &tourbillon::ShardView| !shard.slots.is_empty();
    // Once, unless other tests of the process have threads as well.
    while !timer.snapshot().shards.iter().all(is_used) {
        on_threads(MANY, |_| {
            let key = timer.arm(HOUR, |_| ()).unwrap();
            let handle = timer.schedule(HOUR, |_| ()).unwrap();
            armed.lock().unwrap().push((key, handle));
        });
    }
    let snapshot = timer.snapshot();
    let memory: usize = snapshot.shards.iter().map(|shard| shard.memory).sum();
    assert_eq!(snapshot.memory(), memory, "of all shards");
    assert!(snapshot.shards.iter().all(|shard| shard.memory > 0));
    let armed = armed.into_inner().unwrap();
    let pending: Vec<Key> = timer.pending().into_iter().map(|one| one.key).collect();
    assert_eq!(pending.len(), 2 * armed.len());
    assert!(pending.iter().all(|&key| timer.is_pending(key)), "those that are listed");
    for (n, (key, handle)) in armed.iter().enumerate() {
        assert!(timer.is_pending(*key) && handle.is_pending() && timer.is_pending(handle.key()));
        assert!(pending.contains(key) && pending.contains(&handle.key()));
        match n % 3 {
            0 => assert!(timer.cancel(*key) && timer.cancel(handle.key())),
            1 => assert!(handle.cancel() && timer.reschedule(*key, SECOND).is_ok()),
            _ => {
                timer.reschedule(handle.key(), SECOND).unwrap();
                assert_eq!(handle.deadline(), Some(timer.now() + SECOND));
                assert_eq!(timer.deadline(*key), Some(timer.now() + HOUR));
            }
        }
    }
    clock.advance(SECOND).unwrap();
    for (n, (key, handle)) in armed.iter().enumerate() {
        let ended = if n % 3 == 2 { State::Fired } else { State::Cancelled };
        assert_eq!((handle.state(), timer.is_pending(*key)), (ended, n % 3 == 2), "{n}");
    }
    accounted(&timer);
}

/// A task that sleeps.
#[cfg(feature = "tasks")]
fn sleeping(timer: &Timer, after: Duration) -> impl Send + use<> {
    let mut sleep = Box::pin(timer.sleep(after));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(sleep.as_mut().poll(&mut context).is_pending());
    sleep
}

/// Compared with a list of all of them, tasks and callbacks: the count and the maximum exactly, quantiles to a quarter.
#[test]
fn the_lateness_is_that_of_all_shards() {
    for seed in 0..12 {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(4).on_driver().build().unwrap();
        let all: Mutex<(fastrand::Rng, Vec<u64>)> =
            Mutex::new((fastrand::Rng::with_seed(seed), Vec::new()));
        #[cfg(feature = "tasks")]
        let sleeps = Mutex::new(Vec::new());
        on_threads(8, |_| {
            let (random, late) = &mut *all.lock().unwrap();
            // Mostly a little late, sometimes almost a tick.
            for _ in 0..random.usize(1..5) {
                let by = random.u64(0..1_000_000) >> random.u32(0..16);
                let after = Duration::from_nanos(9_000_000 - by);
                late.push(by);
                #[cfg(feature = "tasks")]
                if random.bool() {
                    sleeps.lock().unwrap().push(sleeping(&timer, after));
                    continue;
                }
                timer.arm(after, |_| ()).unwrap();
            }
        });
        clock.advance(10 * MS).unwrap();
        let mut late = all.into_inner().unwrap().1;
        late.sort_unstable();
        let lateness = timer.lateness();
        let told: u64 = lateness.buckets().map(|(_, times)| times).sum();
        assert_eq!((lateness.count(), told), (late.len() as u64, late.len() as u64));
        assert_eq!(lateness.max(), Duration::from_nanos(*late.last().unwrap()), "seed {seed}");
        for part in [0.01, 0.25, 0.5, 0.75, 0.9, 1.0] {
            let number = (part * late.len() as f64).ceil() as usize;
            let truth = Duration::from_nanos(late[number - 1]);
            let quantile = lateness.quantile(part);
            assert!(
                (truth..=truth * 5 / 4).contains(&quantile),
                "seed {seed}, {part}: {quantile:?} and not {truth:?}"
            );
        }
    }
}

#[test]
fn the_panics_are_those_of_all_shards() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).shards(4).on_driver().build().unwrap();
    on_threads(8, |_| {
        timer.arm(SECOND, |_| panic_quietly()).unwrap();
    });
    clock.advance(SECOND).unwrap();
    assert_eq!(timer.counts().panicked, 8);
    accounted(&timer);
}

/// The memory of a crowd is freed after its last callback has run: freeing takes a while, and the callback is due.
#[test]
fn the_last_of_a_crowd_runs_before_its_memory_is_freed() {
    const CROWD: u64 = 20_000;
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).shards(1).on_driver().build().unwrap();
    let (sender, receiver) = mpsc::channel();
    for n in 0..CROWD {
        let sender = sender.clone();
        let last = move |context: &Context<'_>| {
            if n == CROWD - 1 {
                sender.send(context.timer().snapshot().memory()).unwrap();
            }
        };
        timer.arm(Duration::from_millis(n), last).unwrap();
    }
    let full = timer.snapshot().memory();
    clock.advance(Duration::from_millis(CROWD)).unwrap();
    assert_eq!(timer.counts().fired, CROWD);
    let seen = receiver.try_recv().unwrap();
    assert!(seen > full / 2, "of {full} bytes {seen} were left when the last one ran");
    assert!(timer.snapshot().memory() < full / 10, "it was given back after that");
    timer.check().unwrap();
    // The new wheel's hand is where the old one's was.
    let next = timer.arm(Duration::from_millis(5), |_| ()).unwrap();
    clock.advance(Duration::from_millis(4)).unwrap();
    assert!(timer.is_pending(next));
    clock.advance(Duration::from_millis(1)).unwrap();
    assert_eq!((timer.counts().fired, timer.lateness().max()), (CROWD + 1, Duration::ZERO));
}
