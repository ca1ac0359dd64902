//! Timers that are due without a taker: missed moments, and expiry.

use tourbillon_durable::values::{Missed, Moment, Retry, Span};
use tourbillon_durable::{Limits, Nack, NewTimer, Queue, State};

use crate::{SECOND, memory, memory_with, seconds, take};

const HOUR: u64 = 3600;

fn hourly(missed: Missed) -> NewTimer {
    NewTimer::every(3600 * SECOND).unwrap().missed(missed).key(format!("{missed:?}")).unwrap()
}

/// Schedules one hourly timer per policy, then pauses the queue for four and a half hours.
fn paused(queue: &Queue, clock: &tourbillon::VirtualClock) {
    for missed in [Missed::Skip, Missed::Once, Missed::All] {
        queue.schedule(hourly(missed)).wait().unwrap();
    }
    queue.pause().wait().unwrap();
    clock.advance((4 * HOUR + HOUR / 2) as u32 * SECOND).unwrap();
}

fn hours(queue: &Queue, begin: Moment, key: &str) -> u64 {
    queue.get(key).wait().unwrap().unwrap().due.since(begin).millis() / 3_600_000
}

#[test]
fn missed_moments_go_by_their_policy_when_a_queue_is_resumed() {
    for page in [1, 1000] {
        let limits = Limits { page, waiting: page, ..Limits::default() };
        let (clock, durable, queue) = memory_with(limits);
        let begin = durable.now();
        paused(&queue, &clock);
        assert_eq!(hours(&queue, begin, "Once"), 1, "nothing has happened yet");
        queue.resume().wait().unwrap();
        assert_eq!(hours(&queue, begin, "Skip"), 5, "the next to come");
        assert_eq!(hours(&queue, begin, "Once"), 4, "the latest that passed");
        assert_eq!(hours(&queue, begin, "All"), 1, "each in turn");
        let mut runs = Vec::new();
        loop {
            let due = take(&queue);
            if due.is_empty() {
                break;
            }
            for delivery in due {
                let hour = delivery.due().since(begin).millis() / 3_600_000;
                runs.push((delivery.key().to_owned(), hour, delivery.occurrence()));
                delivery.ack().wait().unwrap();
            }
        }
        let all = [1, 2, 3, 4].map(|hour| ("All".to_owned(), hour, hour));
        let once = ("Once".to_owned(), 4, 1);
        runs.sort();
        assert_eq!(runs, [&all[..], &[once]].concat());
        assert_eq!(queue.count().wait().unwrap().unwrap().scheduled, 3);
    }
}

#[test]
fn nobody_is_handed_a_moment_that_was_missed() {
    let (clock, durable, queue) = memory();
    let begin = durable.now();
    queue.schedule(hourly(Missed::Skip)).wait().unwrap();
    let waiting = queue.receive(1, 86_400 * SECOND);
    clock.set_wall(clock.wall_now() + (2 * HOUR + 60) as u32 * SECOND).unwrap();
    assert_eq!(queue.count().wait().unwrap().unwrap().scheduled, 1, "two hours were skipped");
    clock.advance(3600 * SECOND).unwrap();
    let [delivery] = waiting.wait().unwrap().try_into().unwrap();
    assert_eq!((delivery.due(), delivery.occurrence()), (begin + Span::from_secs(3 * HOUR), 1));
}

/// `run_now` decides a timer's position in the queue. A missed moment does not move it further ahead.
#[test]
fn what_was_run_keeps_its_place_when_a_moment_of_it_was_missed() {
    let (clock, durable, queue) = memory();
    let begin = durable.now();
    let minutely = NewTimer::every(60 * SECOND).unwrap().missed(Missed::Once);
    queue.schedule(minutely.key("run").unwrap()).wait().unwrap();
    queue.schedule(seconds(195).key("other").unwrap()).wait().unwrap();
    queue.pause().wait().unwrap();
    clock.advance(210 * SECOND).unwrap();
    queue.run_now("run").wait().unwrap();
    clock.advance(10 * SECOND).unwrap();
    queue.resume().wait().unwrap();
    let view = queue.get("run").wait().unwrap().unwrap();
    let after = |seconds| begin + Span::from_secs(seconds);
    assert_eq!((view.due, view.next_attempt), (after(180), after(210)));
    let keys: Vec<String> = take(&queue).iter().map(|one| one.key().to_owned()).collect();
    assert_eq!(keys, ["other", "run"]);
}

/// A moment in the past that a client sets is due at once, and does not count as missed. The next event treats the
/// timer like any other.
#[test]
fn a_moment_that_is_set_in_the_past_was_not_missed() {
    let (clock, durable, queue) = memory();
    clock.advance(86_400 * SECOND).unwrap();
    queue.pause().wait().unwrap();
    queue.resume().wait().unwrap();
    let now = durable.now();
    let back = |hours| now.back(Span::from_secs(hours * HOUR));
    for missed in [Missed::Skip, Missed::Once] {
        let due = || take(&queue).iter().map(|one| one.due()).collect::<Vec<_>>();
        queue.schedule(hourly(missed).first(back(3))).wait().unwrap();
        assert_eq!(due(), [back(3)], "{missed:?}: as it was made");
        let key = format!("{missed:?}");
        queue.cancel(&key).wait().unwrap();
        queue.replace(hourly(missed)).wait().unwrap();
        queue.reschedule(&key, back(5)).wait().unwrap();
        assert_eq!(
            queue.get(&key).wait().unwrap().unwrap().due,
            back(5),
            "{missed:?}: as it was moved"
        );
        queue.pause().wait().unwrap();
        queue.resume().wait().unwrap();
        let due = queue.get(&key).wait().unwrap().unwrap().due;
        assert_eq!(due, if missed == Missed::Skip { now + Span::from_secs(HOUR) } else { now });
        queue.cancel(&key).wait().unwrap();
    }
}

#[test]
fn what_is_a_little_late_was_not_missed() {
    let (clock, durable, queue) = memory();
    let due = durable.now() + Span::from_secs(HOUR);
    queue.schedule(hourly(Missed::Skip)).wait().unwrap();
    queue.pause().wait().unwrap();
    clock.advance((HOUR + 10) as u32 * SECOND).unwrap();
    queue.resume().wait().unwrap();
    assert_eq!(take(&queue)[0].due(), due);
}

#[test]
fn an_occurrence_that_nobody_takes_expires_in_a_paused_queue_too() {
    for waiting in [1, 1000] {
        let limits = Limits { waiting, page: waiting, ..Limits::default() };
        let (clock, _durable, queue) = memory_with(limits);
        queue.pause().wait().unwrap();
        for n in 0..5 {
            let timer = seconds(60).expires((30 + n) as u32 * SECOND).key(format!("{n}")).unwrap();
            queue.schedule(timer).wait().unwrap();
        }
        clock.advance(90 * SECOND).unwrap();
        assert_eq!(queue.count().wait().unwrap().unwrap().dead, 0, "the last moment counts");
        clock.advance(SECOND).unwrap();
        assert_eq!(queue.count().wait().unwrap().unwrap().dead, 1);
        clock.advance(5 * SECOND).unwrap();
        assert_eq!(queue.count().wait().unwrap().unwrap().dead, 5);
        queue.resume().wait().unwrap();
        assert!(take(&queue).is_empty());
    }
}

#[test]
fn no_attempt_starts_after_the_expiry() {
    let (clock, _durable, queue) = memory();
    let retry = Retry { first: Span::from_secs(HOUR), ..Retry::default() };
    let timer = seconds(0).expires(60 * SECOND).retry(retry).unwrap();
    queue.schedule(timer.clone().key("nacked").unwrap()).wait().unwrap();
    queue.schedule(timer.key("held").unwrap()).wait().unwrap();
    let [nacked, held] = take(&queue).try_into().unwrap();
    nacked.nack(Nack::because("busy")).wait().unwrap();
    let state = |key| queue.get(key).wait().unwrap().unwrap().state;
    clock.advance(29 * SECOND).unwrap();
    held.extend(40 * SECOND).wait().unwrap();
    clock.advance(32 * SECOND).unwrap();
    assert_eq!((state("nacked"), state("held")), (State::Dead, State::Delivering));
    clock.advance(10 * SECOND).unwrap();
    assert_eq!(state("held"), State::Dead, "when its lease ends");
    drop(held);
}

#[test]
fn a_recurring_timer_that_expires_goes_on_with_the_next() {
    let (clock, durable, queue) = memory();
    let begin = durable.now();
    let timer = NewTimer::every(3600 * SECOND).unwrap().expires(60 * SECOND).key("a").unwrap();
    queue.schedule(timer).wait().unwrap();
    clock.advance(3700 * SECOND).unwrap();
    let view = queue.get("a").wait().unwrap().unwrap();
    assert_eq!((view.due, view.occurrence), (begin + Span::from_secs(2 * HOUR), 2));
}
