//! The delay queue and many threads: each value is taken once, every waiting thread gets its turn, and none is woken
//! spuriously.
//!
//! Some are in real time: the leader sleeps by the system's clock, and is woken by threads that put.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::{Clock, DelayQueue, Sleeper, TakeError, Timer, VirtualClock};

use crate::common::asleep::{Tid, await_asleep, spawn_asleep, spawn_known};
use crate::common::{HOUR, Log, MS, SECOND, case, eventually, within};

/// The results of the takers.
type Taken<T> = mpsc::Receiver<Result<T, TakeError>>;

/// Starts this many takers; returns their thread ids, and what they took.
fn takers<T: Send + 'static>(queue: &DelayQueue<T>, count: usize) -> (Vec<Tid>, Taken<T>) {
    let (sender, received) = mpsc::channel();
    let one = |_| {
        let (queue, sender) = (queue.clone(), sender.clone());
        spawn_known(move || _ = sender.send(queue.take())).0
    };
    ((0..count).map(one).collect(), received)
}

/// As [`takers`], once all of them wait.
fn waiting_takers<T: Send + 'static>(queue: &DelayQueue<T>, count: usize) -> Taken<T> {
    let (tids, received) = takers(queue, count);
    await_asleep(&tids);
    received
}

#[test]
fn an_advance_has_what_is_due_taken_by_who_waits() {
    for _ in 0..20 {
        let clock = VirtualClock::new();
        let queue = Timer::builder().clock(&clock).queue().unwrap();
        let log = Log::new();
        let (tids, threads): (Vec<_>, Vec<_>) = (0..3)
            .map(|_| {
                let (queue, log, clock) = (queue.clone(), log.clone(), clock.clone());
                spawn_known(move || {
                    let value: u64 = queue.take().unwrap();
                    log.add((value, clock.elapsed()));
                })
            })
            .unzip();
        for n in 1..=4 {
            queue.put(SECOND * n, u64::from(n)).unwrap();
        }
        await_asleep(&tids);
        // To the first deadline, then past the others: a taker reads a time that is not before the deadline of its
        // value.
        clock.advance(SECOND).unwrap();
        clock.advance(SECOND * 9).unwrap();
        assert_eq!(queue.len(), 1, "three waited, one value is left");
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut taken = log.take();
        taken.sort_unstable();
        for (number, &(value, at)) in (1..).zip(&taken) {
            assert_eq!(value, number);
            assert!(at >= SECOND * number as u32, "{value} was taken at {at:?}");
        }
        assert_eq!(queue.try_take(), Ok(4));
    }
}

#[test]
fn a_limit_passes_in_virtual_time_for_who_leads_and_who_follows() {
    let clock = VirtualClock::new();
    let queue: DelayQueue<u8> = Timer::builder().clock(&clock).queue().unwrap();
    let (tids, threads): (Vec<_>, Vec<_>) = (1..=3)
        .map(|n| {
            let queue = queue.clone();
            spawn_known(move || queue.take_within(SECOND * n))
        })
        .unzip();
    await_asleep(&tids);
    clock.advance(SECOND * 2).unwrap();
    eventually(|| threads.iter().filter(|thread| thread.is_finished()).count() == 2);
    queue.put(SECOND / 2, 7).unwrap();
    clock.advance(HOUR).unwrap();
    let mut ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    ends.sort_by_key(|end| end.is_ok());
    assert_eq!(ends, [Err(TakeError::NothingDue), Err(TakeError::NothingDue), Ok(7)]);
}

#[test]
fn a_limit_that_the_clock_has_passed_already_is_not_waited_for() {
    // The advance may come before the take, during it, or after it: the take always ends.
    for _ in 0..500 {
        let clock = VirtualClock::new();
        let queue: DelayQueue<()> = Timer::builder().clock(&clock).queue().unwrap();
        let end = clock.now() + MS;
        let taker = {
            let (queue, clock) = (queue.clone(), clock.clone());
            thread::spawn(move || queue.take_within(end.saturating_duration_since(clock.now())))
        };
        clock.advance(SECOND).unwrap();
        // If the take read the clock after the advance, the next advance passes its limit.
        if !taker.is_finished() {
            clock.advance(SECOND).unwrap();
        }
        assert_eq!(within(move || taker.join().unwrap()), Err(TakeError::NothingDue));
    }
}

/// A clock that stands still, jumps on request, and then wakes its sleepers.
#[derive(Clone)]
struct Jumping {
    now: Arc<Mutex<Instant>>,
    asleep: Log<Sleeper>,
}

impl Jumping {
    fn new() -> Self {
        Jumping { now: Arc::new(Mutex::new(Instant::now())), asleep: Log::new() }
    }

    fn jump_an_hour(&self) {
        *self.now.lock().unwrap() += HOUR;
        self.asleep.take().iter().for_each(Sleeper::wake);
    }
}

impl Clock for Jumping {
    fn now(&self) -> Instant {
        *self.now.lock().unwrap()
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        // Registered before it reads the time: a jump that it does not see wakes it.
        self.asleep.add(sleeper.clone());
        if until.is_none_or(|until| until > self.now()) {
            sleeper.sleep(None);
        }
    }
}

/// The limits of followers, to the nanosecond. No thread is woken because another thread's limit has passed.
#[test]
fn a_limit_passes_when_a_clock_of_your_own_jumps() {
    const NS: Duration = Duration::from_nanos(1);
    let limits = [
        vec![SECOND * 60, HOUR / 2, HOUR * 9],
        vec![HOUR - NS],
        vec![HOUR],
        vec![HOUR + NS],
        vec![HOUR, HOUR],
        vec![HOUR, HOUR + NS],
        vec![HOUR - NS, HOUR, HOUR + NS],
    ];
    for limits in limits {
        for leader in [None, Some(HOUR * 9)] {
            let limits = limits.clone();
            case(format!("{limits:?}, who leads has {leader:?}"), move || {
                let clock = Jumping::new();
                let queue: DelayQueue<u8> = Timer::builder().clock(clock.clone()).queue().unwrap();
                let take = |limit: Option<Duration>| {
                    let queue = queue.clone();
                    spawn_known(move || {
                        limit.map_or_else(|| queue.take(), |limit| queue.take_within(limit))
                    })
                };
                let leads = take(leader);
                await_asleep(std::slice::from_ref(&leads.0));
                let follow = |&limit: &Duration| (limit, take(Some(limit)));
                let (late, mut others): (Vec<_>, Vec<_>) =
                    limits.iter().map(follow).partition(|follows| follows.0 <= HOUR);
                others.push((HOUR * 9, leads));
                let tids = |all: &[(Duration, (Tid, _))]| -> Vec<Tid> {
                    all.iter().map(|one| one.1.0.clone()).collect()
                };
                await_asleep(&[tids(&late), tids(&others)].concat());
                clock.jump_an_hour();
                for (limit, (_, thread)) in late {
                    assert_eq!(thread.join().unwrap(), Err(TakeError::NothingDue), "{limit:?}");
                }
                await_asleep(&tids(&others));
                assert!(others.iter().all(|one| !one.1.1.is_finished()), "never early");
                queue.close();
                for (limit, (_, thread)) in others {
                    assert_eq!(thread.join().unwrap(), Err(TakeError::Closed), "{limit:?}");
                }
            });
        }
    }
}

#[test]
fn a_limit_is_kept_by_who_follows_on_a_clock_of_your_own() {
    // Real time. The leader has no limit; a later follower has an earlier limit than the follower before it.
    let clock = Counting::default();
    let queue: DelayQueue<u8> = Timer::builder().clock(clock).queue().unwrap();
    let patient = waiting_takers(&queue, 1);
    let hour = queue.clone();
    let follower = spawn_asleep(move || hour.take_within(HOUR));
    let short = queue.clone();
    let end = within(move || short.take_within(MS * 30));
    assert_eq!(end, Err(TakeError::NothingDue));
    queue.close();
    assert_eq!(follower.join().unwrap(), Err(TakeError::Closed));
    assert_eq!(patient.recv(), Ok(Err(TakeError::Closed)));
}

#[test]
fn what_somebody_else_takes_out_does_not_hold_up_the_clock() {
    // One thread waits for the value; another takes it just when it is due. The advance must not wait for the first.
    for round in 0..300 {
        within(move || {
            let clock = VirtualClock::new();
            let queue = Timer::builder().clock(&clock).queue().unwrap();
            let key = queue.put(SECOND, ()).unwrap();
            let (_, waiting) = takers(&queue, 1);
            let (other, own) = (queue.clone(), clock.clone());
            let other = thread::spawn(move || {
                while own.elapsed() < SECOND {
                    thread::yield_now();
                }
                match round % 3 {
                    0 => drop(other.remove(key)),
                    1 => drop(other.try_take()),
                    _ => drop(other.reschedule(key, HOUR)),
                }
            });
            clock.advance(SECOND).unwrap();
            other.join().unwrap();
            queue.close();
            let _ = waiting.recv();
        });
    }
}

#[test]
fn close_wakes_all_takers() {
    let queue: DelayQueue<()> = DelayQueue::new();
    queue.put(HOUR, ()).unwrap();
    let received = waiting_takers(&queue, 5);
    assert_eq!(queue.close().len(), 1);
    let all: Vec<_> = within(move || received.into_iter().collect());
    assert_eq!(all, [Err(TakeError::Closed); 5]);
}

#[test]
fn an_earlier_value_wakes_who_leads() {
    // Real time: the leader must not sleep for the hour.
    let queue = DelayQueue::new();
    queue.put(HOUR, "later").unwrap();
    let received = waiting_takers(&queue, 2);
    let began = Instant::now();
    queue.put(MS * 20, "sooner").unwrap();
    let hour = queue.put(HOUR * 2, "moved").unwrap();
    queue.reschedule(hour, MS * 40).unwrap();
    let mut taken = within(move || [received.recv().unwrap(), received.recv().unwrap()]);
    // Each is taken by another thread, and either may report first.
    taken.sort_by_key(|taken| taken.unwrap());
    assert_eq!(taken, [Ok("moved"), Ok("sooner")]);
    assert!(began.elapsed() >= MS * 40, "never early");
    assert_eq!(queue.len(), 1);
}

#[test]
fn leadership_goes_on_when_who_leads_gives_up() {
    // The leader leaves without a value; one of the others must become the leader, and sleep by the clock.
    let clock = Jumping::new();
    let queue = Timer::builder().clock(clock.clone()).queue().unwrap();
    let own = queue.clone();
    let impatient = spawn_asleep(move || own.take_within(HOUR / 2));
    let (tids, received) = takers(&queue, 2);
    queue.put(HOUR * 3 / 2, 1).unwrap();
    queue.put(HOUR * 3 / 2, 2).unwrap();
    await_asleep(&tids);
    clock.jump_an_hour();
    assert_eq!(within(move || impatient.join().unwrap()), Err(TakeError::NothingDue));
    await_asleep(&tids);
    clock.jump_an_hour();
    let mut taken = within(move || [received.recv().unwrap(), received.recv().unwrap()]);
    taken.sort_by_key(|taken| taken.unwrap());
    assert_eq!(taken, [Ok(1), Ok(2)]);
}

#[test]
fn each_value_is_taken_once_and_never_early() {
    // Real time: several producers, which also remove and move values at random, and several consumers.
    const EACH: usize = 20_000;
    let queue = DelayQueue::new();
    let producers: Vec<_> = (0..3_usize)
        .map(|number| {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(number as u64);
                let mut removed = 0;
                for n in 0..EACH {
                    let after = Duration::from_micros(random.u64(0..5_000));
                    let key = queue.put(after, (number * EACH + n, Instant::now() + after));
                    match random.u32(0..10) {
                        0 => removed += usize::from(queue.remove(key.unwrap()).is_some()),
                        // The value still carries the old deadline: it may come later than that, not earlier.
                        1 => drop(queue.reschedule(key.unwrap(), after + MS)),
                        _ => {}
                    }
                }
                removed
            })
        })
        .collect();
    let seen: Arc<Vec<AtomicUsize>> =
        Arc::new((0..3 * EACH).map(|_| AtomicUsize::new(0)).collect());
    let consumers: Vec<_> = (0..3)
        .map(|number| {
            let (queue, seen) = (queue.clone(), seen.clone());
            thread::spawn(move || {
                let mut taken = 0;
                loop {
                    let value = match number {
                        0 => queue.take(),
                        1 => queue.take_within(Duration::from_micros(100)),
                        _ => queue.try_take(),
                    };
                    match value {
                        Ok((value, due)) => {
                            // Both clocks are the system's; the queue read the time before `due` was computed.
                            assert!(Instant::now() + Duration::from_micros(1) >= due - MS);
                            seen[value].fetch_add(1, SeqCst);
                            taken += 1;
                        }
                        Err(TakeError::Closed) => return taken,
                        Err(_) => thread::yield_now(),
                    }
                }
            })
        })
        .collect();
    let removed: usize = producers.into_iter().map(|thread| thread.join().unwrap()).sum();
    eventually(|| queue.is_empty());
    assert!(queue.close().is_empty());
    let taken: usize = within(move || consumers.into_iter().map(|c| c.join().unwrap()).sum());
    assert_eq!(taken + removed, 3 * EACH);
    assert!(seen.iter().all(|times| times.load(SeqCst) <= 1));
    let counts = queue.counts();
    assert_eq!((counts.fired as usize, counts.cancelled as usize), (taken, removed));
    assert_eq!(queue.check(), Ok(()));
}

/// A clock that counts how often a driver or a leader went to sleep.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Clock for Counting {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        self.0.fetch_add(1, SeqCst);
        sleeper.sleep(until.map(|until| until.saturating_duration_since(Instant::now())));
    }
}

#[test]
fn nobody_is_woken_for_nothing() {
    // Real time. One leads, three follow; a value that is due later than the first wakes no thread.
    let clock = Counting::default();
    let queue = Timer::builder().clock(clock.clone()).queue().unwrap();
    let (tids, received) = takers(&queue, 4);
    queue.put(HOUR, 0).unwrap();
    await_asleep(&tids);
    let before = clock.0.load(SeqCst);
    for n in 0..1000 {
        queue.put(HOUR * 2, n).unwrap();
    }
    await_asleep(&tids);
    assert_eq!(clock.0.load(SeqCst), before, "later values wake nobody");
    // One value: the leader wakes and takes it, and a follower becomes the leader.
    queue.put(Duration::ZERO, 7).unwrap();
    assert_eq!(received.recv().unwrap(), Ok(7));
    await_asleep(&tids);
    let woken = clock.0.load(SeqCst) - before;
    // One sleep after the put, because its tick has not begun yet, and one of the next leader.
    assert!((1..=3).contains(&woken), "{woken} sleeps began");
    queue.close();
    assert_eq!(received.into_iter().count(), 3);
}
