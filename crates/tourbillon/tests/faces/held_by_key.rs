//! The rows: values that a `KeyedTimer` and a `Purgatory` hold, and their keys.

use tourbillon::{Attempt, Backoff, Context, ScheduleError, Wait, WaitError, WatchError};

use crate::common::{HOUR, panic_quietly};
use crate::fragile::{Bench, Fragile, Handle, Held, Holder, Name, Op, held, listener};

/// Held under a key. A new kind is a new row.
pub(crate) const KEYED: &[Holder] = &[
    Holder::new("KeyedTimer::schedule", |bench, after, value| {
        held(bench.keyed.schedule(own(), after, callback(value)), by_name)
    }),
    Holder::new("KeyedTimer::schedule, large", |bench, after, value| {
        let other = [1_u64; 8];
        let callback = move |_: &Context<'_>| _ = (&value, &other);
        held(bench.keyed.schedule(own(), after, callback), by_name)
    }),
    Holder::new("KeyedTimer::schedule, replaced", |bench, after, value| {
        held(bench.keyed.schedule(own(), after, callback(value)), |_| {
            Handle::default().cancel(|bench| {
                assert!(bench.keyed.schedule(own(), HOUR, |_| ()).unwrap(), "it replaces another");
                assert!(bench.keyed.cancel("own"));
            })
        })
    }),
    Holder::new("KeyedTimer::schedule, replaced by a retry", |bench, after, value| {
        held(bench.keyed.schedule(own(), after, callback(value)), |_| {
            Handle::default().cancel(|bench| {
                let job = |_: &Attempt| Err::<(), _>(());
                assert!(bench.keyed.retry(own(), Backoff::new(HOUR), job, |_| ()).unwrap());
                assert!(bench.keyed.cancel("own"));
            })
        })
    }),
    Holder::new("KeyedTimer::schedule, cleared", |bench, after, value| {
        held(bench.keyed.schedule(own(), after, callback(value)), |_| {
            Handle::default().cancel(|bench| assert_eq!(bench.keyed.clear(), 1))
        })
    }),
    Holder::new("KeyedTimer::schedule_if_absent", |bench, after, value| {
        held(bench.keyed.schedule_if_absent(own(), after, callback(value)), |_| by_name(true))
    }),
    Holder::new("KeyedTimer::schedule, its key", |bench, after, value| {
        key_gone(bench.keyed.schedule(fragile(value), after, |_| ()), by_name)
    }),
    Holder::new("KeyedTimer::schedule, its key, beside a callback that panics", {
        |bench, after, value| {
            let callback = |_: &Context<'_>| panic_quietly();
            key_gone(bench.keyed.schedule(fragile(value), after, callback), by_name)
        }
    })
    .panics(2),
    Holder::new("KeyedTimer::schedule_if_absent, its key", |bench, after, value| {
        let scheduled = bench.keyed.schedule_if_absent(fragile(value), after, |_| ());
        key_gone(scheduled, |_| by_name(true))
    }),
    Holder::new("KeyedTimer::retry, its job", |bench, after, value| {
        let (then, told) = listener();
        let job = move |_: &Attempt| {
            let _held = &value;
            Ok::<_, ()>(())
        };
        let scheduled = bench.keyed.retry(own(), Backoff::new(after), job, then);
        held(scheduled, |replaced| by_name(replaced).wait(told))
    }),
    Holder::new("KeyedTimer::retry, its job that panics", |bench, after, value| {
        let job = move |_: &Attempt| -> Result<(), ()> {
            let _held = &value;
            panic_quietly()
        };
        held(bench.keyed.retry(own(), Backoff::new(after), job, |_| ()), by_name)
    })
    .panics(2),
    Holder::new("KeyedTimer::retry, its listener", |bench, after, value| {
        let job = |_: &Attempt| Ok::<_, ()>(());
        let then = move |_| _ = &value;
        held(bench.keyed.retry(own(), Backoff::new(after), job, then), by_name)
    }),
    Holder::new("KeyedTimer::retry, an error that is not the last", |bench, after, value| {
        let mut value = Some(value);
        let job = move |_: &Attempt| value.take().map_or(Ok(()), Err);
        held(bench.keyed.retry(own(), Backoff::new(after), job, |_| ()), by_name)
    }),
    Holder::new("KeyedTimer::retry, its key", |bench, after, value| {
        let ((then, told), job) = (listener(), |_: &Attempt| Ok::<_, ()>(()));
        let scheduled = bench.keyed.retry(fragile(value), Backoff::new(after), job, then);
        key_gone(scheduled, |replaced| by_name(replaced).wait(told))
    }),
];

/// Held in a purgatory, where it expires, is completed, or is handed back.
pub(crate) const DELAYED: &[Holder] = &[
    Holder::new("Operation, cancelled", |bench, after, value| {
        let op = Op { met: bench.met.clone(), held: Some(value) };
        watched(bench.purgatory.try_complete_else_watch(op, [own()], after), |handle| {
            handle.take_out(|bench| bench.purgatory.cancel_key("own"))
        })
    })
    .outlives_timer(),
    Holder::new("Operation, completed", |bench, after, value| {
        let op = Op { met: bench.met.clone(), held: Some(value) };
        watched(bench.purgatory.try_complete_else_watch(op, [own()], after), |handle| {
            handle.cancel(Bench::complete)
        })
    })
    .outlives_timer(),
    Holder::new("Purgatory::when, its condition", |bench, after, value| {
        let (then, told) = listener();
        let watching = bench.purgatory.when([own()], after, condition(bench, value), then);
        watched(watching, |handle| by_cancel(handle).wait(told))
    }),
    Holder::new("Purgatory::when, its condition, completed", |bench, after, value| {
        let (then, told) = listener();
        let watching = bench.purgatory.when([own()], after, condition(bench, value), then);
        watched(watching, |handle| handle.cancel(Bench::complete).wait(told))
    }),
    Holder::new("Purgatory::when, its listener", |bench, after, value| {
        let then = move |_: Result<(), WaitError>| _ = &value;
        watched(bench.purgatory.when([own()], after, || None, then), by_cancel)
    }),
    Holder::new("Purgatory::when, its listener, completed", |bench, after, value| {
        let (met, then) = (bench.condition(), move |_: Result<(), WaitError>| _ = &value);
        let watching = bench.purgatory.when([own()], after, move || met().then_some(()), then);
        watched(watching, |handle| handle.cancel(Bench::complete))
    }),
    Holder::new("Purgatory::when, its value", |bench, after, value| {
        let (met, mut value) = (bench.condition(), Some(value));
        let condition = move || met().then(|| value.take());
        watched(bench.purgatory.when([own()], after, condition, |_| ()), |handle| {
            handle.cancel(Bench::complete)
        })
    }),
    Holder::new("Purgatory::wait, its condition", |bench, after, value| {
        waiting(bench.purgatory.wait([own()], after, condition(bench, value)), |handle, wait| {
            by_cancel(handle).wait(move || ready(wait))
        })
    }),
    Holder::new("Purgatory::wait, its condition, completed", |bench, after, value| {
        waiting(bench.purgatory.wait([own()], after, condition(bench, value)), |handle, wait| {
            handle.cancel(Bench::complete).wait(move || ready(wait))
        })
    }),
    Holder::new("Purgatory::wait, its condition, withdrawn", |bench, after, value| {
        waiting(bench.purgatory.wait([own()], after, condition(bench, value)), |handle, wait| {
            handle.cancel(move |_| drop(wait))
        })
    }),
    Holder::new("Operation, its key", |bench, after, value| {
        let op = Op { met: bench.met.clone(), held: None };
        let keys = [Name("other", None), fragile(value)];
        let watching = bench.purgatory.try_complete_else_watch(op, keys, after);
        lost(watching, |handle| handle.cancel(|bench| drop(bench.purgatory.cancel_key("own"))))
    })
    .outlives_timer(),
    Holder::new("Operation, its key, completed", |bench, after, value| {
        let op = Op { met: bench.met.clone(), held: None };
        let keys = [fragile(value), Name("other", None)];
        let watching = bench.purgatory.try_complete_else_watch(op, keys, after);
        lost(watching, |handle| handle.cancel(Bench::complete))
    })
    .outlives_timer(),
    Holder::new("Purgatory::when, its key, beside a listener that panics", {
        |bench, after, value| {
            let then = |outcome: Result<(), _>| {
                if outcome == Err(WaitError::Expired) {
                    panic_quietly();
                }
            };
            lost(bench.purgatory.when([fragile(value)], after, || None, then), |handle| handle)
        }
    })
    .panics(2),
    Holder::new("Purgatory::wait, its key, withdrawn", |bench, after, value| {
        let wait = bench.purgatory.wait([fragile(value)], after, || None::<()>);
        waiting(wait, |handle, wait| handle.cancel(move |_| drop(wait)))
    }),
];

fn own() -> Name {
    Name("own", None)
}

fn fragile(value: Fragile) -> Name {
    Name("own", Some(value))
}

fn callback(value: Fragile) -> impl FnOnce(&Context<'_>) + Send + 'static {
    move |_| _ = &value
}

fn condition(bench: &Bench, value: Fragile) -> impl FnMut() -> Option<()> + Send + use<> {
    let met = bench.met.clone();
    move || {
        let _held = &value;
        met.load(std::sync::atomic::Ordering::SeqCst).then_some(())
    }
}

fn by_name(_replaced: bool) -> Handle {
    let handle = Handle::default().cancel(|bench| assert!(bench.keyed.cancel("own")));
    handle.reschedule(|bench, after| bench.keyed.reschedule("own", after).unwrap())
}

fn by_cancel(handle: Handle) -> Handle {
    handle.cancel(|bench| assert!(bench.purgatory.cancel_key("own").is_empty()))
}

/// A refused key is dropped, not returned.
fn key_gone<R, F>(
    scheduled: Result<R, ScheduleError<F>>,
    handle: impl FnOnce(R) -> Handle,
) -> Held {
    scheduled.map_or(Held::Gone, |scheduled| Held::Here(handle(scheduled)))
}

fn watched<R, T: 'static>(
    watching: Result<R, WatchError<T>>,
    handle: impl FnOnce(Handle) -> Handle,
) -> Held {
    match watching {
        Ok(_) => Held::Here(handle(Handle::default())),
        Err(error) => Held::Back(Box::new(error.into_inner())),
    }
}

fn lost<R, T>(watching: Result<R, WatchError<T>>, handle: impl FnOnce(Handle) -> Handle) -> Held {
    watching.map_or(Held::Gone, |_| Held::Here(handle(Handle::default())))
}

/// A refused wait is ready at once, and what it held is dropped.
fn waiting<T: 'static>(mut wait: Wait<T>, handle: impl FnOnce(Handle, Wait<T>) -> Handle) -> Held {
    let task = crate::by_hand::Task::new();
    match task.poll(&mut wait) {
        std::task::Poll::Ready(_) => Held::Gone,
        std::task::Poll::Pending => Held::Here(handle(Handle::default(), wait)),
    }
}

fn ready<T>(mut wait: Wait<T>) {
    assert!(
        crate::by_hand::Task::new().poll(&mut wait).is_ready(),
        "who waits is told the outcome"
    );
}
