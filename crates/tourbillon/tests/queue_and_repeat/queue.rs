//! The delay queue in one thread: its contents, and which values can be taken when.

use std::time::Duration;

use tourbillon::{
    BootClock, Builder, DelayQueue, PutError, RescheduleError, TakeError, Timer, VirtualClock,
};

use crate::common::jumping::JumpingClock;
use crate::common::{Drops, HOUR, HandClock, MS, PanicsWhenDropped, SECOND, YEAR, case};

fn virtual_queue<T: Send>() -> (DelayQueue<T>, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().clock(&clock).queue().unwrap(), clock)
}

fn accounted<T: Send>(queue: &DelayQueue<T>) {
    let counts = queue.counts();
    let sum = counts.fired + counts.cancelled + counts.handed_back + counts.pending;
    assert_eq!(counts.armed, sum, "{counts:?}");
    assert_eq!(queue.check(), Ok(()));
}

/// Takes all values that are due.
fn due<T: Send>(queue: &DelayQueue<T>) -> Vec<T> {
    std::iter::from_fn(|| queue.try_take().ok()).collect()
}

#[test]
fn what_is_due_can_be_taken_and_nothing_else() {
    let (queue, clock) = virtual_queue();
    for n in [30, 10, 20, 0, 40] {
        queue.put(MS * n, n).unwrap();
    }
    assert_eq!(due(&queue), [0]);
    clock.advance(MS * 10 - Duration::from_nanos(1)).unwrap();
    assert_eq!(queue.try_take(), Err(TakeError::NothingDue), "not by a nanosecond");
    clock.advance(Duration::from_nanos(1)).unwrap();
    assert_eq!(due(&queue), [10]);
    clock.advance(HOUR).unwrap();
    assert_eq!(due(&queue), [20, 30, 40], "the earliest first");
    assert!(queue.is_empty());
    accounted(&queue);
}

#[test]
fn a_deadline_between_two_ticks_is_taken_at_the_later() {
    let (queue, clock) = virtual_queue();
    queue.put(Duration::from_micros(1500), ()).unwrap();
    clock.advance(Duration::from_micros(1999)).unwrap();
    assert!(queue.try_take().is_err());
    clock.advance(Duration::from_micros(1)).unwrap();
    assert!(queue.try_take().is_ok());
}

#[test]
fn zero_and_what_is_past_can_be_taken_between_two_ticks() {
    let (queue, clock) = virtual_queue();
    let micros = Duration::from_micros;
    clock.advance(micros(1300)).unwrap();
    let key = queue.put(Duration::ZERO, "now").unwrap();
    assert_eq!(queue.deadline(key), Some(clock.now()));
    queue.put_at(clock.now() - micros(100), "past").unwrap();
    let moved = queue.put(HOUR, "moved").unwrap();
    queue.reschedule(moved, Duration::ZERO).unwrap();
    queue.put(Duration::from_nanos(1), "not yet").unwrap();
    assert_eq!(due(&queue), ["past", "now", "moved"], "the earliest first");
    clock.advance(micros(700)).unwrap();
    assert_eq!(due(&queue), ["not yet"]);
}

#[test]
fn moments_and_delays_at_the_edges() {
    let (queue, clock) = virtual_queue();
    clock.advance(HOUR).unwrap();
    let now = queue.now();
    queue.put_at(now - HOUR * 2, "past").unwrap();
    queue.put_at(now, "now").unwrap();
    let later = queue.put_at(now + SECOND, "later").unwrap();
    assert_eq!(queue.deadline(later), Some(now + SECOND));
    let never = queue.put(Duration::MAX, "never").unwrap();
    assert_eq!(due(&queue), ["past", "now"]);
    clock.advance(YEAR * 100).unwrap();
    assert_eq!(due(&queue), ["later"]);
    assert_eq!(queue.deadline(later), None);
    assert_eq!(queue.remove(never), Some("never"));
}

#[test]
fn remove_takes_out_what_is_there_once() {
    let (queue, clock) = virtual_queue();
    let key = queue.put(SECOND, 'a').unwrap();
    assert_eq!(queue.remove(key), Some('a'));
    assert_eq!(queue.remove(key), None);
    // A value that is due but not taken.
    let key = queue.put(SECOND, 'b').unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(queue.remove(key), Some('b'));
    assert!(queue.try_take().is_err());
    let key = queue.put(Duration::ZERO, 'c').unwrap();
    assert_eq!(queue.try_take(), Ok('c'));
    assert_eq!(queue.remove(key), None, "it was taken");
    let other = DelayQueue::new();
    let foreign = other.put(SECOND, 'd').unwrap();
    queue.put(SECOND, 'e').unwrap();
    assert_eq!(queue.remove(foreign), None, "the key of another queue");
    assert_eq!(queue.deadline(foreign), None);
    assert_eq!(queue.reschedule(foreign, MS), Err(RescheduleError::NotPending));
    accounted(&queue);
}

#[test]
fn reschedule_moves_to_both_sides() {
    let (queue, clock) = virtual_queue();
    let one = queue.put(SECOND * 5, 1).unwrap();
    let two = queue.put(SECOND * 5, 2).unwrap();
    queue.reschedule(one, SECOND).unwrap();
    queue.reschedule_at(two, queue.now() + SECOND * 9).unwrap();
    clock.advance(SECOND * 5).unwrap();
    assert_eq!(due(&queue), [1]);
    clock.advance(SECOND * 4).unwrap();
    // It is due, and nobody has taken it.
    queue.reschedule(two, SECOND).unwrap();
    assert!(queue.try_take().is_err());
    clock.advance(SECOND).unwrap();
    assert_eq!(due(&queue), [2]);
    assert_eq!(queue.reschedule(two, SECOND), Err(RescheduleError::NotPending));
    accounted(&queue);
}

/// From any deadline to any other, between two ticks: the value reports the new deadline at once, and so does `close`.
#[test]
fn a_value_that_was_moved_names_its_new_deadline() {
    let micros = Duration::from_micros;
    let lengths = [Duration::ZERO, micros(1), micros(1500), MS, SECOND, HOUR, YEAR];
    for from in lengths {
        for to in lengths {
            for verb in ["reschedule", "reschedule_at", "to the past"] {
                let (queue, clock) = virtual_queue();
                clock.advance(HOUR + micros(300)).unwrap();
                let key = queue.put(from, ()).unwrap();
                let now = queue.now();
                assert_eq!(queue.deadline(key), Some(now + from));
                let new = if verb == "to the past" { now - to.min(HOUR) } else { now + to };
                let moved = match verb {
                    "reschedule" => queue.reschedule(key, to),
                    _ => queue.reschedule_at(key, new),
                };
                assert_eq!((moved, queue.deadline(key)), (Ok(()), Some(new)), "{from:?}, {verb}");
                let left = queue.close();
                assert_eq!((left.len(), left[0].deadline()), (1, new), "{from:?}, {verb}");
            }
        }
    }
}

/// One look makes a limited number of values ready, or cascades them. The clock does not wait for takers.
#[test]
fn what_is_due_is_found_in_any_crowd() {
    type Wheel = (&'static str, fn() -> Builder);
    let wheels: [Wheel; 3] = [
        ("hierarchical", Timer::builder),
        ("hashed", || Timer::builder().hashed(64)),
        ("two slots", || Timer::builder().hierarchical(&[2, 2, 2])),
    ];
    for (wheel, builder) in wheels {
        for after in [Duration::ZERO, MS, MS * 100, SECOND * 10] {
            for count in [1, 255, 256, 257, 512, 1000] {
                case(format!("{wheel}, {count} after {after:?}"), move || {
                    let clock = HandClock::new();
                    let queue = builder().clock(clock.clone()).queue().unwrap();
                    (0..count).for_each(|n| _ = queue.put(after, n).unwrap());
                    if !after.is_zero() {
                        assert_eq!(queue.try_take(), Err(TakeError::NothingDue));
                    }
                    clock.forward(after);
                    let mut taken: Vec<_> = (0..count)
                        .map(|n| match n % 3 {
                            0 => queue.try_take().unwrap(),
                            1 => queue.take_within(Duration::ZERO).unwrap(),
                            _ => queue.take().unwrap(),
                        })
                        .collect();
                    taken.sort_unstable();
                    assert!(taken.into_iter().eq(0..count));
                    assert_eq!(queue.try_take(), Err(TakeError::NothingDue));
                    accounted(&queue);
                });
            }
        }
    }
}

#[test]
fn close_hands_back_what_was_not_taken() {
    let (queue, clock) = virtual_queue();
    queue.put(SECOND, "due").unwrap();
    let key = queue.put(HOUR, "not yet").unwrap();
    clock.advance(SECOND).unwrap();
    let mut left = queue.close();
    left.sort_by_key(|left| left.deadline());
    assert_eq!(left.iter().map(|left| left.value).collect::<Vec<_>>(), ["due", "not yet"]);
    assert_eq!(left[1].key, key);
    assert!(queue.is_closed() && queue.is_empty());
    assert_eq!(queue.take(), Err(TakeError::Closed));
    assert_eq!(queue.try_take(), Err(TakeError::Closed));
    assert_eq!(queue.take_within(HOUR), Err(TakeError::Closed));
    assert_eq!(queue.put(SECOND, "too late"), Err(PutError::Closed("too late")));
    assert!(queue.close().is_empty(), "a second close");
    assert_eq!(queue.counts().handed_back, 2);
    accounted(&queue);
}

#[test]
fn a_limit_is_kept_and_what_was_not_put_comes_back() {
    let queue = Timer::builder().limit(2).queue().unwrap();
    let key = queue.put(SECOND, 1).unwrap();
    queue.put(SECOND, 2).unwrap();
    assert_eq!(queue.put(SECOND, 3), Err(PutError::Full(3)));
    queue.remove(key);
    assert!(queue.put(SECOND, 3).is_ok());
}

#[test]
fn values_are_dropped_with_the_last_clone() {
    let drops = Drops::new();
    let queue = DelayQueue::new();
    queue.put(HOUR, drops.one()).unwrap();
    let other = queue.clone();
    drop(queue);
    assert_eq!((drops.count(), other.len()), (0, 1));
    drop(other);
    assert_eq!(drops.count(), 1);
}

#[test]
fn values_whose_drops_panic_are_dropped_all_the_same() {
    let (queue, drops) = (DelayQueue::new(), Drops::new());
    for _ in 0..3 {
        queue.put(SECOND, (drops.one(), PanicsWhenDropped)).unwrap();
    }
    drop(queue);
    assert_eq!(drops.count(), 3);
}

/// However many values have to cascade first, a due value is found.
#[test]
fn a_crowd_that_is_not_due_hides_nothing() {
    type Wheel = (&'static str, fn() -> tourbillon::Builder);
    const WHEELS: [Wheel; 3] = [
        ("by default", Timer::builder),
        ("levels of four", || Timer::builder().hierarchical(&[4])),
        ("hashed", || Timer::builder().hashed(64)),
    ];
    type Take = (&'static str, fn(&DelayQueue<u32>) -> Result<u32, TakeError>);
    const TAKES: [Take; 3] = [
        ("try_take", |queue| queue.try_take()),
        ("take_within", |queue| queue.take_within(Duration::ZERO)),
        ("take", |queue| queue.take()),
    ];
    for (wheel, builder) in WHEELS {
        for (verb, take) in TAKES {
            for place in [0, 500, 1000] {
                // With a virtual clock the advance would do the cascading.
                let clock = JumpingClock::new();
                let queue = builder().clock(clock.clone()).queue().unwrap();
                let crowd = |n: u32| _ = queue.put(HOUR + SECOND * 20 + MS * n, n).unwrap();
                (1..=place).for_each(crowd);
                queue.put(HOUR, 0).unwrap();
                (place + 1..=1000).for_each(crowd);
                clock.jump_silently(HOUR + SECOND);
                assert_eq!(take(&queue), Ok(0), "{verb}, {wheel}, after {place}");
                assert_eq!(queue.try_take(), Err(TakeError::NothingDue));
            }
        }
    }
}

#[test]
fn a_crowd_gives_its_memory_back() {
    let (queue, clock) = virtual_queue();
    for n in 0..100_000_u64 {
        queue.put(MS * (n % 1000) as u32, n).unwrap();
    }
    clock.advance(SECOND).unwrap();
    let mut taken = due(&queue);
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..100_000));
    queue.shrink();
    accounted(&queue);
}

#[test]
fn a_hashed_wheel_and_other_ticks_and_clocks() {
    let tick = Duration::from_micros(10);
    // Real time, and a user-defined clock that runs with it.
    for builder in [
        Timer::builder().hashed(64),
        Timer::builder().tick(tick),
        Timer::builder().hierarchical(&[2]),
        Timer::builder().clock(BootClock),
        Timer::builder().clock(HandClock::new()),
    ] {
        let queue = builder.queue().unwrap();
        queue.put(Duration::ZERO, 7).unwrap();
        assert_eq!(queue.take(), Ok(7));
    }
    assert!(Timer::builder().tick(Duration::ZERO).queue::<()>().is_err());
}

#[test]
fn it_says_what_to_do() {
    assert!(TakeError::Closed.to_string().contains("closed"));
    assert!(TakeError::NothingDue.to_string().contains("nothing is due"));
    assert!(PutError::Full(()).to_string().contains("raise the limit"));
    assert_eq!(format!("{:?}", PutError::Closed(())), "Closed(..)");
    assert!(format!("{:?}", DelayQueue::<()>::new()).starts_with("DelayQueue"));
}
