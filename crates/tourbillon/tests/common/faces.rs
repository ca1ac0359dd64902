//! Every face of the crate behind one verb: make something happen after a delay.
//!
//! What holds for all faces is tested with [`FACES`]; a new face is covered by a new row. Dropping an [`Arm`] ends the
//! face and everything that waits in it.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, SystemTime};

use super::YEAR;
use tourbillon::{
    Batch, Builder, DelayQueue, Driver, KeyedTimer, Operation, Purgatory, Repeat, TakeError,
    WaitError,
};

/// Called when the delay has passed.
pub(crate) type Happening = Box<dyn FnOnce() + Send>;

/// Arms a call of the closure after the delay.
pub(crate) type Arm = Box<dyn Fn(Duration, Happening) + Send>;

pub(crate) struct Face {
    pub(crate) name: &'static str,
    /// Whether callbacks run where the builder says. For the other faces the builder must leave that unset.
    pub(crate) callbacks: bool,
    pub(crate) open: fn(Builder) -> Arm,
}

const fn callbacks(name: &'static str, open: fn(Builder) -> Arm) -> Face {
    Face { name, callbacks: true, open }
}

const fn other(name: &'static str, open: fn(Builder) -> Arm) -> Face {
    Face { name, callbacks: false, open }
}

/// The faces that use the engine's clock.
pub(crate) const FACES: &[Face] = &[
    callbacks("Timer::schedule", schedule),
    callbacks("Timer::schedule_at", schedule_at),
    callbacks("Timer::arm", arm),
    callbacks("Timer::schedule_repeating", schedule_repeating),
    callbacks("Timer::repeat", repeat),
    callbacks("KeyedTimer", keyed),
    callbacks("Purgatory, an operation", purgatory_operation),
    callbacks("Purgatory, a closure", purgatory_closure),
    callbacks("Purgatory, a future", purgatory_future),
    other("Engine", engine),
    other("a driven timer", driven_timer),
    other("a driven engine", driven_engine),
    other("DelayQueue::take", queue_take),
    other("DelayQueue::take_within", queue_take_within),
    #[cfg(feature = "tasks")]
    other("tasks: sleep", tasks::sleep),
    #[cfg(feature = "tasks")]
    other("tasks: sleep on a driven timer", tasks::sleep_on_a_driven_timer),
    #[cfg(feature = "tasks")]
    other("tasks: timeout", tasks::timeout),
    #[cfg(feature = "tasks")]
    other("tasks: interval", tasks::interval),
    #[cfg(feature = "tasks")]
    other("tasks: DelayQueue", tasks::delay_queue),
];

/// The faces that use the wall clock, whatever the engine's clock.
pub(crate) const WALL_FACES: &[Face] = &[callbacks("Timer::schedule_wall", schedule_wall)];

fn schedule(builder: Builder) -> Arm {
    let timer = builder.build().unwrap();
    Box::new(move |after, happen| drop(timer.schedule(after, move |_| happen()).unwrap()))
}

fn schedule_at(builder: Builder) -> Arm {
    let timer = builder.build().unwrap();
    Box::new(move |after, happen| {
        timer.schedule_at(timer.now() + after, move |_| happen()).unwrap();
    })
}

fn arm(builder: Builder) -> Arm {
    let timer = builder.build().unwrap();
    Box::new(move |after, happen| _ = timer.arm(after, move |_| happen()).unwrap())
}

fn schedule_repeating(builder: Builder) -> Arm {
    let timer = builder.build().unwrap();
    Box::new(move |after, happen| {
        let mut once = Some(happen);
        let run =
            move |_: &tourbillon::Context<'_>| once.take().into_iter().for_each(|once| once());
        timer.schedule_repeating(after, run).unwrap();
    })
}

fn repeat(builder: Builder) -> Arm {
    let timer = builder.build().unwrap();
    Box::new(move |after, happen| {
        let mut once = Some(happen);
        let run =
            move |_: &tourbillon::Context<'_>| once.take().into_iter().for_each(|once| once());
        timer.repeat(Repeat::every(YEAR).first(after), run).unwrap();
    })
}

fn keyed(builder: Builder) -> Arm {
    let timer = KeyedTimer::new(&builder.build().unwrap());
    let keys = AtomicU64::new(0);
    Box::new(move |after, happen| {
        let key = keys.fetch_add(1, SeqCst);
        timer.schedule(key, after, move |_| happen()).unwrap();
    })
}

fn purgatory_operation(builder: Builder) -> Arm {
    struct Expires(Happening);
    impl Operation for Expires {
        fn try_complete(&mut self) -> bool {
            false
        }
        fn on_complete(self) {
            unreachable!("it is never met");
        }
        fn on_expire(self) {
            (self.0)();
        }
    }
    let purgatory = Purgatory::new(&builder.build().unwrap());
    Box::new(move |after, happen| {
        purgatory.try_complete_else_watch(Expires(happen), [1, 2], after).unwrap();
    })
}

fn purgatory_closure(builder: Builder) -> Arm {
    let purgatory: Purgatory<u64> = Purgatory::new(&builder.build().unwrap());
    Box::new(move |after, happen| {
        let then = move |outcome| {
            if outcome == Err(WaitError::Expired) {
                happen();
            }
        };
        assert!(purgatory.when([1], after, || None::<()>, then).is_ok());
    })
}

fn purgatory_future(builder: Builder) -> Arm {
    let purgatory: Purgatory<u64> = Purgatory::new(&builder.build().unwrap());
    Box::new(move |after, happen| {
        let wait = purgatory.wait([1], after, || None::<()>);
        on_a_thread(async move {
            if wait.await == Err(WaitError::Expired) {
                happen();
            }
        });
    })
}

fn run_all(batch: Batch<'_, Happening>) {
    batch.for_each(|fired| (fired.value)());
}

fn engine(builder: Builder) -> Arm {
    let engine = builder.deliver(run_all).unwrap();
    Box::new(move |after, happen| assert!(engine.schedule(after, happen).is_ok()))
}

/// Turns the driver until its timer is stopped.
fn turn(mut driver: Driver) {
    thread::spawn(move || {
        while !driver.is_stopped() {
            driver.turn_within(YEAR);
        }
    });
}

fn driven_timer(builder: Builder) -> Arm {
    let (timer, driver) = builder.build_driven().unwrap();
    turn(driver);
    Box::new(move |after, happen| drop(timer.schedule(after, move |_| happen()).unwrap()))
}

fn driven_engine(builder: Builder) -> Arm {
    let (engine, driver) = builder.deliver_driven(run_all).unwrap();
    turn(driver);
    Box::new(move |after, happen| assert!(engine.schedule(after, happen).is_ok()))
}

/// Ends the takers when dropped.
struct Closes(DelayQueue<Happening>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A queue with two taker threads: one leads, the other follows.
fn taken(
    builder: Builder,
    take: fn(&DelayQueue<Happening>) -> Result<Happening, TakeError>,
) -> Arm {
    let queue = Closes(builder.queue().unwrap());
    for _ in 0..2 {
        let queue = queue.0.clone();
        thread::spawn(move || {
            loop {
                match take(&queue) {
                    Ok(happen) => happen(),
                    Err(TakeError::Closed) => break,
                    Err(_) => {}
                }
            }
        });
    }
    Box::new(move |after, happen| assert!(queue.0.put(after, happen).is_ok()))
}

fn queue_take(builder: Builder) -> Arm {
    taken(builder, DelayQueue::take)
}

fn queue_take_within(builder: Builder) -> Arm {
    taken(builder, |queue| queue.take_within(YEAR))
}

fn on_a_thread(task: impl Future<Output = ()> + Send + 'static) {
    thread::spawn(move || futures_lite::future::block_on(task));
}

/// The faces for tasks. Each task has a thread, which ends if its timer is stopped.
#[cfg(feature = "tasks")]
mod tasks {
    use std::future::poll_fn;
    use std::sync::mpsc::{self, TryRecvError};
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll, Waker};
    use std::time::Instant;

    use super::{Arm, Builder, Happening, YEAR, on_a_thread};

    pub(super) fn sleep(builder: Builder) -> Arm {
        let timer = builder.build().unwrap();
        Box::new(move |after, happen| {
            let sleep = timer.sleep(after);
            on_a_thread(async move {
                if sleep.await.is_ok() {
                    happen();
                }
            });
        })
    }

    /// The driver is never turned: it only runs callbacks, and tasks have a driver of their own.
    pub(super) fn sleep_on_a_driven_timer(builder: Builder) -> Arm {
        let (timer, driver) = builder.build_driven().unwrap();
        Box::new(move |after, happen| {
            let _never_turned = &driver;
            let sleep = timer.sleep(after);
            on_a_thread(async move {
                if sleep.await.is_ok() {
                    happen();
                }
            });
        })
    }

    pub(super) fn timeout(builder: Builder) -> Arm {
        let timer = builder.build().unwrap();
        Box::new(move |after, happen| {
            let timeout = timer.timeout(after, std::future::pending::<()>());
            on_a_thread(async move {
                if timeout.await.is_ok() {
                    happen();
                }
            });
        })
    }

    pub(super) fn interval(builder: Builder) -> Arm {
        let timer = builder.build().unwrap();
        Box::new(move |after, happen| {
            let mut interval = timer.interval_at(timer.now() + after, YEAR);
            on_a_thread(async move {
                if interval.tick().await.is_ok() {
                    happen();
                }
            });
        })
    }

    /// One queue for all items, on one thread: a queue for each would be created and dropped with its item.
    pub(super) fn delay_queue(builder: Builder) -> Arm {
        let timer = builder.build().unwrap();
        let (sender, receiver) = mpsc::channel::<(Instant, Happening)>();
        let mut queue = timer.delay_queue();
        let inbox = Inbox { sender: Some(sender), waker: Arc::default() };
        let waker = inbox.waker.clone();
        let mut poll = move |context: &mut Context<'_>| {
            *waker.lock().unwrap() = Some(context.waker().clone());
            loop {
                match receiver.try_recv() {
                    Ok((at, happen)) => assert!(queue.push_at(happen, at).is_ok()),
                    Err(TryRecvError::Disconnected) => return Poll::Ready(()),
                    Err(TryRecvError::Empty) => match queue.poll_expired(context) {
                        Poll::Ready(Some(Ok(expired))) => (expired.value)(),
                        Poll::Ready(Some(Err(_))) => return Poll::Ready(()),
                        Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                    },
                }
            }
        };
        on_a_thread(async move { poll_fn(move |context| poll(context)).await });
        Box::new(move |after, happen| inbox.send((timer.now() + after, happen)))
    }

    /// Items for the task of a queue to insert. Dropping it ends the task.
    struct Inbox<T> {
        sender: Option<mpsc::Sender<T>>,
        waker: Arc<Mutex<Option<Waker>>>,
    }

    impl<T> Inbox<T> {
        fn send(&self, value: T) {
            // The task has ended if its timer was stopped.
            if let Some(sender) = &self.sender {
                let _ = sender.send(value);
            }
            self.wake();
        }

        fn wake(&self) {
            let waker = self.waker.lock().unwrap().take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    impl<T> Drop for Inbox<T> {
        fn drop(&mut self) {
            self.sender = None;
            self.wake();
        }
    }
}

fn schedule_wall(builder: Builder) -> Arm {
    let timer = builder.build().unwrap();
    Box::new(move |after, happen| {
        timer.schedule_wall(SystemTime::now() + after, move |_| happen()).unwrap();
    })
}
