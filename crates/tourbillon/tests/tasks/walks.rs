//! Random calls of futures, compared with models of a few lines: any order of the verbs, in steps of a tick.

use std::collections::HashMap;
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use tourbillon::tasks::{DelayQueue, Given, QueueKey};
use tourbillon::{Missed, Timer, VirtualClock};

use crate::by_hand::{Task, timer};
use crate::common::{MS, accounted, case};

/// Few milliseconds or many: neighbours in a slot of the wheel, and others.
fn some(random: &mut Rng) -> u32 {
    let most = [2, 20, 300, 100_000][random.usize(0..4)];
    random.u32(0..most)
}

/// Milliseconds since the clock began.
fn now(clock: &VirtualClock) -> u32 {
    clock.elapsed().as_millis() as u32
}

fn walks(name: &str, walk: fn(&mut Rng, &Timer, &VirtualClock)) {
    for seed in 0..60 {
        case(format!("{name}, seed {seed}"), move || {
            let (timer, clock) = timer();
            walk(&mut Rng::with_seed(seed), &timer, &clock);
            assert_eq!(timer.len(), 0, "nothing is left of it");
            accounted(&timer);
        });
    }
}

/// It is ready from its deadline on and not before; the task that polled last is woken then, and no other task.
#[test]
fn a_sleep_is_one_moment_and_one_task() {
    walks("sleep", |random, timer, clock| {
        let begin = clock.now();
        let (mut sleep, mut due, mut elapsed) = (timer.sleep(MS), 1, false);
        let tasks = [Task::new(), Task::new(), Task::new()];
        // The task to be woken.
        let mut waits = None;
        for _ in 0..1000 {
            match random.u32(0..8) {
                0..4 => {
                    let who = random.usize(0..3);
                    elapsed |= due <= now(clock);
                    assert_eq!(tasks[who].poll(&mut sleep).is_ready(), elapsed);
                    waits = (!elapsed).then_some(who);
                }
                4 => {
                    (due, elapsed) = (now(clock) + some(random), false);
                    sleep.reset_after(MS * (due - now(clock)));
                }
                5 => {
                    // Also in the past.
                    (due, elapsed) = (some(random), false);
                    sleep.reset(begin + MS * due);
                }
                _ => clock.advance(MS * some(random)).unwrap(),
            }
            let woken = waits.filter(|_| due <= now(clock));
            for (who, task) in tasks.iter().enumerate() {
                assert_eq!(task.wakes() > 0, woken == Some(who), "task {who} of {waits:?}");
            }
            waits = waits.filter(|_| woken.is_none());
            assert_eq!((sleep.is_elapsed(), sleep.deadline()), (elapsed, begin + MS * due));
        }
    });
}

/// The tick after the one due at this time, if that is taken now.
fn following(missed: Missed, due: u32, period: u32, now: u32) -> u32 {
    match missed {
        Missed::Skip => due + period * (now - due).div_ceil(period).max(1),
        Missed::Delay if now > due + 5 => now + period,
        _ => due + period,
    }
}

/// Every tick is ready when it is due, except that in a long row each 129th comes one poll later.
#[test]
fn an_interval_ticks_at_the_moments_of_its_rhythm() {
    walks("interval", |random, timer, clock| {
        let begin = clock.now();
        let period = 1 + some(random) % 500;
        let (mut interval, mut due) = (timer.interval(MS * period), 0);
        let (mut missed, mut in_a_row, mut waits, task) = (Missed::Burst, 0, false, Task::new());
        for _ in 0..1500 {
            let mut yields = false;
            match random.u32(0..20) {
                0..16 => {
                    let expected = if in_a_row == 128 || due > now(clock) {
                        (yields, waits) = (in_a_row == 128, waits || in_a_row < 128);
                        in_a_row = 0;
                        Poll::Pending
                    } else {
                        let tick = begin + MS * due;
                        due = following(missed, due, period, now(clock));
                        (waits, in_a_row) = (false, in_a_row + 1);
                        Poll::Ready(Ok(tick))
                    };
                    let polled = task.poll_fn(|context| interval.poll_tick(context));
                    assert_eq!(polled, expected, "after {in_a_row} in a row");
                }
                16 => {
                    due = now(clock) + period;
                    interval.reset();
                }
                17 => {
                    due = some(random);
                    interval.reset_at(begin + MS * due);
                }
                18 => {
                    missed = [Missed::Burst, Missed::Skip, Missed::Delay][random.usize(0..3)];
                    interval.set_missed(missed);
                }
                _ => clock.advance(MS * some(random)).unwrap(),
            }
            let woken = waits && due <= now(clock);
            assert_eq!(task.wakes() > 0, woken || yields);
            waits &= !woken;
        }
    });
}

type Queue = DelayQueue<QueueKey, u32, Given>;

/// A generated key refers to one item: once that item is gone, the key refers to nothing.
#[test]
fn a_generated_key_names_one_item_for_ever() {
    walks("tasks::DelayQueue", |random, timer, clock| {
        let (mut queue, task): (Queue, _) = (timer.delay_queue(), Task::new());
        // All keys ever generated; and the items in the queue with their deadlines.
        let mut keys: Vec<QueueKey> = Vec::new();
        let mut there: HashMap<QueueKey, (u32, u32)> = HashMap::new();
        for step in 0..1000 {
            let some_key = |random: &mut Rng| random.choice(&keys).copied();
            match random.u32(0..40) {
                0..14 => {
                    let after = some(random);
                    let key = queue.push(step, MS * after).unwrap();
                    assert!(!keys.contains(&key), "it was given before");
                    keys.push(key);
                    there.insert(key, (step, now(clock) + after));
                }
                14..20 => {
                    let Some(key) = some_key(random) else { continue };
                    let expected = there.remove(&key).map(|(value, _)| value);
                    assert_eq!(queue.remove(&key), expected);
                }
                20..24 => {
                    let (Some(key), after) = (some_key(random), some(random)) else { continue };
                    let known = there.get_mut(&key);
                    assert_eq!(queue.reset(&key, MS * after), known.is_some());
                    known.into_iter().for_each(|(_, due)| *due = now(clock) + after);
                }
                24 => {
                    queue.clear();
                    there.clear();
                }
                25..30 => clock.advance(MS * some(random)).unwrap(),
                _ => {
                    let first = there.values().map(|&(_, due)| due).min();
                    match task.poll_fn(|context| queue.poll_expired(context)) {
                        Poll::Ready(Some(item)) => {
                            let item = item.unwrap();
                            let (value, due) = there.remove(&item.key).expect("it was there");
                            assert_eq!(item.value, value);
                            assert!(due <= now(clock), "early");
                        }
                        Poll::Ready(None) => assert_eq!(first, None),
                        Poll::Pending => assert!(first.unwrap() > now(clock), "late"),
                    }
                }
            }
            if let Some(key) = random.choice(&keys) {
                let known = there.get(key);
                assert_eq!(queue.get(key), known.map(|(value, _)| value));
                assert_eq!(queue.contains_key(key), known.is_some());
                let deadline = known.map(|&(_, due)| clock.now() - clock.elapsed() + MS * due);
                assert_eq!(queue.deadline(key), deadline);
            }
            assert_eq!((queue.len(), queue.is_empty()), (there.len(), there.is_empty()));
        }
        let whole: Vec<Duration> = there.values().map(|&(_, due)| MS * due).collect();
        clock.advance(whole.into_iter().max().unwrap_or_default()).unwrap();
        let mut left = there.len();
        while left > 0 {
            // It yields from time to time.
            let polled = task.poll_fn(|context| queue.poll_expired(context));
            left -= usize::from(polled.is_ready());
        }
        assert!(queue.is_empty());
    });
}
