//! Threads that end: what their thread-locals do to a purgatory when they are dropped.

use std::cell::RefCell;
use std::thread;

use crate::common::{Log, SECOND, within};
use crate::{Flag, Op, is_empty, purgatory};

struct WhenDropped(Option<Box<dyn FnOnce()>>);

impl Drop for WhenDropped {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|action| action());
    }
}

thread_local! {
    static LOCAL: RefCell<Option<WhenDropped>> = const { RefCell::new(None) };
}

/// Queues an action on this thread, which creates the thread's queue: it is dropped before older thread-locals.
fn use_the_queue() {
    let (purgatory, _timer, _clock) = purgatory();
    let (log, flag) = (Log::new(), Flag::new());
    purgatory.try_complete_else_watch(Op::flagged(1, &flag, &log), [1], SECOND).unwrap();
    let own = purgatory.clone();
    let condition = move || {
        flag.set();
        own.check(&1) == 1
    };
    purgatory.try_complete_else_watch(Op::new(condition, |_| ()), [2], SECOND).unwrap();
    assert_eq!(log.len(), 1);
}

/// A condition completes others, whose actions cancel its key. Once the queue of the thread is dropped, they run inside
/// the condition, and do not wait.
#[test]
fn a_thread_that_ends_may_check_whether_its_queue_is_there_or_not() {
    for gone in [false, true] {
        let (back, ran) = within(move || {
            let (purgatory, timer, _clock) = purgatory();
            let (log, flag) = (Log::new(), Flag::new());
            let (own, met) = (purgatory.clone(), flag.clone());
            let condition = move || {
                if met.is_set() {
                    own.check(&2);
                }
                false
            };
            let op = Op { name: 9, ..Op::new(condition, |_| ()) };
            purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
            for _ in 0..3 {
                let (own, met, told) = (purgatory.clone(), flag.clone(), log.clone());
                let end = move |_| told.add(own.cancel_key(&1).len());
                let op = Op::new(move || met.is_set(), end);
                purgatory.try_complete_else_watch(op, [2], SECOND).unwrap();
            }
            let own = purgatory.clone();
            let ends = thread::spawn(move || {
                let last = WhenDropped(Some(Box::new(move || {
                    flag.set();
                    assert_eq!(own.check(&1), 0);
                })));
                LOCAL.set(Some(last));
                if gone {
                    use_the_queue();
                }
            });
            ends.join().unwrap();
            let back: Vec<usize> = purgatory.stop().iter().map(|op| op.name).collect();
            assert_eq!(timer.counts().panicked, 0);
            is_empty(&purgatory, &timer);
            (back, log.take())
        });
        // Inside a condition, a cancel does not affect the operation that is being tried.
        let expected = if gone { (vec![9], vec![0, 0, 0]) } else { (vec![], vec![1, 0, 0]) };
        assert_eq!((back, ran), expected, "gone: {gone}");
    }
}
