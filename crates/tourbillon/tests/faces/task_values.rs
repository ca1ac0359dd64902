//! Values and keys that a queue of tasks holds: their drops may panic, and each is dropped once.

use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use tourbillon::{Timer, VirtualClock, tasks};

use crate::by_hand::{Task, timer};
use crate::common::case;
use crate::common::{SECOND, accounted};
use crate::fragile::{Broken, Cloned, drop_in_hand};
use crate::values::{Item, Items, Scene, play};

type TaskQueue<K, V> = tasks::DelayQueue<K, V, tasks::Given>;

/// Four values, two of them fragile, under the keys 0 to 3.
fn task_queue(items: &Items) -> (TaskQueue<usize, Item>, Timer, VirtualClock) {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    for (key, item) in items.mixed().into_iter().enumerate() {
        assert!(queue.insert(key, item, SECOND).unwrap().is_none());
    }
    (queue, timer, clock)
}

/// Asserts that the queue is empty, that nothing is armed for it, and that a new item expires.
fn task_queue_goes_on<K, V>(
    mut queue: TaskQueue<K, V>,
    (timer, clock): (&Timer, &VirtualClock),
    key: K,
    value: V,
) where
    K: Hash + Eq + Clone,
{
    let task = Task::new();
    assert!(queue.is_empty() && timer.is_empty() && queue.peek().is_none(), "it is empty");
    assert!(matches!(task.poll_fn(|context| queue.poll_expired(context)), Poll::Ready(None)));
    assert!(queue.insert(key, value, SECOND).unwrap().is_none());
    assert!(task.poll_fn(|context| queue.poll_expired(context)).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), queue.len()), (1, 1));
    let Poll::Ready(Some(Ok(item))) = task.poll_fn(|context| queue.poll_expired(context)) else {
        panic!("it is due");
    };
    drop_in_hand(item.value);
    drop_in_hand(item.key);
    assert!(queue.is_empty() && timer.is_empty());
    accounted(timer);
}

fn take_all<K, V>(queue: &mut TaskQueue<K, V>) -> usize
where
    K: Hash + Eq + Clone,
{
    let (task, mut taken) = (Task::new(), 0);
    while let Poll::Ready(Some(Ok(item))) = task.poll_fn(|context| queue.poll_expired(context)) {
        drop_in_hand(item.value);
        drop_in_hand(item.key);
        taken += 1;
    }
    taken
}

const TASK_QUEUE: &[Scene] = &[
    ("tasks::DelayQueue, expired", |items| {
        let (mut queue, timer, clock) = task_queue(items);
        clock.advance(SECOND).unwrap();
        assert_eq!(take_all(&mut queue), 4);
        task_queue_goes_on(queue, (&timer, &clock), 7, items.calm());
    }),
    ("tasks::DelayQueue, removed", |items| {
        let (mut queue, timer, clock) = task_queue(items);
        assert_eq!(
            [0, 1, 2, 3].map(|key| drop_in_hand(queue.remove(&key))),
            [false, true, true, false]
        );
        task_queue_goes_on(queue, (&timer, &clock), 7, items.calm());
    }),
    ("tasks::DelayQueue, replaced", |items| {
        let (mut queue, timer, clock) = task_queue(items);
        for key in 0..4 {
            let old = queue.insert(key, items.calm(), 2 * SECOND).unwrap();
            assert_eq!(drop_in_hand(old), key == 1 || key == 2);
        }
        clock.advance(2 * SECOND).unwrap();
        assert_eq!(take_all(&mut queue), 4);
        task_queue_goes_on(queue, (&timer, &clock), 7, items.calm());
    }),
    ("tasks::DelayQueue, moved", |items| {
        let (mut queue, timer, clock) = task_queue(items);
        assert!(queue.reset(&1, 2 * SECOND));
        clock.advance(SECOND).unwrap();
        assert_eq!(take_all(&mut queue), 3);
        clock.advance(SECOND).unwrap();
        assert_eq!(take_all(&mut queue), 1);
        task_queue_goes_on(queue, (&timer, &clock), 7, items.calm());
    }),
    ("tasks::DelayQueue, cleared", |items| {
        let (mut queue, timer, clock) = task_queue(items);
        let task = Task::new();
        assert!(task.poll_fn(|context| queue.poll_expired(context)).is_pending());
        queue.clear();
        items.are_gone();
        assert_eq!((task.wakes(), timer.counts().panicked), (1, 2));
        task_queue_goes_on(queue, (&timer, &clock), 7, items.calm());
    }),
    ("tasks::DelayQueue, dropped", |items| {
        let (mut queue, timer, _clock) = task_queue(items);
        assert!(Task::new().poll_fn(|context| queue.poll_expired(context)).is_pending());
        drop(queue);
        assert_eq!((timer.len(), timer.counts().panicked), (0, 2));
    }),
    ("tasks::DelayQueue, after a stop", |items| {
        let (mut queue, timer, _clock) = task_queue(items);
        timer.stop();
        drop(timer);
        assert!(Task::new().poll_fn(|context| queue.poll_expired(context)).is_ready());
        assert!(drop_in_hand(queue.remove(&1)));
    }),
];

/// Each clone of a key is fragile.
fn key_queue(broken: &Broken) -> (TaskQueue<Cloned, ()>, Timer, VirtualClock) {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    for name in ["a", "b", "c"] {
        assert!(queue.insert(Cloned::new(name, broken), (), SECOND).unwrap().is_none());
    }
    (queue, timer, clock)
}

type KeyScene = (&'static str, fn(&Broken, &mut TaskQueue<Cloned, ()>, &VirtualClock));

const KEYS: [KeyScene; 7] = [
    ("expired", |_, queue, clock| {
        clock.advance(SECOND).unwrap();
        assert_eq!(take_all(queue), 3);
    }),
    ("removed", |_, queue, _| {
        for name in ["b", "c", "a"] {
            assert_eq!(queue.remove(name), Some(()));
        }
    }),
    ("replaced", |broken, queue, clock| {
        assert_eq!(queue.insert(Cloned::calm("b", broken), (), 2 * SECOND).unwrap(), Some(()));
        clock.advance(SECOND).unwrap();
        assert_eq!((take_all(queue), queue.len()), (2, 1));
        clock.advance(SECOND).unwrap();
        assert_eq!(take_all(queue), 1);
    }),
    ("given twice", |broken, queue, clock| {
        // The map drops the second key before anything has changed, and the panic reaches the caller of `insert`.
        let insert = || queue.insert(Cloned::new("b", broken), (), 2 * SECOND).is_ok();
        assert!(catch_unwind(AssertUnwindSafe(insert)).map_err(std::mem::forget).is_err());
        clock.advance(SECOND).unwrap();
        assert_eq!(take_all(queue), 3);
    }),
    ("moved", |_, queue, clock| {
        assert!(queue.reset("b", 2 * SECOND));
        clock.advance(2 * SECOND).unwrap();
        assert_eq!(take_all(queue), 3);
    }),
    ("cleared", |_, queue, _| queue.clear()),
    ("nothing", |_, queue, _| {
        assert!(Task::new().poll_fn(|context| queue.poll_expired(context)).is_pending());
    }),
];

#[test]
fn what_a_queue_of_tasks_holds_may_panic() {
    play(TASK_QUEUE);
}

#[test]
fn the_keys_of_a_queue_of_tasks_may_panic() {
    for (name, scene) in KEYS {
        case(format!("tasks::DelayQueue, its keys, {name}"), move || {
            let broken = Broken::default();
            let (mut queue, timer, clock) = key_queue(&broken);
            scene(&broken, &mut queue, &clock);
            if name == "nothing" {
                drop(queue);
            } else {
                task_queue_goes_on(queue, (&timer, &clock), Cloned::new("d", &broken), ());
            }
            assert_eq!(broken.count(), broken.made(), "each is dropped once");
            assert!(timer.is_empty() && timer.counts().panicked > 0);
        });
    }
}
