//! Every place that stores a waker: the task that polled last is woken, and a waker that panics affects no other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Waker};
use std::time::Duration;

use crate::awaited::{Awaited, DEFAULT_ENGINE, Env, FACES, Face};
use crate::by_hand::{Task, acting, panics_when_cloned, panics_when_dropped};
use crate::common::case;
use crate::common::{MS, SECOND, eventually, panic_quietly};

/// The order in which tasks poll.
const PATTERNS: [&str; 7] = ["A", "AA", "AB", "ABA", "ABAB", "ABBA", "ABCA"];

fn pending(task: &Task, future: &mut dyn Awaited) {
    assert!(task.poll_fn(|context| future.poll(context)).is_pending(), "it is not ready yet");
}

fn ready(task: &Task, future: &mut dyn Awaited) {
    assert!(task.poll_fn(|context| future.poll(context)).is_ready(), "it is ready");
}

/// Makes the tasks poll in that order; returns the last of them, and the others.
fn poll_in_turn(pattern: &str, future: &mut dyn Awaited) -> (Task, Vec<Task>) {
    let mut tasks: Vec<Task> = (0..3).map(|_| Task::new()).collect();
    let mut numbers = pattern.bytes().map(|letter| usize::from(letter - b'A'));
    numbers.clone().for_each(|task| pending(&tasks[task], future));
    let last = tasks.swap_remove(numbers.next_back().unwrap());
    assert!(last.held() > 0, "its waker is kept");
    assert!(tasks.iter().all(|other| other.held() == 0), "and no other");
    (last, tasks)
}

#[test]
fn the_task_that_polled_last_is_woken() {
    for face in FACES {
        for pattern in PATTERNS {
            case(format!("{}, polled by {pattern}", face.name), move || {
                let env = Env::new();
                let mut future = (face.make)(&env, SECOND);
                let (last, others) = poll_in_turn(pattern, &mut *future);
                assert_eq!(last.wakes(), 0, "not before it is ready");
                face.make_ready(&env, SECOND);
                assert!(last.wakes() > 0, "the last is woken");
                assert!(others.iter().all(|other| other.wakes() == 0), "and no other");
                ready(&last, &mut *future);
            });
        }
    }
}

#[test]
fn the_task_that_polled_last_is_woken_on_the_default_engine() {
    for face in DEFAULT_ENGINE {
        case(format!("{}, polled by ABA", face.name), move || {
            let env = Env::new();
            let mut future = (face.make)(&env, 3600 * SECOND);
            let (last, others) = poll_in_turn("ABA", &mut *future);
            assert!(future.reset(&env, 5 * MS), "it can be moved");
            eventually(|| last.wakes() > 0);
            assert!(others.iter().all(|other| other.wakes() == 0), "and no other");
            ready(&last, &mut *future);
        });
    }
}

/// A letter polls; `+` moves the deadline to three seconds after now, `-` to half a second; `>` advances a fifth of a
/// second.
const MOVES: [&str; 12] = [
    "A+B",
    "A+BA",
    "AB+",
    "AB+A",
    "A-B",
    "A-BA",
    "AB-",
    "AB-A",
    "A+B-A",
    "A-B+A",
    "A>B>A+B>A",
    "A>+>B>-A>B",
];

#[test]
fn the_task_that_polled_last_is_woken_when_it_was_moved() {
    for face in FACES {
        for script in MOVES {
            case(format!("{}, script {script}", face.name), move || {
                let env = Env::new();
                let mut future = (face.make)(&env, SECOND);
                if future.reset(&env, SECOND) {
                    follow(script, &env, &mut *future);
                }
            });
        }
    }
}

fn follow(script: &str, env: &Env, future: &mut dyn Awaited) {
    let tasks = [Task::new(), Task::new()];
    let (mut last, mut due) = (&tasks[0], env.clock.elapsed() + SECOND);
    for step in script.chars() {
        match step {
            'A' | 'B' => {
                last = &tasks[usize::from(step == 'B')];
                pending(last, future);
            }
            '>' => {
                env.clock.advance(200 * MS).unwrap();
                // A queue may wake its task spuriously.
                if last.wakes() > 0 {
                    pending(last, future);
                }
            }
            _ => {
                let after = if step == '+' { 3 * SECOND } else { 500 * MS };
                due = env.clock.elapsed() + after;
                assert!(future.reset(env, after), "it can be moved");
            }
        }
    }
    while env.clock.elapsed() < due {
        // From here on only a woken task polls.
        env.clock.advance(100 * MS).unwrap();
        if last.wakes() > 0 && last.poll_fn(|context| future.poll(context)).is_ready() {
            assert_eq!(env.clock.elapsed(), due, "not early");
            return;
        }
    }
    panic!("the last is not woken");
}

type NewWaker = fn() -> Waker;

/// A waker that panics in one of its functions.
const BAD: &[(&str, NewWaker)] = &[
    ("wake", || acting(|| panic_quietly())),
    ("drop", panics_when_dropped),
    ("clone", panics_when_cloned),
];

/// How the futures end.
struct End {
    name: &'static str,
    env: fn() -> Env,
    /// Ends them. Returns their engine and clock if those continue.
    bring: fn(&Face, Env) -> Option<Env>,
}

const ENDS: [End; 4] = [
    End {
        name: "it fires",
        env: Env::new,
        bring: |face, env| {
            face.make_ready(&env, SECOND);
            Some(env)
        },
    },
    End {
        name: "the timer is stopped",
        env: Env::new,
        bring: |_, env| {
            drop(env.timer.stop());
            env.accounted();
            None
        },
    },
    End { name: "the timer is dropped", env: Env::new, bring: |_, _| None },
    End {
        name: "the driver is dropped",
        env: Env::driven,
        bring: |_, mut env| {
            drop(env.driver.take());
            env.accounted();
            None
        },
    },
];

#[test]
fn a_waker_that_panics_keeps_no_other_from_being_woken() {
    for face in FACES {
        for &(part, bad) in BAD {
            for End { name: end, env, bring } in ENDS {
                if part == "clone" && face.ends_with_a_panic {
                    continue;
                }
                case(format!("{}, {part} panics, {end}", face.name), move || {
                    let env = env();
                    let mut futures = [0, 1, 2, 3].map(|_| (face.make)(&env, SECOND));
                    let tasks = [Task::new(), Task::new()];
                    pending(&tasks[0], &mut *futures[0]);
                    let waker = bad();
                    for future in &mut futures[1..3] {
                        poll_badly(part, &waker, &mut **future);
                    }
                    drop(waker);
                    pending(&tasks[1], &mut *futures[3]);
                    let env = bring(face, env);
                    assert!(tasks.iter().all(|task| task.wakes() > 0), "the others are woken");
                    let Some(env) = env else { return };
                    futures.iter_mut().for_each(|future| ready(&tasks[0], &mut **future));
                    drop(futures);
                    assert_eq!(env.timer.counts().panicked > 0, part != "clone", "it is counted");
                    goes_on(&env);
                });
            }
        }
    }
}

/// A panic of the waker's clone reaches the caller of `poll`, and leaves a future that can be polled.
fn poll_badly(part: &str, waker: &Waker, future: &mut dyn Awaited) {
    let polled = catch_unwind(AssertUnwindSafe(|| future.poll(&mut Context::from_waker(waker))));
    match polled {
        Ok(polled) => assert!(polled.is_pending() && part != "clone", "it is not ready yet"),
        Err(_) => assert_eq!(part, "clone", "no other panic goes to who polls"),
    }
}

/// Asserts that another future becomes ready, and that all timers are accounted for.
fn goes_on(env: &Env) {
    for face in FACES.iter().take(1) {
        let (task, mut future) = (Task::new(), (face.make)(env, SECOND));
        pending(&task, &mut *future);
        env.clock.advance(SECOND).unwrap();
        assert!(task.wakes() > 0, "the engine goes on");
        ready(&task, &mut *future);
    }
    env.accounted();
}

#[test]
fn a_task_is_woken_although_the_waker_that_it_replaced_panics() {
    for face in FACES {
        case(format!("{}, the drop of the old one panics", face.name), move || {
            let (env, task) = (Env::new(), Task::new());
            let mut future = (face.make)(&env, SECOND);
            poll_badly("drop", &panics_when_dropped(), &mut *future);
            let replaced = catch_unwind(AssertUnwindSafe(|| pending(&task, &mut *future)));
            assert!(replaced.is_ok(), "the panic of one task goes to another");
            face.make_ready(&env, SECOND);
            assert!(task.wakes() > 0, "it is woken");
            ready(&task, &mut *future);
            goes_on(&env);
        });
        if face.ends_with_a_panic {
            continue;
        }
        case(format!("{}, the clone of the new one panics", face.name), move || {
            let (env, task) = (Env::new(), Task::new());
            let mut future = (face.make)(&env, SECOND);
            pending(&task, &mut *future);
            poll_badly("clone", &panics_when_cloned(), &mut *future);
            face.make_ready(&env, SECOND);
            assert!(task.wakes() > 0, "who polled before is woken");
            ready(&task, &mut *future);
            goes_on(&env);
        });
    }
}

#[test]
fn a_future_is_dropped_with_a_waker_whose_drop_panics() {
    for face in FACES {
        case(face.name, move || {
            let env = Env::new();
            let mut futures = [0, 1].map(|_| (face.make)(&env, SECOND));
            let task = Task::new();
            let [dropped, other] = &mut futures;
            poll_badly("drop", &panics_when_dropped(), &mut **dropped);
            pending(&task, &mut **other);
            let [dropped, mut other] = futures;
            let gone = catch_unwind(AssertUnwindSafe(|| drop(dropped)));
            assert!(gone.is_ok(), "the panic goes to who drops the future");
            face.make_ready(&env, SECOND);
            assert!(task.wakes() > 0, "the other is woken");
            ready(&task, &mut *other);
            goes_on(&env);
        });
    }
}

#[test]
fn no_task_is_woken_before_its_time() {
    for face in FACES {
        case(face.name, move || {
            let (env, task) = (Env::new(), Task::new());
            let mut future = (face.make)(&env, SECOND);
            pending(&task, &mut *future);
            env.clock.advance(SECOND - Duration::from_nanos(1)).unwrap();
            assert_eq!(task.wakes(), 0);
        });
    }
}
