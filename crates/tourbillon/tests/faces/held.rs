//! The rows: values that a `Timer` holds, in closures of every kind and in their results.

use std::panic::resume_unwind;

use tourbillon::{Attempt, Backoff, Context, Cron, Key, Repeat, Retried, Retry, Timeout};

use crate::common::{SECOND, panic_quietly};
use crate::fragile::{Fragile, Handle, Holder, held, listener};

/// Callbacks. A new kind is a new row.
pub(crate) const CALLBACKS: &[Holder] = &[
    Holder::new("schedule, small", |bench, after, value| {
        held(bench.timer.schedule(after, once(value)), by_handle)
    }),
    Holder::new("schedule, large", |bench, after, value| {
        held(bench.timer.schedule(after, large(value)), by_handle)
    }),
    Holder::new("schedule, dropped by the callback", |bench, after, value| {
        held(bench.timer.schedule(after, move |_| drop(value)), by_handle)
    }),
    Holder::new("schedule, the payload of its panic", |bench, after, value| {
        let callback = move |_: &Context<'_>| resume_unwind(Box::new(value));
        held(bench.timer.schedule(after, callback), by_handle)
    }),
    Holder::new("schedule, a handle that cancels when it is dropped", |bench, after, value| {
        let scheduled = bench.timer.schedule(after, once(value));
        held(scheduled, |timeout| {
            let guard = timeout.cancel_on_drop();
            Handle::default().cancel(move |_| drop(guard))
        })
    }),
    Holder::new("schedule_at", |bench, after, value| {
        held(bench.timer.schedule_at(bench.timer.now() + after, once(value)), by_handle)
    }),
    Holder::new("arm, small", |bench, after, value| {
        held(bench.timer.arm(after, once(value)), by_key)
    }),
    Holder::new("arm, large", |bench, after, value| {
        held(bench.timer.arm(after, large(value)), by_key)
    }),
    Holder::new("arm_at", |bench, after, value| {
        held(bench.timer.arm_at(bench.timer.now() + after, large(value)), by_key)
    }),
    Holder::new("schedule_repeating that ends", |bench, after, value| {
        held(bench.timer.schedule_repeating(after, many(value)), by_handle)
    }),
    Holder::new("schedule_repeating that runs twice", |bench, after, value| {
        let mut runs = 0;
        let callback = move |context: &Context<'_>| {
            let _held = &value;
            runs += 1;
            if runs < 2 {
                context.again(SECOND / 2);
            }
        };
        held(bench.timer.schedule_repeating(after / 2, callback), by_handle)
    }),
    Holder::new("schedule_repeating that panics", |bench, after, value| {
        held(bench.timer.schedule_repeating(after, panicking(value)), by_handle)
    })
    .panics(2),
    Holder::new("schedule_repeating, the payload of its panic", |bench, after, value| {
        let mut value = Some(value);
        let callback = move |_: &Context<'_>| resume_unwind(Box::new(value.take()));
        held(bench.timer.schedule_repeating(after, callback), by_handle)
    }),
    Holder::new("schedule_repeating that cancels itself", |bench, after, value| {
        let callback = move |context: &Context<'_>| {
            let _held = &value;
            context.again(SECOND);
            context.timeout().unwrap().cancel();
        };
        held(bench.timer.schedule_repeating(after, callback), by_handle)
    }),
    Holder::new("schedule_repeating_at", |bench, after, value| {
        let at = bench.timer.now() + after;
        held(bench.timer.schedule_repeating_at(at, many(value)), by_handle)
    }),
    Holder::new("repeat at a rate", |bench, after, value| {
        held(bench.timer.repeat(Repeat::every(after), cancelling(value)), by_handle)
    }),
    Holder::new("repeat with a pause", |bench, after, value| {
        held(bench.timer.repeat(Repeat::after_each(after), cancelling(value)), by_handle)
    }),
    Holder::new("repeat that panics", |bench, after, value| {
        held(bench.timer.repeat(Repeat::every(after), panicking(value)), by_handle)
    })
    .panics(2),
    Holder::new("repeat that survives its panics", |bench, after, value| {
        let mut runs = 0;
        let callback = move |context: &Context<'_>| {
            let _held = &value;
            runs += 1;
            if runs == 2 {
                context.timeout().unwrap().cancel();
            }
            panic_quietly();
        };
        let rhythm = Repeat::every(after / 2).survive_panics();
        held(bench.timer.repeat(rhythm, callback), by_handle)
    })
    .panics(3),
    Holder::new("schedule_wall, small", |bench, after, value| {
        held(bench.timer.schedule_wall(bench.timer.wall_now() + after, once(value)), by_handle)
    }),
    Holder::new("schedule_wall, large", |bench, after, value| {
        held(bench.timer.schedule_wall(bench.timer.wall_now() + after, large(value)), by_handle)
    }),
    Holder::new("schedule_wall_every", |bench, after, value| {
        let first = bench.timer.wall_now() + after;
        held(bench.timer.schedule_wall_every(first, after, cancelling(value)), by_handle)
    }),
    Holder::new("schedule_cron", |bench, _, value| {
        held(bench.timer.schedule_cron(&every_second(), cancelling(value)), by_handle)
    }),
    Holder::new("schedule_cron that panics", |bench, _, value| {
        held(bench.timer.schedule_cron(&every_second(), panicking(value)), by_handle)
    })
    .panics(2),
];

/// Retried jobs, their results, and their listeners.
pub(crate) const RETRIES: &[Holder] = &[
    Holder::new("retry, its job", |bench, after, value| {
        held(bench.timer.retry(Backoff::new(after), job(value, |_| Ok(()))), by_retry)
    }),
    Holder::new("retry, its job that is tried again", |bench, after, value| {
        let tried = |number| if number < 2 { Err(()) } else { Ok(()) };
        held(bench.timer.retry(Backoff::new(after), job(value, tried)), by_retry)
    }),
    Holder::new("retry, its job that gives up", |bench, after, value| {
        held(bench.timer.retry(Backoff::new(after).tries(2), job(value, |_| Err(()))), by_retry)
    }),
    Holder::new("retry, its job that panics", |bench, after, value| {
        held(bench.timer.retry(Backoff::new(after), job(value, |_| panic_quietly())), by_retry)
    })
    .panics(2),
    Holder::new("retry, the payload of a panic", |bench, after, value| {
        let mut value = Some(value);
        let job = move |_: &Attempt| resume_unwind(Box::new(value.take()));
        held(bench.timer.retry::<(), (), _>(Backoff::new(after), job), by_retry)
    }),
    Holder::new("retry, an error that is not the last", |bench, after, value| {
        let mut value = Some(value);
        let job = move |_: &Attempt| value.take().map_or(Ok(()), Err);
        held(bench.timer.retry(Backoff::new(after), job), by_retry)
    }),
    Holder::new("retry, the last error, and nobody waits", |bench, after, value| {
        let mut value = Some(value);
        let job = move |_: &Attempt| Err::<(), _>(value.take());
        held(bench.timer.retry(Backoff::new(after).tries(1), job), |retry| {
            by_handle(retry.timeout())
        })
    }),
    Holder::new("retry, its value, and nobody waits", |bench, after, value| {
        let mut value = Some(value);
        let job = move |_: &Attempt| Ok::<_, ()>(value.take());
        held(bench.timer.retry(Backoff::new(after), job), |retry| by_handle(retry.timeout()))
    }),
    Holder::new("retry_then, its job", |bench, after, value| {
        let ((then, told), job) = (listener(), job(value, |_| Ok(())));
        let scheduled = bench.timer.retry_then(Backoff::new(after), job, then);
        held(scheduled, |timeout| by_handle(timeout).wait(told))
    }),
    Holder::new("retry_then, its listener", |bench, after, value| {
        let then = move |_: Retried<(), ()>| _ = &value;
        held(bench.timer.retry_then(Backoff::new(after), |_| Ok(()), then), by_handle)
    }),
    Holder::new("retry_then, its value", |bench, after, value| {
        let mut value = Some(value);
        let job = move |_: &Attempt| Ok::<_, ()>(value.take());
        held(bench.timer.retry_then(Backoff::new(after), job, |_| ()), by_handle)
    }),
    Holder::new("retry_then, its error", |bench, after, value| {
        let mut value = Some(value);
        let job = move |attempt: &Attempt| {
            attempt.give_up();
            Err::<(), _>(value.take())
        };
        held(bench.timer.retry_then(Backoff::new(after), job, drop), by_handle)
    }),
    Holder::new("retry_then, its job beside a listener that panics", |bench, after, value| {
        let job = job(value, |_| Ok(()));
        let then = |outcome| {
            if outcome == Retried::Success(()) {
                panic_quietly();
            }
        };
        held(bench.timer.retry_then(Backoff::new(after), job, then), by_handle)
    })
    .panics(2),
];

/// Two words or less are stored in the wheel itself.
fn once(value: Fragile) -> impl FnOnce(&Context<'_>) + Send + 'static {
    move |_| _ = &value
}

fn large(value: Fragile) -> impl FnOnce(&Context<'_>) + Send + 'static {
    let other = [1_u64; 8];
    move |_| {
        let _held = &value;
        assert_eq!(other.iter().sum::<u64>(), 8, "it is whole");
    }
}

fn many(value: Fragile) -> impl FnMut(&Context<'_>) + Send + 'static {
    move |_| _ = &value
}

fn cancelling(value: Fragile) -> impl FnMut(&Context<'_>) + Send + 'static {
    move |context| {
        let _held = &value;
        // After it was handed back, there is nothing to cancel.
        context.timeout().unwrap().cancel();
    }
}

fn panicking(value: Fragile) -> impl FnMut(&Context<'_>) + Send + 'static {
    move |_| {
        let _held = &value;
        panic_quietly();
    }
}

fn job(
    value: Fragile,
    tried: fn(u32) -> Result<(), ()>,
) -> impl FnMut(&Attempt) -> Result<(), ()> + Send + 'static {
    move |attempt| {
        let _held = &value;
        tried(attempt.number())
    }
}

fn every_second() -> Cron {
    Cron::parse("* * * * * *", "UTC").unwrap()
}

fn by_handle(timeout: Timeout) -> Handle {
    let moved = timeout.clone();
    let handle = Handle::default().cancel(move |_| assert!(timeout.cancel(), "it was pending"));
    handle.reschedule(move |_, after| moved.reschedule(after).unwrap())
}

fn by_key(key: Key) -> Handle {
    let handle = Handle::default().cancel(move |bench| assert!(bench.timer.cancel(key)));
    handle.reschedule(move |bench, after| bench.timer.reschedule(key, after).unwrap())
}

/// However the retry ended, it has an outcome.
fn by_retry<T: 'static, E: 'static>(retry: Retry<T, E>) -> Handle {
    let handle = by_handle(retry.timeout());
    handle.wait(move || {
        let outcome = retry.wait_within(20 * SECOND);
        assert!(outcome.is_ok(), "nobody is told the outcome");
    })
}
