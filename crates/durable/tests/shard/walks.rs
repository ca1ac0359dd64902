//! Requests over many rows read one page per turn, and other requests are served in between.

use super::*;
use tourbillon_durable::record::Generation;
use tourbillon_durable::shard::{Cancelled, Filter};

const PAGE: usize = 10;

/// Timers with near and far deadlines, due and leased, most with assigned keys and 50 with chosen ones.
fn filled() -> Driver {
    let mut driver = Driver::new(Limits { page: PAGE, ..Limits::default() });
    for secs in [0, 60, 7200, 86_400 * 40] {
        driver.schedule((0..50).map(|_| timer(None, in_secs(secs))).collect(), Conflict::Refuse);
    }
    let chosen = (0..50).map(|nth| timer(key(&format!("k{nth}")), in_secs(60))).collect();
    driver.schedule(chosen, Conflict::Refuse);
    assert_eq!(driver.receive(20).len(), 20);
    driver
}

/// Takes turns until a request is answered, sending another request in every turn. Returns the answer, and how many of
/// the other requests were answered before it.
fn amid_others(driver: &mut Driver, request: Request) -> (Answer, usize) {
    let (wall, steady) = (Moment::from_millis(driver.wall), Steady::from_millis(driver.wall));
    let mut inputs = vec![Input::Request(RequestId(1_000_000), request)];
    let mut others = 0;
    for nth in 0..1000 {
        let turn = driver.shard.turn(wall, steady, inputs);
        let answers;
        (inputs, answers) = driver.perform(turn.effects);
        let much = |input: &Input| matches!(input, Input::Loaded(_, Loaded::Rows(rows)) if rows.len() > PAGE);
        assert!(!inputs.iter().any(much), "more than a page is read: {inputs:?}");
        for (id, answer) in answers {
            if id == RequestId(1_000_000) {
                return (answer, others);
            }
            others += 1;
        }
        inputs.push(Input::Request(RequestId(2_000_000 + nth), Request::Queue(queue())));
    }
    panic!("no answer");
}

fn list(filter: Filter, driver: &mut Driver) -> (Vec<Key>, usize) {
    let request = Request::List { queue: queue(), filter, after: None, limit: 1000 };
    match amid_others(driver, request) {
        (Answer::List(views, None), others) => {
            (views.into_iter().map(|view| view.key).collect(), others)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn assigned_keys_are_listed_and_cancelled_a_page_at_a_time() {
    let mut driver = filled();
    let filter = Filter { prefix: Some("~".into()), ..Filter::default() };
    let (keys, others) = list(filter.clone(), &mut driver);
    assert!(keys.is_sorted() && keys.iter().all(Key::is_assigned));
    assert_eq!(keys.len(), 200);
    assert!(others >= 200 / PAGE, "{others} requests were answered meanwhile");
    let cancel = Request::CancelPrefix { queue: queue(), prefix: "~".into() };
    let (answer, others) = amid_others(&mut driver, cancel);
    assert_eq!(answer, Answer::Many(Many { done: 180, delivering: 20, more: false }));
    assert!(others >= 200 / PAGE, "{others} requests were answered meanwhile");
    driver.run(Vec::new());
    assert!(list(filter, &mut driver).0.is_empty());
    assert_eq!(driver.counts().scheduled, 50, "those with another key");
}

#[test]
fn what_is_done_is_listed_without_a_look_at_what_is_not() {
    let mut driver = filled();
    let keys: Vec<Key> = (0..25).map(|nth| key(&format!("k{nth}")).unwrap()).collect();
    let cancel = Request::Cancel { queue: queue(), keys, only: None };
    assert_eq!(driver.ask(cancel), Answer::Cancelled(vec![Cancelled::Cancelled; 25]));
    let filter = Filter { state: Some(State::Cancelled), ..Filter::default() };
    let before = driver.rows;
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let (queue, filter) = (queue(), filter.clone());
        match driver.ask(Request::List { queue, filter, after, limit: 7 }) {
            Answer::List(views, next) => {
                listed.extend(views.into_iter().map(|view| view.key));
                after = next;
            }
            other => panic!("{other:?}"),
        }
        if after.is_none() {
            break;
        }
    }
    listed.sort();
    listed.dedup();
    assert_eq!(listed.len(), 25);
    assert!(driver.rows - before <= 50, "{} rows were read", driver.rows - before);
}

/// Timers become due while they are listed, and change their place. No client changes them, so each is listed once.
#[test]
fn a_list_meets_each_timer_once_while_time_passes() {
    // The timers due by then change their place while the first pages are read.
    for (begin, step) in
        [(0, 0), (0, 900), (0, 3000), (30_000, 0), (3_600_000, 0), (3_600_000, 900)]
    {
        let mut driver = Driver::new(Limits { page: PAGE, ..Limits::default() });
        driver.schedule((1..100).map(|nth| timer(None, in_secs(nth))).collect(), Conflict::Refuse);
        let (mut listed, mut inputs, mut after) = (Vec::new(), Vec::new(), None);
        driver.wall += begin;
        for page in 0.. {
            let list = Request::List { queue: queue(), filter: Filter::default(), after, limit: 7 };
            inputs.push(Input::Request(RequestId(1000 + page), list));
            let next = loop {
                driver.wall += step;
                let now = Moment::from_millis(driver.wall);
                let steady = Steady::from_millis(driver.wall);
                let turn = driver.shard.turn(now, steady, inputs);
                let answers;
                (inputs, answers) = driver.perform(turn.effects);
                match answers.into_iter().next() {
                    Some((_, Answer::List(views, next))) => {
                        listed.extend(views.into_iter().map(|view| view.generation));
                        break next;
                    }
                    other => assert_eq!(other, None),
                }
            };
            after = next;
            if after.is_none() {
                break;
            }
        }
        let generations: Vec<_> = (0..99).map(Generation).collect();
        assert_eq!(listed, generations, "{begin} ms at first, {step} ms in each turn");
    }
}

/// A timer returns to a place that was already read, from one that was not.
#[test]
fn a_cancel_says_that_there_may_be_more_if_a_timer_has_gone_back() {
    let mut driver = Driver::new(Limits { page: PAGE, ..Limits::default() });
    driver.schedule(vec![timer(None, in_secs(0)), timer(None, in_secs(7200))], Conflict::Refuse);
    let tokens = driver.receive(1);
    let (wall, steady) = (Moment::from_millis(driver.wall), Steady::from_millis(driver.wall));
    let cancel = Request::CancelPrefix { queue: queue(), prefix: "~".into() };
    let turn =
        driver.shard.turn(wall, steady, vec![Input::Request(RequestId(1000), cancel.clone())]);
    let [Effect::Load(id, query)] = &turn.effects[..] else { panic!("{:?}", turn.effects) };
    let page = Input::Loaded(*id, driver.store.load(query).unwrap());
    let turn = driver.shard.turn(wall, steady, vec![page]);
    // The bucket was read; the waiting and the leased rows were not.
    let nack = Verdict::Nack(Some(Span::from_secs(7200)), None);
    let nacked = Request::Settle { queue: queue(), tokens, verdict: nack };
    let (mut inputs, _) = driver.perform(turn.effects);
    inputs.insert(0, Input::Request(RequestId(1001), nacked));
    let answers = driver.run(inputs);
    let many = answers.iter().find_map(|answer| match answer {
        Answer::Many(many) => Some(*many),
        _ => None,
    });
    assert_eq!(many, Some(Many { done: 1, delivering: 0, more: true }));
    assert_eq!(driver.ask(cancel), Answer::Many(Many { done: 1, delivering: 0, more: false }));
}
