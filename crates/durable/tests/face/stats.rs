//! The statistics of a queue: counts, the most overdue timer, the next timer, and lateness.

use tourbillon_durable::values::Span;
use tourbillon_durable::{Conflict, Lateness, Limits, Queue, Stats};

use crate::{SECOND, memory, memory_with, seconds, take};

fn stats(queue: &Queue) -> Stats {
    queue.stats().wait().unwrap().expect("the queue is there")
}

#[test]
fn next_and_oldest_are_exact_wherever_the_timers_are() {
    for page in [1, 1000] {
        let limits = Limits { page, waiting: page, window: 3, ..Limits::default() };
        let (clock, durable, queue) = memory_with(limits);
        let other = durable.queue("other").unwrap();
        assert_eq!(queue.stats().wait(), Ok(None));
        let begin = durable.now();
        let after = |seconds: u64| Some(begin + Span::from_secs(seconds));
        let delays = [90 * 86_400, 3 * 86_400, 7200, 7201, 700, 20];
        let mut least = u64::MAX;
        for delay in delays {
            queue.schedule(seconds(delay).key(format!("{delay}")).unwrap()).wait().unwrap();
            other.schedule(seconds(delay / 2 + 1)).wait().unwrap();
            least = least.min(delay);
            assert_eq!(stats(&queue).next, after(least));
        }
        assert_eq!(stats(&queue).oldest_due, None);
        for (cancel, next) in [(20, 700), (7200, 700), (700, 7201), (7201, 3 * 86_400)] {
            queue.cancel(format!("{cancel}")).wait().unwrap();
            assert_eq!(stats(&queue).next, after(next), "{cancel} is cancelled");
            assert_eq!(stats(&queue).next, after(next), "the same again");
        }
        clock.advance(4 * 86_400 * SECOND).unwrap();
        let late = stats(&queue);
        assert_eq!((late.next, late.oldest_due), (after(90 * 86_400), after(3 * 86_400)));
        assert_eq!((late.counts.scheduled, late.counts.due), (1, 1));
        for delay in [0, 0, 5] {
            queue.schedule(seconds(delay)).wait().unwrap();
        }
        clock.advance(SECOND).unwrap();
        assert_eq!(stats(&queue).next, after(4 * 86_400 + 5));
        // A receive may return only one page.
        for _ in 0..3 {
            take(&queue).into_iter().for_each(|delivery| drop(delivery.ack()));
        }
        assert_eq!(stats(&queue).oldest_due, None);
        queue.cancel(format!("{}", 90 * 86_400)).wait().unwrap();
        clock.advance(5 * SECOND).unwrap();
        let last = stats(&queue);
        assert_eq!((last.next, last.oldest_due), (None, after(4 * 86_400 + 5)));
    }
}

#[test]
fn lateness_and_rate_are_those_of_the_last_minute() {
    let (clock, _durable, queue) = memory();
    let timers = (0..60).map(|_| seconds(10)).collect();
    queue.schedule_all(timers, Conflict::Refuse).wait().unwrap();
    assert_eq!(stats(&queue).lateness, Lateness::default());
    clock.advance(10 * SECOND).unwrap();
    let on_time = queue.receive(59, SECOND).wait().unwrap();
    clock.advance(30 * SECOND).unwrap();
    let late = queue.receive(1, SECOND).wait().unwrap();
    let ms = Span::from_millis;
    let found = stats(&queue);
    assert_eq!(found.lateness, Lateness { p50: ms(0), p99: ms(30_000), max: ms(30_000) });
    assert_eq!((found.per_second, found.settings.paused), (1.0, false));
    for delivery in on_time.into_iter().chain(late) {
        delivery.ack().wait().unwrap();
    }
    clock.advance(60 * SECOND).unwrap();
    let found = stats(&queue);
    assert_eq!((found.lateness, found.per_second), (Lateness::default(), 0.0));
    queue.pause().wait().unwrap();
    assert!(stats(&queue).settings.paused);
}
