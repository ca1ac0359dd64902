//! Values that are held without a closure: by an `Engine`, and by a queue for threads.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use tourbillon::{Batch, DelayQueue, Engine, Key, TakeError, Timer, VirtualClock};

use crate::common::case;
use crate::common::{Dropped, Drops, HOUR, SECOND, panic_quietly};
use crate::fragile::{Broken, Fragile, drop_in_hand};

/// A value, which may be fragile.
pub(crate) struct Item {
    #[expect(dead_code, reason = "it is dropped")]
    held: Option<Fragile>,
    _counted: Dropped,
}

/// Creates values, and records their drops.
pub(crate) struct Items {
    pub(crate) broken: Broken,
    drops: Drops,
    made: AtomicU64,
    fragile: AtomicU64,
}

impl Items {
    fn new() -> Self {
        let (broken, drops) = (Broken::default(), Drops::new());
        Items { broken, drops, made: AtomicU64::new(0), fragile: AtomicU64::new(0) }
    }

    pub(crate) fn calm(&self) -> Item {
        self.made.fetch_add(1, SeqCst);
        Item { held: None, _counted: self.drops.one() }
    }

    fn fragile(&self) -> Item {
        self.fragile.fetch_add(1, SeqCst);
        Item { held: Some(self.broken.one()), ..self.calm() }
    }

    /// A calm one, two fragile ones and a calm one.
    pub(crate) fn mixed(&self) -> [Item; 4] {
        [self.calm(), self.fragile(), self.fragile(), self.calm()]
    }

    /// Asserts that each was dropped once.
    pub(crate) fn are_gone(&self) {
        assert_eq!(self.drops.count(), self.made.load(SeqCst), "each is dropped once");
        assert_eq!(self.broken.count(), self.fragile.load(SeqCst));
    }
}

pub(crate) type Scene = (&'static str, fn(&Items));

pub(crate) fn play(scenes: &'static [Scene]) {
    for &(name, scene) in scenes {
        case(name, move || {
            let items = Items::new();
            scene(&items);
            items.are_gone();
        });
    }
}

/// An engine with a limit of four.
fn engine(handler: fn(Batch<'_, Item>)) -> (Engine<Item>, VirtualClock) {
    let clock = VirtualClock::new();
    let builder = Timer::builder().shards(1).clock(&clock).limit(4);
    (builder.deliver(handler).unwrap(), clock)
}

/// Asserts that four values are delivered with this many panics, and then four more.
fn delivered(items: &Items, panics: u64, handler: fn(Batch<'_, Item>)) {
    let (engine, clock) = engine(handler);
    for round in 1..=2 {
        fill(&engine, items);
        clock.advance(SECOND).unwrap();
        items.are_gone();
        let counts = engine.counts();
        assert_eq!((counts.fired, counts.panicked), (4 * round, panics * round));
        engine_is_whole(&engine);
    }
    assert!(engine.stop_within(5 * SECOND).finished, "a stop does not wait");
}

fn fill(engine: &Engine<Item>, items: &Items) -> [Key; 4] {
    items.mixed().map(|item| engine.schedule(SECOND, item).unwrap())
}

fn engine_is_whole(engine: &Engine<Item>) {
    let counts = engine.counts();
    let sum = counts.fired + counts.cancelled + counts.handed_back + counts.pending;
    assert_eq!((counts.armed, engine.check()), (sum, Ok(())), "{counts:?}");
}

const ENGINE: &[Scene] = &[
    ("Engine, dropped by the handler one by one", |items| {
        delivered(items, 2, |batch| {
            for fired in batch {
                // The second one ends the handler by its panic; the engine drops the rest.
                drop(fired.value);
            }
        });
    }),
    ("Engine, left in the batch", |items| delivered(items, 2, |_| ())),
    ("Engine, left by a handler that panics", |items| {
        delivered(items, 3, |batch| {
            let _four = batch.len();
            panic_quietly();
        });
    }),
    ("Engine, the payload of a panic", |items| {
        delivered(items, 1 + 1, |mut batch| {
            let second = batch.nth(1).unwrap();
            std::panic::resume_unwind(Box::new(second.value));
        });
    }),
    ("Engine, cancelled", |items| {
        let (engine, clock) = engine(|_| ());
        let keys = fill(&engine, items);
        assert!(drop_in_hand(engine.cancel(keys[1])) && drop_in_hand(engine.cancel(keys[2])));
        assert_eq!(engine.counts().cancelled, 2);
        assert!(engine.schedule(SECOND, items.fragile()).is_ok(), "there is room again");
        clock.advance(SECOND).unwrap();
        assert_eq!((engine.counts().fired, engine.counts().panicked), (3, 1));
        engine_is_whole(&engine);
    }),
    ("Engine, moved", |items| {
        let (engine, clock) = engine(|_| ());
        let keys = fill(&engine, items);
        engine.reschedule(keys[1], 2 * SECOND).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!((items.broken.count(), engine.counts().fired), (1, 3));
        clock.advance(SECOND).unwrap();
        assert_eq!((items.broken.count(), engine.counts().panicked), (2, 2));
        engine_is_whole(&engine);
    }),
    ("Engine, handed back", |items| {
        let (engine, _clock) = engine(|_| ());
        fill(&engine, items);
        let unfired = engine.stop();
        assert_eq!((unfired.len(), items.drops.count()), (4, 0), "they are whole");
        assert_eq!(unfired.into_iter().map(drop_in_hand).filter(|&broken| broken).count(), 2);
        engine_is_whole(&engine);
    }),
    ("Engine, refused", |items| {
        let (engine, _clock) = engine(|_| ());
        (0..4).for_each(|_| assert!(engine.schedule(SECOND, items.calm()).is_ok()));
        let refused = engine.schedule(SECOND, items.fragile()).unwrap_err();
        assert!(items.broken.count() == 0 && drop_in_hand(refused), "full");
        assert_eq!(engine.stop().len(), 4);
        let refused = engine.schedule(SECOND, items.fragile()).unwrap_err();
        assert!(items.broken.count() == 1 && drop_in_hand(refused), "stopped");
        engine_is_whole(&engine);
    }),
    ("Engine, dropped", |items| {
        let (engine, _clock) = engine(|_| ());
        fill(&engine, items);
        drop(engine);
    }),
    ("Engine, dropped with its driver", |items| {
        let clock = VirtualClock::new();
        let (engine, mut driver) = Timer::builder().clock(&clock).deliver_driven(|_| ()).unwrap();
        fill(&engine, items);
        assert_eq!(driver.turn_within(SECOND).ran, 4);
        fill(&engine, items);
        drop(driver);
        items.are_gone();
        assert_eq!((engine.counts().handed_back, engine.counts().panicked), (4, 4));
        engine_is_whole(&engine);
    }),
];

/// A queue with a limit of four.
fn queue(items: &Items) -> (DelayQueue<Item>, VirtualClock, [Key; 4]) {
    let clock = VirtualClock::new();
    let queue = Timer::builder().clock(&clock).limit(4).queue().unwrap();
    let keys = items.mixed().map(|item| queue.put(SECOND, item).unwrap());
    (queue, clock, keys)
}

/// Asserts that what is in it can be taken, and that it still works.
fn queue_goes_on(items: &Items, queue: &DelayQueue<Item>, clock: &VirtualClock) {
    clock.advance(HOUR).unwrap();
    while let Ok(item) = queue.try_take() {
        drop_in_hand(item);
    }
    items.are_gone();
    for _ in 0..4 {
        queue.put(SECOND, items.calm()).unwrap();
    }
    assert!(queue.put(SECOND, items.calm()).is_err(), "there is room for four");
    clock.advance(SECOND).unwrap();
    assert_eq!((0..5).filter(|_| queue.try_take().is_ok()).count(), 4);
    assert_eq!(queue.check(), Ok(()));
    assert!(queue.close().is_empty());
}

const QUEUE: &[Scene] = &[
    ("DelayQueue, taken", |items| {
        let (queue, clock, _) = queue(items);
        queue_goes_on(items, &queue, &clock);
    }),
    ("DelayQueue, taken by threads that wait", |items| {
        let (queue, clock, _) = queue(items);
        let take = |_| {
            let queue = queue.clone();
            std::thread::spawn(move || queue.take().map(drop_in_hand))
        };
        let threads = [0, 1, 2, 3].map(take);
        clock.advance(SECOND).unwrap();
        let broken = threads.map(|thread| thread.join().unwrap());
        assert_eq!(broken.iter().filter(|broken| **broken == Ok(true)).count(), 2);
        queue_goes_on(items, &queue, &clock);
    }),
    ("DelayQueue, removed", |items| {
        let (queue, clock, keys) = queue(items);
        assert!(drop_in_hand(queue.remove(keys[1])));
        assert_eq!((queue.len(), queue.counts().cancelled), (3, 1));
        queue_goes_on(items, &queue, &clock);
    }),
    ("DelayQueue, moved", |items| {
        let (queue, clock, keys) = queue(items);
        queue.reschedule(keys[1], 2 * SECOND).unwrap();
        queue_goes_on(items, &queue, &clock);
    }),
    ("DelayQueue, handed back", |items| {
        let (queue, _clock, _) = queue(items);
        let other = queue.clone();
        let waits = std::thread::spawn(move || other.take().map(drop));
        let left = queue.close();
        assert_eq!((left.len(), items.drops.count()), (4, 0), "they are whole");
        left.into_iter().for_each(|fired| _ = drop_in_hand(fired));
        assert_eq!(waits.join().unwrap(), Err(TakeError::Closed));
        assert_eq!((queue.check(), queue.counts().handed_back), (Ok(()), 4));
    }),
    ("DelayQueue, refused", |items| {
        let (queue, _clock, _) = queue(items);
        let refused = queue.put(SECOND, items.fragile()).unwrap_err();
        assert!(items.broken.count() == 0 && drop_in_hand(refused), "full");
        queue.close().into_iter().for_each(|fired| _ = drop_in_hand(fired));
        assert!(drop_in_hand(queue.put(SECOND, items.fragile()).unwrap_err()), "closed");
        assert_eq!(queue.check(), Ok(()));
    }),
    ("DelayQueue, cleared", |items| {
        let (queue, clock, _) = queue(items);
        queue.clear();
        items.are_gone();
        queue_goes_on(items, &queue, &clock);
    }),
    ("DelayQueue, extended by more than it has room for", |items| {
        let (queue, clock, _) = queue(items);
        queue.extend(items.mixed().map(|item| (SECOND, item)));
        assert_eq!((queue.len(), items.broken.count()), (4, 2), "the others are dropped");
        queue_goes_on(items, &queue, &clock);
    }),
    ("DelayQueue, dropped", |items| drop(queue(items).0)),
];

#[test]
fn what_an_engine_holds_may_panic() {
    play(ENGINE);
}

#[test]
fn what_a_queue_holds_may_panic() {
    play(QUEUE);
}
