//! A timer that was moved reports its new deadline at once, through every query, and also when it is handed back.

use std::time::{Duration, Instant};

use tourbillon::tasks;
use tourbillon::{Builder, KeyedTimer, Timer, VirtualClock};

use crate::common::{HOUR, MS, SECOND, case};

/// A pending timer that can be moved.
struct Moved {
    /// Moves it to this long after now.
    to: Box<dyn FnMut(Duration)>,
    deadline: Box<dyn FnMut() -> Instant>,
    /// Ends it, and returns the deadlines of what is handed back.
    end: Box<dyn FnOnce() -> Vec<Instant>>,
}

/// Arms a timer an hour ahead.
type Row = (&'static str, fn(Builder) -> Moved);

const ROWS: &[Row] = &[
    ("Timer::reschedule", |builder| {
        let timer = builder.build().unwrap();
        let key = timer.arm(HOUR, |_| ()).unwrap();
        let (to, ends) = (timer.clone(), timer.clone());
        Moved {
            to: Box::new(move |after| to.reschedule(key, after).unwrap()),
            deadline: Box::new(move || timer.deadline(key).unwrap()),
            end: Box::new(move || handed_back(&ends)),
        }
    }),
    ("Timer::reschedule_at", |builder| {
        let timer = builder.build().unwrap();
        let key = timer.arm(HOUR, |_| ()).unwrap();
        let (to, ends) = (timer.clone(), timer.clone());
        Moved {
            to: Box::new(move |after| to.reschedule_at(key, to.now() + after).unwrap()),
            deadline: Box::new(move || timer.pending()[0].deadline),
            end: Box::new(move || handed_back(&ends)),
        }
    }),
    ("Timeout::reschedule", |builder| {
        let timer = builder.build().unwrap();
        let handle = timer.schedule(HOUR, |_| ()).unwrap();
        let to = handle.clone();
        Moved {
            to: Box::new(move |after| to.reschedule(after).unwrap()),
            deadline: Box::new(move || handle.deadline().unwrap()),
            end: Box::new(move || handed_back(&timer)),
        }
    }),
    ("Timeout::reschedule_at of one that repeats", |builder| {
        let timer = builder.build().unwrap();
        let handle = timer.schedule_repeating(HOUR, |_| ()).unwrap();
        let (to, now) = (handle.clone(), timer.clone());
        Moved {
            to: Box::new(move |after| to.reschedule_at(now.now() + after).unwrap()),
            deadline: Box::new(move || handle.deadline().unwrap()),
            end: Box::new(move || handed_back(&timer)),
        }
    }),
    ("KeyedTimer::reschedule", |builder| {
        let timer = builder.build().unwrap();
        let timers = KeyedTimer::new(&timer);
        timers.schedule(1, HOUR, |_| ()).unwrap();
        let to = timers.clone();
        Moved {
            to: Box::new(move |after| to.reschedule(&1, after).unwrap()),
            deadline: Box::new(move || timers.deadline(&1).unwrap()),
            end: Box::new(move || handed_back(&timer)),
        }
    }),
    ("Engine::reschedule", |builder| {
        let engine = builder.deliver(|_| ()).unwrap();
        let key = engine.schedule(HOUR, 7).unwrap();
        let (to, ends) = (engine.clone(), engine.clone());
        Moved {
            to: Box::new(move |after| to.reschedule(key, after).unwrap()),
            deadline: Box::new(move || engine.deadline(key).unwrap()),
            end: Box::new(move || ends.stop().iter().map(|one| one.deadline()).collect()),
        }
    }),
    ("Engine::reschedule_at", |builder| {
        let engine = builder.deliver(|_| ()).unwrap();
        let key = engine.schedule(HOUR, 7).unwrap();
        let (to, ends) = (engine.clone(), engine.clone());
        Moved {
            to: Box::new(move |after| to.reschedule_at(key, to.now() + after).unwrap()),
            deadline: Box::new(move || engine.pending()[0].deadline),
            end: Box::new(move || ends.stop().iter().map(|one| one.deadline()).collect()),
        }
    }),
    ("DelayQueue::reschedule", |builder| {
        let queue = builder.queue().unwrap();
        let key = queue.put(HOUR, 7).unwrap();
        let (to, ends) = (queue.clone(), queue.clone());
        Moved {
            to: Box::new(move |after| to.reschedule(key, after).unwrap()),
            deadline: Box::new(move || queue.deadline(key).unwrap()),
            end: Box::new(move || ends.close().iter().map(|one| one.deadline()).collect()),
        }
    }),
    ("DelayQueue::reschedule_at", |builder| {
        let queue = builder.queue().unwrap();
        let key = queue.put(HOUR, 7).unwrap();
        let (to, ends) = (queue.clone(), queue.clone());
        Moved {
            to: Box::new(move |after| to.reschedule_at(key, to.now() + after).unwrap()),
            deadline: Box::new(move || queue.deadline(key).unwrap()),
            end: Box::new(move || ends.close().iter().map(|one| one.deadline()).collect()),
        }
    }),
    ("Sleep::reset", |builder| {
        let timer = builder.build().unwrap();
        let sleep = std::rc::Rc::new(std::cell::RefCell::new(timer.sleep(HOUR)));
        let to = sleep.clone();
        Moved {
            to: Box::new(move |after| to.borrow_mut().reset_after(after)),
            deadline: Box::new(move || sleep.borrow().deadline()),
            end: Box::new(move || handed_back(&timer)),
        }
    }),
    ("Sleep::reset_at", |builder| {
        let timer = builder.build().unwrap();
        let sleep = std::rc::Rc::new(std::cell::RefCell::new(timer.sleep(HOUR)));
        let (to, now) = (sleep.clone(), timer.clone());
        Moved {
            to: Box::new(move |after| to.borrow_mut().reset(now.now() + after)),
            deadline: Box::new(move || sleep.borrow().deadline()),
            end: Box::new(move || handed_back(&timer)),
        }
    }),
    ("DelayQueue::reset of tasks", |builder| {
        let timer = builder.build().unwrap();
        let mut queue: tasks::DelayQueue<_, _, _> = timer.delay_queue();
        queue.insert(1, 7, HOUR).unwrap();
        let queue = std::rc::Rc::new(std::cell::RefCell::new(queue));
        let to = queue.clone();
        Moved {
            to: Box::new(move |after| assert!(to.borrow_mut().reset(&1, after))),
            deadline: Box::new(move || queue.borrow().deadline(&1).unwrap()),
            end: Box::new(move || handed_back(&timer)),
        }
    }),
];

fn handed_back(timer: &Timer) -> Vec<Instant> {
    timer.stop().iter().map(tourbillon::Unfired::deadline).collect()
}

#[test]
fn what_was_moved_says_its_new_deadline() {
    for &(verb, arm) in ROWS {
        case(verb, move || {
            let clock = VirtualClock::new();
            let Moved { mut to, mut deadline, end } = arm(Timer::builder().clock(&clock));
            assert_eq!(deadline(), clock.now() + HOUR);
            // To later, to earlier, to the deadline that it has, and to between two ticks.
            for after in [2 * HOUR, SECOND, SECOND, HOUR, MS / 3 + SECOND] {
                to(after);
                assert_eq!(deadline(), clock.now() + after, "moved to {after:?}");
                clock.advance(SECOND / 2).unwrap();
                assert_eq!(deadline(), clock.now() + after - SECOND / 2, "and some time later");
            }
            let last = deadline();
            assert!(end().into_iter().all(|handed_back| handed_back == last), "handed back");
        });
    }
}
