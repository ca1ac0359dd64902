//! Futures that are polled from unusual places: by their own wake, on the thread that wakes, and by a callback at the
//! very moment at which they are due, before their engine has come to them.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::awaited::{Awaited, Env, FACES, Face};
use crate::by_hand::Task;
use crate::common::{Log, SECOND, case};

type Shared = Arc<Mutex<Box<dyn Awaited>>>;

/// A task that polls its future when it is woken, as an executor without a queue does.
struct PollsAtOnce {
    future: Shared,
    polls: Log<Poll<()>>,
}

impl PollsAtOnce {
    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        // Whoever moves the future holds it, and wakes its task only if that has to look again.
        if let Ok(mut future) = self.future.try_lock() {
            let polled = future.poll(&mut Context::from_waker(&waker));
            self.polls.add(polled);
        }
    }
}

impl Wake for PollsAtOnce {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}

#[test]
fn a_future_may_be_polled_by_its_own_wake() {
    for face in FACES {
        for env in [Env::new, Env::on_driver] {
            case(face.name, move || {
                let env = env();
                let future = Arc::new(Mutex::new((face.make)(&env, SECOND)));
                let task = Arc::new(PollsAtOnce { future, polls: Log::new() });
                task.poll();
                assert_eq!(task.polls.take(), [Poll::Pending]);
                face.make_ready(&env, SECOND);
                assert_eq!(task.polls.take().last(), Some(&Poll::Ready(())), "it is woken");
                env.accounted();
            });
        }
    }
}

/// What happens to a future before its moment comes: `A` polls, `+` moves it to later and `-` to earlier.
const BEFORE: [&str; 8] = ["", "A", "+", "A+", "A+A", "A-", "A-A", "A+-"];

/// Follows the script. Returns when the future is due, or `None` if it cannot be moved.
fn follow(script: &str, env: &Env, future: &mut dyn Awaited, task: &Task) -> Option<Duration> {
    let mut due = 2 * SECOND;
    for step in script.chars() {
        if step == 'A' {
            assert!(task.poll_fn(|context| future.poll(context)).is_pending());
            continue;
        }
        due = if step == '+' { 3 * SECOND } else { SECOND };
        if !future.reset(env, due) {
            return None;
        }
    }
    Some(due)
}

/// A callback polls a future when that is due. If it is ready by then, its task is not woken any more, and nothing of
/// it is pending; otherwise its task is woken.
#[test]
fn a_future_may_be_polled_by_a_callback_when_it_is_due() {
    // A queue may wake its task spuriously, and its other item is pending. A face of an event is not due.
    let is_due = |face: &&Face| !face.has_event() && !face.name.contains("Queue");
    for face in FACES.iter().filter(is_due) {
        for script in BEFORE {
            for last in [0, 1] {
                case(
                    format!("{}, script {script:?}, polled by task {last}", face.name),
                    move || {
                        // On one thread: a wake that has begun on another would be spurious.
                        let env = Env::on_driver();
                        let tasks = Arc::new([Task::new(), Task::new()]);
                        let mut future = (face.make)(&env, 2 * SECOND);
                        let due = follow(script, &env, &mut *future, &tasks[0]);
                        let future = Arc::new(Mutex::new(future));
                        if let Some(due) = due {
                            polls_when_due(&env, &future, due, (&tasks, last));
                            drop(future);
                            assert!(env.timer.is_empty(), "nothing of it is left");
                            env.clock.advance(10 * SECOND).unwrap();
                            assert!(tasks.iter().all(|task| task.wakes() == 0), "nor woken later");
                            env.accounted();
                        }
                    },
                );
            }
        }
    }
}

fn polls_when_due(
    env: &Env,
    future: &Shared,
    due: Duration,
    (tasks, last): (&Arc<[Task; 2]>, usize),
) {
    let (own, by, polls) = (future.clone(), tasks.clone(), Log::new());
    let told = polls.clone();
    // The timer's callbacks run before its tasks are woken.
    let callback = move |_: &tourbillon::Context<'_>| {
        told.add(by[last].poll_fn(|context| own.lock().unwrap().poll(context)));
        // From here on a wake is in vain, unless the future waits for it.
        by.iter().for_each(|task| _ = task.wakes());
    };
    env.timer.arm(due, callback).unwrap();
    env.clock.advance(due).unwrap();
    if polls.take() == [Poll::Ready(())] {
        assert!(tasks.iter().all(|task| task.wakes() == 0), "it is woken in vain");
        return;
    }
    assert!(tasks[last].wakes() > 0, "it is woken");
    let polled = tasks[last].poll_fn(|context| future.lock().unwrap().poll(context));
    assert!(polled.is_ready());
}
