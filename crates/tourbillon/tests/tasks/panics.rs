//! Wakers that panic when they are woken, cloned or dropped, and keys and values whose drop panics: nothing else is
//! affected.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};

use tourbillon::tasks::{self, DelayQueue, Home};
use tourbillon::{Timer, VirtualClock};

use crate::by_hand::{
    Task, acting, each_panics_when_dropped, panics_when_cloned, panics_when_dropped, poll, timer,
};
use crate::common::{Log, PanicsWhenDropped, SECOND, accounted, case, panic_quietly};

/// Other tasks that are due at the same time are woken, and the engine keeps working.
#[track_caller]
fn survives(waker: Waker, panics: u64) {
    let (timer, clock) = timer();
    let task = Task::new();
    let mut sleeps: Vec<_> = (0..3).map(|_| timer.sleep(SECOND)).collect();
    assert!(task.poll(&mut sleeps[0]).is_pending());
    assert!(poll(&mut sleeps[1], &waker).is_pending());
    assert!(task.poll(&mut sleeps[2]).is_pending());
    std::mem::forget(waker);
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 2);
    assert!(sleeps.iter_mut().all(|sleep| task.poll(sleep) == Poll::Ready(Ok(()))));
    goes_on(&timer, &clock, panics);
}

#[track_caller]
fn goes_on(timer: &Timer, clock: &VirtualClock, panics: u64) {
    assert_eq!(timer.counts().panicked, panics);
    let (task, mut sleep) = (Task::new(), timer.sleep(SECOND));
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, Poll::Ready(Ok(()))));
    accounted(timer);
}

#[test]
fn a_waker_that_panics_when_it_is_woken() {
    survives(acting(|| panic_quietly()), 1);
}

#[test]
fn a_waker_that_panics_when_it_is_dropped() {
    // When the sleep is cancelled.
    let (timer, clock) = timer();
    let waker = panics_when_dropped();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(waker))).is_ok(), "not the last");
    drop(sleep);
    goes_on(&timer, &clock, 1);
    // When another task replaces it.
    let waker = panics_when_dropped();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    drop(waker);
    let task = Task::new();
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, Poll::Ready(Ok(()))));
    goes_on(&timer, &clock, 2);
    // When it was woken.
    let waker = panics_when_dropped();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    drop(waker);
    clock.advance(SECOND).unwrap();
    goes_on(&timer, &clock, 3);
    // When the engine stops.
    let waker = panics_when_dropped();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    drop(waker);
    assert!(timer.stop().is_empty());
    assert_eq!(timer.counts().panicked, 4);
}

#[test]
fn a_waker_that_panics_when_it_is_cloned() {
    let (timer, clock) = timer();
    let waker = panics_when_cloned();
    // The panic reaches the caller of `poll`, and the sleep is unchanged.
    let mut sleep = timer.sleep(SECOND);
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut sleep, &waker))).is_err());
    assert_eq!(timer.counts().armed, 0);
    let task = Task::new();
    assert!(task.poll(&mut sleep).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut sleep, &waker))).is_err());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, Poll::Ready(Ok(()))));
    goes_on(&timer, &clock, 0);
}

#[test]
fn a_queue_survives_them_too() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    queue.insert(1, (), SECOND).unwrap();
    let waker = acting(|| panic_quietly());
    let mut context = std::task::Context::from_waker(&waker);
    assert!(queue.poll_expired(&mut context).is_pending());
    assert_eq!(queue.remove(&1), Some(()), "it wakes who waits, and that panics");
    queue.insert(2, (), SECOND).unwrap();
    let dropped = panics_when_dropped();
    let mut context = std::task::Context::from_waker(&dropped);
    assert!(queue.poll_expired(&mut context).is_pending());
    drop(dropped);
    let task = Task::new();
    assert!(task.poll_fn(|context| queue.poll_expired(context)).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 1);
    assert!(task.poll_fn(|context| queue.poll_expired(context)).is_ready());
    goes_on(&timer, &clock, 2);
}

#[test]
fn a_queue_is_dropped_with_a_waker_whose_drop_panics() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    queue.insert(1, (), SECOND).unwrap();
    let waker = panics_when_dropped();
    assert!(queue.poll_expired(&mut std::task::Context::from_waker(&waker)).is_pending());
    drop(waker);
    drop(queue);
    goes_on(&timer, &clock, 1);
}

#[test]
fn a_key_whose_hash_panics_leaves_a_queue_that_is_whole() {
    thread_local!(static PANICS: std::cell::Cell<bool> = const { std::cell::Cell::new(true) });
    #[derive(Clone, PartialEq, Eq, Debug)]
    struct Odd;
    impl std::hash::Hash for Odd {
        fn hash<H: std::hash::Hasher>(&self, _state: &mut H) {
            if PANICS.get() {
                panic_quietly();
            }
        }
    }
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    assert!(catch_unwind(AssertUnwindSafe(|| queue.insert(Odd, (), SECOND))).is_err());
    PANICS.set(false);
    clock.advance(SECOND).unwrap();
    let polled = Task::new().poll_fn(|context| queue.poll_expired(context));
    assert!(queue.is_empty() && matches!(polled, Poll::Ready(None)), "{polled:?}");
}

/// A key that may panic when it is dropped. Its clones do. Only its number is compared.
struct Odd(u32, #[expect(dead_code, reason = "it is dropped")] Option<PanicsWhenDropped>);

impl Odd {
    fn new(number: u32) -> Self {
        Odd(number, Some(PanicsWhenDropped))
    }
}

impl Clone for Odd {
    fn clone(&self) -> Self {
        Odd::new(self.0)
    }
}

impl Hash for Odd {
    fn hash<S: Hasher>(&self, state: &mut S) {
        self.0.hash(state);
    }
}

impl PartialEq for Odd {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Odd {}

impl Borrow<u32> for Odd {
    fn borrow(&self) -> &u32 {
        &self.0
    }
}

/// Where user code in a queue of tasks panics, if the engine has no part in it.
const PLACES: [&str; 9] = [
    "a key is removed",
    "a key is replaced",
    "a key expires",
    "all is cleared",
    "all is dropped",
    "a waker is woken by a removal",
    "a waker is replaced",
    "a waker is left when the last item expires",
    "a waker is dropped with the queue",
];

type Fragile<H> = DelayQueue<Odd, Option<PanicsWhenDropped>, H>;

fn panics_in<H: Home>(place: &str, mut queue: Fragile<H>, clock: &VirtualClock) {
    let each_panics = each_panics_when_dropped();
    let waits = |queue: &mut Fragile<H>, waker: &Waker| {
        assert!(queue.poll_expired(&mut Context::from_waker(waker)).is_pending(), "{place}");
    };
    let value = || place.starts_with("all").then(|| PanicsWhenDropped);
    assert!(queue.insert(Odd::new(1), value(), SECOND).is_ok_and(|old| old.is_none()));
    match place {
        "a key is removed" => assert!(queue.remove(&1).is_some()),
        "a key is replaced" => {
            assert!(queue.insert(Odd(1, None), None, SECOND).is_ok_and(|old| old.is_some()));
        }
        "a waker is woken by a removal" => {
            waits(&mut queue, &acting(|| panic_quietly()));
            assert!(queue.remove(&1).is_some());
        }
        "a waker is replaced" => {
            waits(&mut queue, &each_panics);
            waits(&mut queue, Waker::noop());
        }
        "a waker is left when the last item expires" => waits(&mut queue, &each_panics),
        "a waker is dropped with the queue" => waits(&mut queue, &each_panics),
        "all is cleared" => queue.clear(),
        _ => {}
    }
    if place.ends_with("expires") {
        clock.advance(SECOND).unwrap();
        let expired = Task::new().poll_fn(|context| queue.poll_expired(context));
        assert!(matches!(&expired, Poll::Ready(Some(_))), "{place}");
        // Its key is the caller's.
        std::mem::forget(expired);
        assert!(queue.is_empty());
    }
    drop(queue);
}

/// A queue stays on the engine on which it was created, also with its panics: those of a queue that a free function
/// created in a scope are counted and reported by the timer of that scope, as those of the timer's own queues are.
#[test]
fn a_queue_of_a_scope_panics_on_the_timer_of_that_scope() {
    let homes: [&str; 4] = ["the method", "with_timer", "scope", "inside another scope"];
    for place in PLACES {
        let panics = homes.map(|home| {
            case(format!("{place}, {home}"), move || {
                let (clock, reports) = (VirtualClock::new(), Log::new());
                let told = reports.clone();
                let builder = Timer::builder().clock(&clock).on_panic(move |_| told.add(()));
                let (timer, (other, _)) = (builder.build().unwrap(), timer());
                match home {
                    "the method" => panics_in(place, timer.delay_queue(), &clock),
                    "scope" => {
                        let created = tasks::scope(&timer, async { DelayQueue::new() });
                        let queue = tasks::block_on(&clock, created).unwrap();
                        panics_in(place, queue, &clock);
                    }
                    _ => {
                        let queue = tasks::with_timer(&timer, DelayQueue::new);
                        if home == "with_timer" {
                            panics_in(place, queue, &clock);
                        } else {
                            tasks::with_timer(&other, || panics_in(place, queue, &clock));
                        }
                    }
                }
                assert_eq!(timer.counts().panicked, reports.len() as u64, "each is reported");
                assert_eq!(other.counts().panicked, 0);
                goes_on(&timer, &clock, reports.len() as u64);
                reports.len()
            })
        });
        let alike = panics.iter().all(|&count| count == panics[0]);
        assert!(alike && panics[0] > 0, "{place}: {panics:?}");
    }
}
