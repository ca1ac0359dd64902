//! The verbs that arm and move callbacks, values and conditions: the rows of `durations.rs`, except for futures.

use std::time::Duration;

use tourbillon::{
    Attempt, Backoff, DelayQueue, Engine, Key, KeyedTimer, Missed, Operation, Outcome, Purgatory,
    Repeat, Retried, Timeout, Timer, WaitError,
};

use crate::bench::{Armed, Bench, END, Ring, Row, Rung, Span, row};
use crate::common::{SECOND, YEAR};

pub(crate) const ROWS: &[Row] = &[
    row("Timer::schedule", |bench, span| {
        handle(bench, |timer, ring| timer.schedule(span.after, ring).unwrap())
    }),
    row("Timer::schedule_at", |bench, span| {
        handle(bench, |timer, ring| timer.schedule_at(span.at, ring).unwrap())
    }),
    row("Timer::arm", |bench, span| key(bench, |timer, ring| timer.arm(span.after, ring).unwrap())),
    row("Timer::arm_at", |bench, span| {
        key(bench, |timer, ring| timer.arm_at(span.at, ring).unwrap())
    }),
    row("Timer::compute", |bench, span| {
        handle(bench, |timer, ring| timer.compute(span.after, ring).unwrap().timeout().clone())
    }),
    row("Timer::schedule_repeating", |bench, span| {
        handle(bench, |timer, ring| timer.schedule_repeating(span.after, ring).unwrap())
    }),
    row("Timer::schedule_repeating_at", |bench, span| {
        handle(bench, |timer, ring| timer.schedule_repeating_at(span.at, ring).unwrap())
    }),
    row("Timer::schedule_wall", |bench, span| {
        handle(bench, |timer, ring| timer.schedule_wall(span.wall, ring).unwrap())
    }),
    row("Timer::schedule_wall_every", |bench, span| {
        handle(bench, |timer, ring| {
            timer.schedule_wall_every(span.wall, Duration::MAX, ring).unwrap()
        })
    }),
    row("Timer::reschedule", |bench, span| {
        key(bench, |timer, ring| {
            let key = timer.arm(elsewhere(span), ring).unwrap();
            timer.reschedule(key, span.after).unwrap();
            key
        })
    }),
    row("Timer::reschedule_at", |bench, span| {
        key(bench, |timer, ring| {
            let key = timer.arm(elsewhere(span), ring).unwrap();
            timer.reschedule_at(key, span.at).unwrap();
            key
        })
    }),
    row("Timeout::reschedule", |bench, span| {
        handle(bench, |timer, ring| {
            let timeout = timer.schedule(elsewhere(span), ring).unwrap();
            timeout.reschedule(span.after).unwrap();
            timeout
        })
    }),
    row("Timeout::reschedule_at", |bench, span| {
        handle(bench, |timer, ring| {
            let timeout = timer.schedule_repeating(elsewhere(span), ring).unwrap();
            timeout.reschedule_at(span.at).unwrap();
            timeout
        })
    }),
    row("Context::again", |bench, span| {
        let after = span.after;
        again(bench, move |context| context.again(after))
    })
    .in_two_ticks(),
    row("Context::again_at", |bench, span| {
        let at = span.at;
        again(bench, move |context| context.again_at(at))
    })
    .in_two_ticks(),
    row("Repeat::every", |bench, span| {
        repeating(bench, Repeat::every(span.after).missed(Missed::Skip))
    })
    .in_two_ticks(),
    row("Repeat::after_each", |bench, span| repeating(bench, Repeat::after_each(span.after)))
        .in_two_ticks(),
    row("Repeat::first", |bench, span| {
        repeating(bench, Repeat::every(YEAR * 200).first(span.after))
    }),
    row("Repeat::first_at", |bench, span| {
        repeating(bench, Repeat::every(YEAR * 200).first_at(span.at))
    }),
    row("Repeat::first_wall", |bench, span| {
        repeating(bench, Repeat::every(YEAR * 200).first_wall(span.wall))
    }),
    row("Backoff::new", |bench, span| {
        second_try(bench, Backoff::new(span.after).most(Duration::MAX))
    })
    .in_two_ticks(),
    row("Backoff::most", |bench, span| {
        second_try(bench, Backoff::new(Duration::MAX).most(span.after))
    })
    .in_two_ticks(),
    row("Backoff::within", |bench, span| {
        let first = if span.far { YEAR } else { span.after };
        gives_up(bench, Backoff::new(first).factor(1.0).most(YEAR).within(span.after))
    })
    .in_two_ticks(),
    row("KeyedTimer::schedule", |bench, span| {
        keyed(bench, |timers, ring| assert!(!timers.schedule("key", span.after, ring).unwrap()))
    }),
    row("KeyedTimer::schedule_if_absent", |bench, span| {
        keyed(bench, |timers, ring| {
            let back = timers.schedule_if_absent("key", span.after, ring).unwrap();
            assert!(back.is_none());
        })
    }),
    row("KeyedTimer::reschedule", |bench, span| {
        keyed(bench, |timers, ring| {
            timers.schedule("key", elsewhere(span), ring).unwrap();
            timers.reschedule("key", span.after).unwrap();
        })
    }),
    row("Engine::schedule", |bench, span| {
        delivered(bench, |engine| engine.schedule(span.after, 7).unwrap())
    }),
    row("Engine::schedule_at", |bench, span| {
        delivered(bench, |engine| engine.schedule_at(span.at, 7).unwrap())
    }),
    row("Engine::reschedule", |bench, span| {
        delivered(bench, |engine| {
            let key = engine.schedule(elsewhere(span), 7).unwrap();
            engine.reschedule(key, span.after).unwrap();
            key
        })
    }),
    row("Engine::reschedule_at", |bench, span| {
        delivered(bench, |engine| {
            let key = engine.schedule(elsewhere(span), 7).unwrap();
            engine.reschedule_at(key, span.at).unwrap();
            key
        })
    }),
    row("DelayQueue::put", |bench, span| queued(bench, |queue| queue.put(span.after, 7).unwrap()))
        .at_once(),
    row("DelayQueue::put_at", |bench, span| {
        queued(bench, |queue| queue.put_at(span.at, 7).unwrap())
    })
    .at_once(),
    row("DelayQueue::extend", |bench, span| {
        queued(bench, |queue| {
            queue.extend([(span.after, 7)]);
            queue.peek().unwrap().key
        })
    })
    .at_once(),
    row("DelayQueue::reschedule", |bench, span| {
        queued(bench, |queue| {
            let key = queue.put(elsewhere(span), 7).unwrap();
            queue.reschedule(key, span.after).unwrap();
            key
        })
    })
    .at_once(),
    row("DelayQueue::reschedule_at", |bench, span| {
        queued(bench, |queue| {
            let key = queue.put(elsewhere(span), 7).unwrap();
            queue.reschedule_at(key, span.at).unwrap();
            key
        })
    })
    .at_once(),
    row("Purgatory::try_complete_else_watch", |bench, span| {
        let expired = Rung::new();
        let operation = Expires(expired.clone());
        let purgatory = Purgatory::new(&bench.timer);
        let outcome = purgatory.try_complete_else_watch(operation, [1, 2], span.after).unwrap();
        assert_eq!(outcome, Outcome::Watched);
        waiting(bench, expired, purgatory)
    }),
    row("Purgatory::watch", |bench, span| {
        let expired = Rung::new();
        let purgatory = Purgatory::new(&bench.timer);
        drop(purgatory.watch(Expires(expired.clone()), [1, 2], span.after).unwrap());
        waiting(bench, expired, purgatory)
    }),
    row("Purgatory::when", |bench, span| {
        let (expired, own) = (Rung::new(), Rung::new());
        let purgatory: Purgatory<u32> = Purgatory::new(&bench.timer);
        let told = expired.clone();
        let then = move |outcome: Result<(), WaitError>| {
            assert_eq!(own.add(), 1, "told once");
            if outcome == Err(WaitError::Expired) {
                told.add();
            }
        };
        purgatory.when([1, 2], span.after, || None::<()>, then).unwrap();
        waiting(bench, expired, purgatory)
    }),
];

/// A delay far from the one that the timer is moved to.
fn elsewhere(span: &Span) -> Duration {
    if span.far { SECOND } else { Duration::MAX }
}

/// A timer armed on the bench's timer, and how to cancel it.
pub(crate) fn armed(
    bench: &Bench,
    fired: impl FnMut() -> bool + Send + 'static,
    cancel: impl FnMut() -> bool + Send + 'static,
) -> Armed {
    let timer = bench.timer.clone();
    let stop = move || {
        timer.stop();
        timer.is_empty()
    };
    Armed { fired: Box::new(fired), cancel: Box::new(cancel), stop: Box::new(stop) }
}

fn handle(bench: &Bench, arm: impl FnOnce(&Timer, Ring) -> Timeout) -> Armed {
    let rung = Rung::new();
    let timeout = arm(&bench.timer, rung.ring());
    bench.holds(timeout.deadline());
    assert!(timeout.remaining() <= Some(END));
    armed(bench, move || rung.count() > 0, move || timeout.cancel())
}

fn key(bench: &Bench, arm: impl FnOnce(&Timer, Ring) -> Key) -> Armed {
    let (rung, timer) = (Rung::new(), bench.timer.clone());
    let key = arm(&timer, rung.ring());
    bench.holds(timer.deadline(key));
    armed(bench, move || rung.count() > 0, move || timer.cancel(key))
}

/// The first run arms the second.
fn again(
    bench: &Bench,
    mut next: impl FnMut(&tourbillon::Context<'_>) -> bool + Send + 'static,
) -> Armed {
    let rung = Rung::new();
    let own = rung.clone();
    let callback = move |context: &tourbillon::Context<'_>| {
        if own.add() == 1 {
            assert!(next(context));
        }
    };
    let timeout = bench.timer.schedule_repeating(Duration::ZERO, callback).unwrap();
    armed(bench, move || rung.count() > 1, move || timeout.cancel())
}

fn repeating(bench: &Bench, repeat: Repeat) -> Armed {
    handle(bench, |timer, ring| timer.repeat(repeat, ring).unwrap())
}

/// The first try fails.
fn second_try(bench: &Bench, backoff: Backoff) -> Armed {
    let job = |attempt: &Attempt| match attempt.number() {
        2 => Ok(()),
        _ => Err(()),
    };
    retried(bench, backoff.factor(1.0), job, |outcome| outcome == Retried::Success(()))
}

fn gives_up(bench: &Bench, backoff: Backoff) -> Armed {
    let fails = |_: &Attempt| Err(());
    retried(bench, backoff, fails, |outcome| matches!(outcome, Retried::GaveUp { .. }))
}

/// Fires with the expected outcome.
fn retried(
    bench: &Bench,
    backoff: Backoff,
    job: fn(&Attempt) -> Result<(), ()>,
    expected: fn(Retried<(), ()>) -> bool,
) -> Armed {
    let (over, told) = (Rung::new(), Rung::new());
    let own = over.clone();
    let then = move |outcome| {
        assert_eq!(told.add(), 1, "told once");
        if expected(outcome) {
            own.add();
        }
    };
    let timeout = bench.timer.retry_then(backoff, job, then).unwrap();
    armed(bench, move || over.count() > 0, move || timeout.cancel())
}

fn keyed(bench: &Bench, arm: impl FnOnce(&KeyedTimer<&'static str>, Ring)) -> Armed {
    let (rung, timers) = (Rung::new(), KeyedTimer::new(&bench.timer));
    arm(&timers, rung.ring());
    bench.holds(timers.deadline("key"));
    armed(bench, move || rung.count() > 0, move || timers.cancel("key"))
}

fn delivered(bench: &Bench, arm: impl FnOnce(&Engine<u32>) -> Key) -> Armed {
    let rung = Rung::new();
    let own = rung.clone();
    let handler = move |batch: tourbillon::Batch<'_, u32>| batch.for_each(|_| _ = own.add());
    let engine = bench.builder().deliver(handler).unwrap();
    let key = arm(&engine);
    bench.holds(engine.deadline(key));
    let other = engine.clone();
    Armed {
        fired: Box::new(move || rung.count() > 0),
        cancel: Box::new(move || engine.cancel(key) == Some(7)),
        stop: Box::new(move || {
            other.stop();
            other.is_empty()
        }),
    }
}

fn queued(bench: &Bench, put: impl FnOnce(&DelayQueue<u32>) -> Key) -> Armed {
    let queue = bench.builder().queue().unwrap();
    let key = put(&queue);
    bench.holds(queue.deadline(key));
    let (other, third) = (queue.clone(), queue.clone());
    Armed {
        fired: Box::new(move || queue.try_take() == Ok(7)),
        cancel: Box::new(move || other.remove(key) == Some(7)),
        stop: Box::new(move || {
            third.close();
            third.is_empty()
        }),
    }
}

/// An operation that is never completed.
struct Expires(Rung);

impl Operation for Expires {
    fn try_complete(&mut self) -> bool {
        false
    }

    fn on_complete(self) {
        unreachable!("its condition never holds")
    }

    fn on_expire(self) {
        self.0.add();
    }
}

/// Waits under the keys 1 and 2.
fn waiting<O: Operation>(bench: &Bench, expired: Rung, purgatory: Purgatory<u32, O>) -> Armed {
    let taken = move || {
        let before = purgatory.delayed();
        purgatory.cancel_key(&1);
        (before, purgatory.delayed()) == (1, 0)
    };
    armed(bench, move || expired.count() > 0, taken)
}
