//! Lanes: timers with a webhook go to delivery agents, all others to takers of their queue.

use std::sync::Arc;

use tourbillon_durable::shard::{
    Answer, Change, Conflict, Delivery, Input, Limits, NewTimer, Opened, Request, RequestId,
    Settled, Stale, State, Verdict, When,
};
use tourbillon_durable::values::{
    Missed, Moment, Payload, QueueName, Recurrence, Retry, Rhythm, Span, Webhook,
};

use crate::{Driver, MIDNIGHT, in_secs, key, queue, timer};

fn pushed(name: &str, when: When) -> NewTimer {
    let webhook = Webhook::new("http://localhost/").unwrap();
    NewTimer { webhook: Some(Some(Arc::new(webhook))), ..timer(key(name), when) }
}

/// A moment an hour ago.
fn past(n: u64) -> When {
    When::At(Moment::from_millis(MIDNIGHT - 3_600_000 + n))
}

impl Driver {
    fn push(&mut self, max: usize) -> Vec<Delivery> {
        let (wait, margin) = (Span::ZERO, Span::from_secs(5));
        match self.ask(Request::Push { max, wait, margin }) {
            Answer::Deliveries(deliveries) => deliveries,
            other => panic!("{other:?}"),
        }
    }

    fn schedule_in(&mut self, queue: &str, timers: Vec<NewTimer>) {
        let queue = QueueName::new(queue).unwrap();
        let request = Request::Schedule { queue, timers, conflict: Conflict::Refuse };
        let answer = self.ask(request);
        assert!(matches!(answer, Answer::Scheduled(_)), "{answer:?}");
    }

    fn set(&mut self, change: Change) {
        assert_eq!(self.ask(Request::Set { queue: queue(), change }), Answer::Done);
    }

    fn state_of(&mut self, name: &str) -> (State, u32) {
        match self.ask(Request::Get { queue: queue(), key: key(name).unwrap() }) {
            Answer::Timer(Some(view)) => (view.state, view.attempt),
            other => panic!("{other:?}"),
        }
    }

    /// Restarts the process, or reopens only the store, at that moment.
    fn again(self, wall: u64, opened: Opened) -> Self {
        let (store, limits) = (self.store, self.limits);
        Driver::open_as(store, limits, wall, opened)
    }
}

#[test]
fn each_lane_has_its_own_timers() {
    let mut driver = Driver::new(Limits::default());
    driver.schedule(
        vec![pushed("push", in_secs(0)), timer(key("pull"), in_secs(0))],
        Conflict::Refuse,
    );
    let [pull] = driver.receive(10).try_into().unwrap();
    assert_eq!(pull.key.as_str(), "pull");
    let [push] = driver.push(10).try_into().unwrap();
    assert_eq!((push.token.key.as_str(), push.queue), ("push", queue()));
    let lease = push.lease_until.since(push.handed);
    assert_eq!(lease, Span::from_secs(15), "the timeout and the margin");
    assert_eq!(driver.counts().delivering, 2);
}

#[test]
fn a_flood_in_one_lane_neither_hides_nor_delays_the_other() {
    for flood_is_push in [true, false] {
        let limits = Limits { waiting: 10, page: 5, window: 20, ..Limits::default() };
        let mut driver = Driver::new(limits);
        let one = |n: u64, push: bool| match push {
            true => pushed(&format!("push-{n}"), past(n)),
            false => timer(key(&format!("pull-{n}")), past(n)),
        };
        let flood = (0..500).map(|n| one(n, flood_is_push)).collect();
        driver.schedule(flood, Conflict::Refuse);
        driver.schedule(vec![one(1000, !flood_is_push)], Conflict::Refuse);
        // First with the timers in memory, then after a restart with the timers only in the store.
        for restart in [false, true] {
            if restart {
                let wall = driver.wall;
                driver = driver.again(wall, Opened::Started);
                driver.rows = 0;
            }
            let (taken, token) = match flood_is_push {
                true => (driver.receive(1).len(), driver.receive(1)),
                false => (
                    driver.push(1).len(),
                    driver.push(1).into_iter().map(|one| one.token).collect(),
                ),
            };
            assert_eq!((taken, token), (1, vec![]), "{flood_is_push}, {restart}");
            assert!(driver.rows <= 5, "{} rows were read", driver.rows);
            driver.pass_until(driver.wall + 60_000);
        }
        assert!(driver.shard.resident().waiting.count <= 10 + 2 * 5);
    }
}

#[test]
fn agents_serve_queues_in_turn() {
    let mut driver = Driver::new(Limits { waiting: 10, page: 5, ..Limits::default() });
    driver.schedule_in("flood", (0..100).map(|n| pushed(&format!("{n}"), past(n))).collect());
    for (queue, n) in [("b", 200), ("a", 300), ("z", 400)] {
        driver.schedule_in(queue, vec![pushed("1", past(n)), pushed("2", past(n))]);
    }
    let names = |taken: Vec<Delivery>| {
        let mut names: Vec<String> = taken.iter().map(|one| one.queue.to_string()).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(names(driver.push(4)), "a b flood z");
    assert_eq!(names(driver.push(2)) + " " + &names(driver.push(2)), "a b flood z");
    driver.schedule_in("other", (0..2).map(|n| pushed(&format!("{n}"), past(n))).collect());
    let ones: Vec<_> = (0..4).map(|_| names(driver.push(1))).collect();
    assert!(
        ones == ["flood", "other"].repeat(2) || ones == ["other", "flood"].repeat(2),
        "{ones:?}"
    );
    let keys: Vec<_> = driver.push(3).into_iter().map(|one| one.token.key.to_string()).collect();
    assert_eq!(keys, ["4", "5", "6"], "longest due first");
    // One page is resident at a time, so an answer may be short.
    let left = std::iter::from_fn(|| Some(driver.push(7).len()).filter(|&count| count > 0));
    assert_eq!(left.sum::<usize>(), 108 - 15);
}

/// A waiting agent receives a due timer even if its queue did not exist when the wait began.
#[test]
fn an_agent_waits_for_all_queues() {
    let mut driver = Driver::new(Limits::default());
    let (wait, margin) = (Span::from_secs(60), Span::ZERO);
    let push = |id| vec![Input::Request(RequestId(id), Request::Push { max: 5, wait, margin })];
    assert!(driver.run(push(900)).is_empty());
    driver.schedule_in("new", vec![pushed("a", in_secs(10))]);
    driver.wall += 9999;
    assert!(driver.run(vec![]).is_empty());
    driver.wall += 1;
    let answers = driver.run(vec![]);
    assert!(matches!(&answers[..], [Answer::Deliveries(all)] if all.len() == 1), "{answers:?}");
    assert!(driver.run(push(901)).is_empty());
    driver.wall += 60_000;
    let answers = driver.run(vec![]);
    // The lease of the first delivery has ended as well, so the timer is due again.
    assert!(matches!(&answers[..], [Answer::Deliveries(all)] if all.len() == 1), "{answers:?}");
    assert!(driver.run(push(902)).is_empty());
    driver.ask(Request::Leave(None, RequestId(902)));
    driver.schedule_in("new", vec![pushed("b", in_secs(0))]);
    assert_eq!(driver.push(1)[0].token.key.as_str(), "b", "nobody else has it");
}

/// A new process does not know the outcome of the old one's pushes, so it retries them at once. Pull leases keep
/// running.
#[test]
fn a_restart_tries_again_what_agents_had_and_keeps_other_leases() {
    let mut driver = Driver::new(Limits { page: 2, ..Limits::default() });
    // Two attempts: if the restart counted as a failed one, the first nack would be the last.
    let retry = Some(Retry { attempts: 2, ..Retry::default() });
    for n in 0..5 {
        let push = NewTimer { retry, ..pushed(&format!("push-{n}"), in_secs(0)) };
        let pull = NewTimer { retry, ..timer(key(&format!("pull-{n}")), in_secs(0)) };
        driver.schedule(vec![push, pull], Conflict::Refuse);
    }
    let before = driver.push(10);
    assert_eq!((before.len(), driver.receive(10).len()), (5, 5));
    let mut last = before[0].token.clone();
    for round in 2..5 {
        driver = driver.again(MIDNIGHT + 1, Opened::Started);
        assert_eq!(driver.counts().due, 5, "also before an agent comes");
        assert_eq!(driver.state_of("push-3"), (State::Due, round - 1));
        assert!(driver.receive(10).is_empty());
        let after = driver.push(10);
        assert_eq!((after.len(), after[4].token.attempt), (5, round));
        last = after[4].token.clone();
    }
    let refused = driver.settle(vec![last], Verdict::Nack(None, None));
    assert!(matches!(refused[..], [Ok(Settled::Again(_))]), "{refused:?}");
    let late = driver.settle(vec![before[0].token.clone()], Verdict::Ack);
    assert_eq!(late, [Err(Stale::HandedAgain)]);
}

/// The store fails and the process continues: its agents are at work.
#[test]
fn a_store_that_is_opened_anew_ends_no_lease_of_an_agent() {
    let mut driver = Driver::new(Limits::default());
    driver.schedule(vec![pushed("a", in_secs(0))], Conflict::Refuse);
    let tokens: Vec<_> = driver.push(1).into_iter().map(|one| one.token).collect();
    let mut driver = driver.again(MIDNIGHT + 1, Opened::Recovered);
    assert!(driver.push(1).is_empty());
    assert_eq!(driver.settle(tokens, Verdict::Ack), [Ok(Settled::Acked(None))]);
}

#[test]
fn what_is_given_up_at_once_is_dead_also_if_it_recurs() {
    let mut driver = Driver::new(Limits::default());
    let rhythm = Rhythm::every(Span::from_secs(60)).unwrap();
    let recurrence = Some(Recurrence { rhythm, missed: Missed::Once, until: None, times: None });
    let hourly = NewTimer { recurrence, ..pushed("a", in_secs(0)) };
    driver.schedule(vec![hourly], Conflict::Refuse);
    let tokens: Vec<_> = driver.push(1).into_iter().map(|one| one.token).collect();
    let gone = Verdict::GiveUp(Some("410".into()));
    assert_eq!(driver.settle(tokens.clone(), gone), [Ok(Settled::GivenUp(None))]);
    assert_eq!(driver.state_of("a"), (State::Dead, 1));
    assert_eq!(driver.settle(tokens, Verdict::Ack), [Err(Stale::GivenUp)]);
    driver.pass_until(MIDNIGHT + 600_000);
    assert!(driver.push(1).is_empty(), "it has no further occurrence");
    driver.ask(Request::Redrive { queue: queue(), prefix: None });
    let [again] = driver.push(1).try_into().unwrap();
    assert_eq!(again.token.attempt, 2);
    let next = Moment::from_millis(MIDNIGHT + 660_000);
    assert_eq!(driver.settle(vec![again.token], Verdict::Ack), [Ok(Settled::Acked(Some(next)))]);
}

/// A receiver may ask for a retry later than the backoff; the attempt counts as failed.
#[test]
fn a_refusal_may_say_when_beyond_the_backoff() {
    let mut driver = Driver::new(Limits::default());
    driver.schedule(vec![pushed("a", in_secs(0))], Conflict::Refuse);
    let tokens = driver.push(1).into_iter().map(|one| one.token).collect();
    let after = Span::from_secs(7200);
    let next = Moment::from_millis(MIDNIGHT) + after;
    let nack = Verdict::Nack(Some(after), Some("429".into()));
    assert_eq!(driver.settle(tokens, nack), [Ok(Settled::Again(next))]);
}

#[test]
fn a_release_makes_a_timer_due_at_once_and_uses_up_no_attempt() {
    let mut driver = Driver::new(Limits::default());
    let retry = Some(Retry { attempts: 1, ..Retry::default() });
    driver.schedule(vec![NewTimer { retry, ..pushed("a", in_secs(0)) }], Conflict::Refuse);
    for attempt in 1..5 {
        let [one] = driver.push(1).try_into().unwrap();
        assert_eq!(one.token.attempt, attempt);
        let now = Moment::from_millis(MIDNIGHT);
        let release = Verdict::Release(Span::ZERO);
        assert_eq!(driver.settle(vec![one.token], release), [Ok(Settled::Again(now))]);
    }
    // The delivery was released with a delay, so the timer is not due before that.
    let [one] = driver.push(1).try_into().unwrap();
    let later = Moment::from_millis(MIDNIGHT) + Span::from_secs(60);
    let release = Verdict::Release(Span::from_secs(60));
    assert_eq!(driver.settle(vec![one.token], release), [Ok(Settled::Again(later))]);
    assert!(driver.push(1).is_empty());
}

/// The lanes of a queue share its concurrency in turn.
#[test]
fn lanes_share_the_concurrency_of_their_queue() {
    let mut driver = Driver::new(Limits::default());
    driver.set(Change { concurrency: Some(Some(1)), ..Change::default() });
    let both =
        |n| [pushed(&format!("push-{n}"), past(n)), timer(key(&format!("pull-{n}")), past(n))];
    driver.schedule((0..20).flat_map(both).collect(), Conflict::Refuse);
    let (wait, lease, margin) = (Span::from_secs(60), Span::from_secs(30), Span::ZERO);
    let mut seen = String::new();
    let receive = Request::Receive { queue: queue(), max: 10, wait, lease };
    let mut inputs = vec![(700, Request::Push { max: 10, wait, margin }), (701, receive)];
    for id in 0..20 {
        let asked = inputs.drain(..).map(|(id, request)| Input::Request(RequestId(id), request));
        let answers = driver.run(asked.collect());
        let mut out = answers.into_iter().filter_map(|answer| match answer {
            Answer::Deliveries(mut deliveries) => deliveries.pop(),
            _ => None,
        });
        let one = out.next().expect("one at a time");
        assert!(out.next().is_none());
        let push = one.webhook.is_some();
        seen.push(if push { '>' } else { '<' });
        let receive = Request::Receive { queue: queue(), max: 10, wait, lease };
        let poll = if push { Request::Push { max: 10, wait, margin } } else { receive };
        let ack =
            Request::Settle { queue: queue(), tokens: vec![one.token], verdict: Verdict::Ack };
        inputs = vec![(800 + id, poll), (900 + id, ack)];
    }
    assert!(seen == "><".repeat(10) || seen == "<>".repeat(10), "{seen}");
}

/// Beyond the byte limit a line may hold one timer in memory; all timers are still handed out.
#[test]
fn waiting_timers_are_limited_in_bytes() {
    let limits = Limits { waiting_bytes: 100_000, page: 4, ..Limits::default() };
    let mut driver = Driver::new(limits);
    let payload: Payload = std::sync::Arc::<[u8]>::from([0; 10_000]).into();
    let large =
        |n: u64| NewTimer { payload: payload.clone(), ..pushed(&n.to_string(), in_secs(0)) };
    driver.schedule((0..100).map(large).collect(), Conflict::Refuse);
    let mut handed = 0;
    while handed < 100 {
        let bytes = driver.shard.resident().waiting.bytes;
        assert!(bytes <= 120_000, "{bytes}");
        let deliveries = driver.push(7);
        assert!(!deliveries.is_empty(), "after {handed}");
        handed += deliveries.len();
    }
}
