//! The order in which a queue returns due values: the earliest deadline first, to the nanosecond, and equal deadlines
//! in the order in which they were put.

use std::collections::BTreeMap;
use std::time::Duration;

use tourbillon::{Builder, DelayQueue, Timer, VirtualClock};

use crate::common::{HOUR, HandClock, MS, SECOND, case};

const MICRO: Duration = Duration::from_micros(1);

fn virtual_queue<T: Send>() -> (DelayQueue<T>, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().clock(&clock).queue().unwrap(), clock)
}

fn due<T: Send>(queue: &DelayQueue<T>) -> Vec<T> {
    std::iter::from_fn(|| queue.try_take().ok()).collect()
}

#[test]
fn values_of_one_tick_come_by_their_deadlines() {
    let (queue, clock) = virtual_queue();
    for micros in [900, 300, 600, 300, 100] {
        queue.put(MICRO * micros, micros).unwrap();
    }
    clock.advance(MS).unwrap();
    assert_eq!(due(&queue), [100, 300, 300, 600, 900]);
}

#[test]
fn values_that_are_due_when_they_are_put_come_by_their_deadlines() {
    let (queue, clock) = virtual_queue();
    clock.advance(SECOND + MICRO * 300).unwrap();
    let now = queue.now();
    for (name, before) in [("b", SECOND / 2), ("d", MICRO), ("a", SECOND), ("c", MS), ("e", MICRO)]
    {
        queue.put_at(now - before, name).unwrap();
    }
    assert_eq!(due(&queue), ["a", "b", "c", "d", "e"]);
}

#[test]
fn equal_deadlines_come_in_the_order_in_which_they_were_put_or_moved() {
    let (queue, clock) = virtual_queue();
    let at = queue.now() + HOUR;
    let keys: Vec<_> = (0..6).map(|n| queue.put_at(at, n).unwrap()).collect();
    queue.reschedule(keys[2], SECOND).unwrap();
    queue.reschedule_at(keys[2], at).unwrap();
    queue.remove(keys[4]);
    // Put when the hand is near, so the value comes to the same tick from another level of the wheel.
    clock.advance(HOUR - MS * 3).unwrap();
    queue.put_at(at, 6).unwrap();
    clock.advance(MS * 3).unwrap();
    queue.put_at(at, 7).unwrap();
    assert_eq!(due(&queue), [0, 1, 3, 5, 2, 6, 7]);
}

/// A value that is due within the current tick is put after another value of that tick.
#[test]
fn a_value_that_is_put_late_does_not_pass_an_earlier_one() {
    let (queue, clock) = virtual_queue();
    let begin = queue.now();
    queue.put(MICRO * 1300, "before").unwrap();
    queue.put(MICRO * 1700, "not yet").unwrap();
    clock.advance(MICRO * 1500).unwrap();
    queue.put_at(begin + MICRO * 1400, "late").unwrap();
    assert_eq!(due(&queue), ["before", "late"]);
    clock.advance(MICRO * 500).unwrap();
    assert_eq!(due(&queue), ["not yet"]);
}

/// Random puts, moves and removes, also with a backlog, compared with a sorted map.
#[test]
fn any_order_of_verbs_gives_the_order_of_a_sorted_map() {
    type Wheel = (&'static str, fn() -> Builder);
    let wheels: [Wheel; 3] = [
        ("hierarchical", Timer::builder),
        ("hashed", || Timer::builder().hashed(16)),
        ("levels of two", || Timer::builder().hierarchical(&[2])),
    ];
    for (wheel, builder) in wheels {
        for seed in 0..60 {
            case(format!("{wheel}, seed {seed}"), move || walk(builder(), seed));
        }
    }
}

fn walk(builder: Builder, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let clock = HandClock::new();
    let queue = builder.clock(clock.clone()).queue().unwrap();
    let begin = queue.now();
    // The deadline and the serial number, in the order that the queue should follow.
    let mut sorted = BTreeMap::new();
    let mut serial = 0_u64;
    let near = if seed % 2 == 0 { 3_000 } else { 40 };
    for _ in 0..400 {
        let at = queue.now() + MICRO * random.u32(0..2 * near);
        let at = at.checked_sub(MICRO * random.u32(0..near)).map_or(begin, |at| at.max(begin));
        serial += 1;
        match random.u32(0..10) {
            0..5 => {
                let key = queue.put_at(at, serial).unwrap();
                sorted.insert((at, serial), (key, serial));
            }
            5 | 6 if !sorted.is_empty() => {
                let one = *sorted.keys().nth(random.usize(0..sorted.len())).unwrap();
                let (key, value) = sorted.remove(&one).unwrap();
                if random.bool() {
                    queue.reschedule_at(key, at).unwrap();
                    sorted.insert((at, serial), (key, value));
                } else {
                    assert_eq!(queue.remove(key), Some(value));
                }
            }
            7 => clock.forward(MICRO * random.u32(0..near)),
            _ => {
                // The result is the first value, and due. There may be none until the current tick has ended.
                let Ok(value) = queue.try_take() else {
                    let late =
                        sorted.first_key_value().is_none_or(|((at, _), _)| *at + MS > queue.now());
                    assert!(late, "more than a tick late");
                    continue;
                };
                let ((at, _), (_, first)) = sorted.pop_first().unwrap();
                assert!(at <= queue.now(), "never early");
                assert_eq!(value, first);
            }
        }
        assert_eq!(queue.check(), Ok(()));
    }
    clock.forward(SECOND);
    assert!(due(&queue).into_iter().eq(sorted.into_values().map(|(_, value)| value)));
}
