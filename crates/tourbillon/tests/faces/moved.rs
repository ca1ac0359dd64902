//! A queue whose items change while a task waits for it: the task that polled last is woken when one is due.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_lite::Stream;
use tourbillon::tasks::{DelayQueue, Expired, Given, SleepError};
use tourbillon::{Timer, VirtualClock};

use crate::by_hand::{Task, timer};
use crate::common::case;
use crate::common::{HOUR, MS, SECOND};

type Queue = DelayQueue<&'static str, u32, Given>;
type Item = Option<Result<Expired<&'static str, u32>, SleepError>>;
type PollOf = fn(&mut Queue, &mut Context<'_>) -> Poll<Item>;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How a task waits for a queue.
const POLLS: [(&str, PollOf); 3] = [
    ("poll_expired", |queue, context| queue.poll_expired(context)),
    ("poll_next", |queue, context| Pin::new(queue).poll_next(context)),
    ("next", |queue, context| pin!(queue.next()).poll(context)),
];

struct Change {
    name: &'static str,
    change: fn(&mut Queue, &VirtualClock),
    /// The item that the task receives, and how long after the change. `None` is the end of the stream.
    then: (Option<&'static str>, Duration),
}

/// "hour" and "day" are in the queue.
const CHANGES: &[Change] = &[
    change("insert an earlier one", (Some("new"), SECOND), |queue, _| put(queue, "new", SECOND)),
    change("insert one that is due", (Some("new"), Duration::ZERO), |queue, _| {
        put(queue, "new", Duration::ZERO);
    }),
    change("insert one less than a tick ahead", (Some("new"), MS), |queue, _| {
        put(queue, "new", MS / 2);
    }),
    change("insert_at an earlier moment", (Some("new"), SECOND), |queue, clock| {
        assert!(queue.insert_at("new", 0, clock.now() + SECOND).unwrap().is_none());
    }),
    change("insert_at a moment that has passed", (Some("new"), Duration::ZERO), |queue, clock| {
        assert!(queue.insert_at("new", 0, clock.now() - SECOND).unwrap().is_none());
    }),
    change("insert ever earlier ones", (Some("third"), SECOND), |queue, _| {
        put(queue, "first", 3 * SECOND);
        put(queue, "second", 2 * SECOND);
        put(queue, "third", SECOND);
    }),
    change("insert an earlier one, and later ones", (Some("first"), SECOND), |queue, _| {
        put(queue, "first", SECOND);
        put(queue, "second", 2 * SECOND);
        put(queue, "third", 2 * DAY);
    }),
    change("replace the first by an earlier one", (Some("hour"), SECOND), |queue, _| {
        assert!(queue.insert("hour", 0, SECOND).unwrap().is_some());
    }),
    change("replace another by an earlier one", (Some("day"), SECOND), |queue, _| {
        assert!(queue.insert("day", 0, SECOND).unwrap().is_some());
    }),
    change("replace the first by a later one", (Some("day"), DAY), |queue, _| {
        assert!(queue.insert("hour", 0, 2 * DAY).unwrap().is_some());
    }),
    change("reset the first to earlier", (Some("hour"), SECOND), |queue, _| {
        assert!(queue.reset("hour", SECOND));
    }),
    change("reset another to earlier", (Some("day"), SECOND), |queue, _| {
        assert!(queue.reset("day", SECOND));
    }),
    change("reset another to now", (Some("day"), Duration::ZERO), |queue, _| {
        assert!(queue.reset("day", Duration::ZERO));
    }),
    change("reset_at another to earlier", (Some("day"), SECOND), |queue, clock| {
        assert!(queue.reset_at("day", clock.now() + SECOND));
    }),
    change("reset the first to later", (Some("day"), DAY), |queue, _| {
        assert!(queue.reset("hour", 2 * DAY));
    }),
    change("remove the first", (Some("day"), DAY), |queue, _| {
        assert!(queue.remove("hour").is_some());
    }),
    change("remove all", (None, Duration::ZERO), |queue, _| {
        assert!(queue.remove("hour").is_some() && queue.remove("day").is_some());
    }),
    change("clear", (None, Duration::ZERO), |queue, _| queue.clear()),
    change("clear, and insert one", (Some("new"), SECOND), |queue, _| {
        queue.clear();
        put(queue, "new", SECOND);
    }),
];

const fn change(
    name: &'static str,
    then: (Option<&'static str>, Duration),
    change: fn(&mut Queue, &VirtualClock),
) -> Change {
    Change { name, change, then }
}

fn put(queue: &mut Queue, key: &'static str, after: Duration) {
    assert!(queue.insert(key, 0, after).unwrap().is_none(), "{key} is new");
}

fn waiting(timer: &Timer) -> Queue {
    let mut queue = timer.delay_queue();
    put(&mut queue, "hour", HOUR);
    put(&mut queue, "day", DAY);
    queue
}

#[test]
fn the_task_that_polled_last_is_woken_for_what_changed_meanwhile() {
    for (way, poll) in POLLS {
        for change in CHANGES {
            for pattern in ["A", "AB", "ABA"] {
                case(format!("{way} by {pattern}, {}", change.name), move || {
                    changed(poll, change, pattern);
                });
            }
        }
    }
}

fn changed(poll: PollOf, change: &Change, pattern: &str) {
    let (timer, clock) = timer();
    clock.advance(HOUR).unwrap();
    let (mut queue, mut tasks) = (waiting(&timer), vec![Task::new(), Task::new()]);
    let mut numbers = pattern.bytes().map(|letter| usize::from(letter - b'A'));
    for task in numbers.clone() {
        assert!(tasks[task].poll_fn(|context| poll(&mut queue, context)).is_pending());
    }
    let last = tasks.swap_remove(numbers.next_back().unwrap());
    let (begin, (key, after)) = (clock.elapsed(), change.then);
    (change.change)(&mut queue, &clock);
    // From here on only a woken task polls. One nanosecond before the deadline there is no item.
    let before = after.saturating_sub(Duration::from_nanos(1));
    for to in [Duration::ZERO, before, after] {
        clock.advance(begin + to - clock.elapsed()).unwrap();
        if last.wakes() == 0 {
            continue;
        }
        if let Poll::Ready(item) = last.poll_fn(|context| poll(&mut queue, context)) {
            assert_eq!(item.map(|item| item.unwrap().key), key);
            assert_eq!(clock.elapsed() - begin, after, "neither early nor late");
            assert_eq!(tasks[0].wakes(), 0, "no other is woken");
            assert_eq!(timer.check(), Ok(()));
            return;
        }
    }
    panic!("the last is not woken");
}
