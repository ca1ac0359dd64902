//! The shard on a store in memory, with a minimal runtime: its costs, and its behaviour for a caller.

mod discard;
mod lanes;
mod queues;
mod set_back;
mod walks;

use tourbillon_durable::memory::MemoryStore;
use tourbillon_durable::shard::{
    Answer, Conflict, Counts, Effect, Input, Limits, Many, NewTimer, Opened, Outcome, Request,
    RequestId, Scheduled, Settled, Shard, Stale, State, Token, Turn, Verdict, When,
};
use tourbillon_durable::store::{Loaded, Query, Store};
use tourbillon_durable::values::{
    Key, Missed, Moment, Payload, QueueName, Recurrence, Rhythm, Span, Steady,
};

/// 2026-11-17T00:00:00Z.
const MIDNIGHT: u64 = 1_794_873_600_000;

/// Executes effects at once.
struct Driver {
    shard: Shard,
    store: MemoryStore,
    epoch: u64,
    wall: u64,
    requests: u64,
    wake: Option<Moment>,
    turns: u64,
    /// The number of rows loaded.
    rows: usize,
    /// The largest number of resident timers in the window.
    most: u64,
    damage: Damage,
    limits: Limits,
}

/// The effect of a row whose key begins with `bad` on its page.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    None,
    /// The row is left out.
    LeftOut,
    /// The page cannot be read.
    Refused,
}

impl Driver {
    fn new(limits: Limits) -> Self {
        Driver::open(MemoryStore::new(), limits, MIDNIGHT)
    }

    fn open(store: MemoryStore, limits: Limits, wall: u64) -> Self {
        Driver::open_as(store, limits, wall, Opened::Started)
    }

    fn open_as(store: MemoryStore, limits: Limits, wall: u64, opened: Opened) -> Self {
        Driver::open_damaged(store, limits, wall, (opened, Damage::None))
    }

    fn open_damaged(
        mut store: MemoryStore,
        limits: Limits,
        wall: u64,
        (opened, damage): (Opened, Damage),
    ) -> Self {
        let head = store.open().unwrap();
        let epoch = head.epoch;
        let now = (Moment::from_millis(wall), Steady::default());
        let shard = Shard::open(head, limits, opened, now);
        let mut driver = Driver {
            shard,
            store,
            epoch,
            wall,
            requests: 0,
            wake: None,
            turns: 0,
            rows: 0,
            most: 0,
            damage,
            limits,
        };
        driver.run(Vec::new());
        driver
    }

    /// Takes turns until nothing is left to do at this moment.
    fn run(&mut self, mut inputs: Vec<Input>) -> Vec<Answer> {
        let mut answers = Vec::new();
        loop {
            self.turns += 1;
            let now = Moment::from_millis(self.wall);
            let Turn { effects, wall, .. } =
                self.shard.turn(now, Steady::from_millis(self.wall), inputs);
            self.wake = wall;
            self.most = self.most.max(self.shard.resident().window);
            let answered;
            (inputs, answered) = self.perform(effects);
            answers.extend(answered.into_iter().map(|(_, answer)| answer));
            if inputs.is_empty() && wall.is_none_or(|wall| wall > now) {
                return answers;
            }
        }
    }

    /// Carries out the effects of a turn. Returns the inputs of the next turn, and the answers.
    fn perform(&mut self, effects: Vec<Effect>) -> (Vec<Input>, Vec<(RequestId, Answer)>) {
        let (mut inputs, mut answers) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Commit(id, ops) => {
                    self.store.commit(self.epoch, &ops).unwrap();
                    inputs.push(Input::Committed(id));
                }
                Effect::Load(id, query) => {
                    let mut loaded = self.store.load(&query).unwrap();
                    if let (Loaded::Rows(rows), true) = (&mut loaded, self.damage != Damage::None) {
                        let before = rows.len();
                        rows.retain(|(_, row)| !row.spec.key.as_str().starts_with("bad"));
                        if rows.len() < before && self.damage == Damage::Refused {
                            inputs.push(Input::Damaged(id, "a page".into()));
                            continue;
                        }
                    }
                    if let (Loaded::Rows(rows), false) = (&loaded, matches!(query, Query::Keys(_)))
                    {
                        self.rows += rows.len();
                    }
                    inputs.push(Input::Loaded(id, loaded));
                }
                Effect::Answer(id, answer) => answers.push((id, answer)),
            }
        }
        (inputs, answers)
    }

    fn ask(&mut self, request: Request) -> Answer {
        self.requests += 1;
        let mut answers = self.run(vec![Input::Request(RequestId(self.requests), request)]);
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    /// Lets time pass, with a turn whenever the shard has requested one.
    fn pass_until(&mut self, wall: u64) {
        while let Some(wake) = self.wake.filter(|wake| wake.millis() <= wall) {
            self.wall = self.wall.max(wake.millis());
            self.run(Vec::new());
        }
        self.wall = wall;
    }

    fn schedule(&mut self, timers: Vec<NewTimer>, conflict: Conflict) -> Vec<Scheduled> {
        match self.ask(Request::Schedule { queue: queue(), timers, conflict }) {
            Answer::Scheduled(receipts) => receipts,
            other => panic!("{other:?}"),
        }
    }

    fn receive(&mut self, max: usize) -> Vec<Token> {
        let (wait, lease) = (Span::ZERO, Span::from_secs(30));
        match self.ask(Request::Receive { queue: queue(), max, wait, lease }) {
            Answer::Deliveries(deliveries) => {
                deliveries.into_iter().map(|delivery| delivery.token).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn settle(&mut self, tokens: Vec<Token>, verdict: Verdict) -> Vec<Result<Settled, Stale>> {
        match self.ask(Request::Settle { queue: queue(), tokens, verdict }) {
            Answer::Settled(settled) => settled,
            other => panic!("{other:?}"),
        }
    }

    fn counts(&mut self) -> Counts {
        match self.ask(Request::Queue(queue())) {
            Answer::Queue(Some((counts, _))) => counts,
            other => panic!("{other:?}"),
        }
    }
}

fn queue() -> QueueName {
    QueueName::new("orders").unwrap()
}

fn key(name: &str) -> Option<Key> {
    Some(Key::chosen(name).unwrap())
}

fn timer(key: Option<Key>, when: When) -> NewTimer {
    NewTimer {
        key,
        when,
        payload: Payload::bytes("payload"),
        recurrence: None,
        remember: None,
        retry: None,
        expires: None,
        webhook: None,
    }
}

fn in_secs(secs: u64) -> When {
    When::In(Span::from_secs(secs))
}

#[test]
fn a_timer_is_handed_out_at_its_moment_and_acknowledged_once() {
    let mut driver = Driver::new(Limits::default());
    driver.schedule(vec![timer(key("order-17"), in_secs(90))], Conflict::Refuse);
    driver.pass_until(MIDNIGHT + 89_999);
    assert!(driver.receive(10).is_empty(), "never early");
    assert_eq!(driver.wake, Some(Moment::from_millis(MIDNIGHT + 90_000)));
    driver.pass_until(MIDNIGHT + 90_000);
    assert_eq!(driver.counts(), Counts { due: 1, ..Counts::default() });
    let tokens = driver.receive(10);
    assert_eq!(tokens.len(), 1);
    assert_eq!(driver.counts(), Counts { delivering: 1, ..Counts::default() });
    assert_eq!(driver.settle(tokens.clone(), Verdict::Ack), [Ok(Settled::Acked(None))]);
    assert_eq!(driver.settle(tokens, Verdict::Ack), [Err(Stale::Acked)]);
    assert_eq!(driver.counts(), Counts::default());
    let again = Request::Schedule {
        queue: queue(),
        timers: vec![timer(key("order-17"), in_secs(1))],
        conflict: Conflict::Refuse,
    };
    assert_eq!(driver.ask(again), Answer::KeyTaken(0, State::Done), "its key is remembered");
}

#[test]
fn far_timers_are_not_in_memory_and_counting_reads_none() {
    let mut driver = Driver::new(Limits::default());
    let far =
        |n: u64| timer(None, When::At(Moment::from_millis(MIDNIGHT + 86_400_000 + n * 60_000)));
    for batch in 0..20 {
        driver.schedule((0..5000).map(|n| far(batch * 5000 + n)).collect(), Conflict::Refuse);
    }
    assert_eq!(driver.shard.resident().window, 0);
    assert_eq!(driver.counts().scheduled, 100_000);
    let edges = (1..=3).map(|day| Moment::from_millis(MIDNIGHT + day * 86_400_000)).collect();
    let Answer::Forecast(pieces) = driver.ask(Request::Forecast { queue: queue(), edges }) else {
        panic!()
    };
    assert_eq!(pieces.iter().map(|piece| piece.2).collect::<Vec<_>>(), [1440, 1440]);
    assert_eq!((driver.rows, driver.most), (0, 0));
}

#[test]
fn a_restart_reads_the_window_and_not_the_rest() {
    let limits = Limits::default();
    let mut driver = Driver::new(limits);
    driver.schedule(
        (0..50_000).map(|n| timer(None, in_secs(200_000 + n))).collect(),
        Conflict::Refuse,
    );
    driver.schedule((0..100).map(|n| timer(None, in_secs(n + 1))).collect(), Conflict::Refuse);
    let Driver { store, wall, .. } = driver;
    let mut driver = Driver::open(store, limits, wall);
    assert_eq!(driver.rows, 100);
    assert_eq!(driver.counts().scheduled, 50_100);
    driver.pass_until(wall + 100_000);
    assert_eq!(driver.receive(1000).len(), 100);
}

#[test]
fn one_far_timer_costs_a_handful_of_turns_in_ten_years() {
    let mut driver = Driver::new(Limits::default());
    let due = MIDNIGHT + 3653 * 86_400_000 + 7;
    driver.schedule(vec![timer(None, When::At(Moment::from_millis(due)))], Conflict::Refuse);
    let before = driver.turns;
    driver.pass_until(due);
    let turns = driver.turns - before;
    assert!(turns <= 25, "split from an era to an hour, loaded, fired: {turns} turns");
    assert_eq!(driver.receive(1).len(), 1);
}

#[test]
fn a_crowded_hour_is_split_until_it_fits_the_window() {
    let limits = Limits { window: 100, page: 50, ..Limits::default() };
    let mut driver = Driver::new(limits);
    let crowd = |n: u64| timer(None, When::At(Moment::from_millis(MIDNIGHT + 7_200_000 + n * 100)));
    driver.schedule((0..5000).map(crowd).collect(), Conflict::Refuse);
    let mut received = 0;
    for second in 7_200..=7_800 {
        driver.pass_until(MIDNIGHT + second * 1000);
        let tokens = driver.receive(1000);
        received += tokens.len();
        driver.settle(tokens, Verdict::Ack);
        let due = 1 + (second - 7_200) * 10;
        assert_eq!(received as u64, due.min(5000), "none is late, none is early, at {second}");
    }
    assert!(driver.most <= 100, "{}", driver.most);
}

#[test]
fn waiting_timers_leave_memory_and_come_back_in_order() {
    let limits = Limits { waiting: 10, page: 5, window: 20, ..Limits::default() };
    let mut driver = Driver::new(limits);
    let past =
        |n: u64| timer(None, When::At(Moment::from_millis(MIDNIGHT - 1000 + (n * 37) % 500)));
    driver.schedule((0..500).map(past).collect(), Conflict::Refuse);
    assert!(driver.shard.resident().waiting.count <= 15);
    let mut seen = Vec::new();
    while seen.len() < 500 {
        let tokens = driver.receive(7);
        assert!(!tokens.is_empty());
        seen.extend(
            tokens
                .into_iter()
                .map(|token| token.key.as_str().split('-').nth(1).unwrap().to_owned()),
        );
    }
    assert!(seen.is_sorted(), "longest due first");
}

/// The batch adds a timer that evicts another one from memory, and also replaces that other one.
#[test]
fn a_batch_sees_its_keys_as_they_were_before_it() {
    let limits = Limits { waiting: 1, page: 1, ..Limits::default() };
    let mut driver = Driver::new(limits);
    let at = |secs: u64| When::At(Moment::from_millis(MIDNIGHT - secs * 1000));
    driver.schedule(vec![timer(key("a"), at(10))], Conflict::Refuse);
    let batch = vec![timer(None, at(20)), timer(key("a"), at(5))];
    let receipts = driver.schedule(batch, Conflict::Replace);
    assert!(matches!(receipts[1].outcome, Outcome::Replaced(_, State::Due)), "{receipts:?}");
}

#[test]
fn a_daily_timer_goes_by_its_expression_and_not_by_the_clock() {
    let mut driver = Driver::new(Limits::default());
    let rhythm = Rhythm::cron("30 9 * * *", "Europe/Berlin").unwrap();
    let recurrence = Some(Recurrence { rhythm, missed: Missed::Once, until: None, times: None });
    driver.schedule(
        vec![NewTimer { recurrence, ..timer(key("daily"), When::Rhythm) }],
        Conflict::Refuse,
    );
    for day in 0..3 {
        let due = MIDNIGHT + day * 86_400_000 + (8 * 60 + 30) * 60_000;
        driver.pass_until(due - 1);
        assert!(driver.receive(1).is_empty());
        driver.pass_until(due + 25_000);
        let tokens = driver.receive(1);
        assert_eq!(tokens[0].occurrence, day + 1);
        let next = Moment::from_millis(due + 86_400_000);
        assert_eq!(driver.settle(tokens, Verdict::Ack), [Ok(Settled::Acked(Some(next)))]);
    }
}

#[test]
fn what_comes_to_wait_while_a_page_is_loaded_is_bounded() {
    let limits = Limits { waiting: 4, page: 2, ..Limits::default() };
    let mut driver = Driver::new(limits);
    let past = |n: u64| timer(None, When::At(Moment::from_millis(MIDNIGHT - 1000 + n)));
    driver.schedule((0..20).map(past).collect(), Conflict::Refuse);
    let receive =
        Request::Receive { queue: queue(), max: 9, wait: Span::ZERO, lease: Span::from_secs(30) };
    let schedule = Request::Schedule {
        queue: queue(),
        timers: (0..50).map(past).collect(),
        conflict: Conflict::Refuse,
    };
    let mut pending = Vec::new();
    for (id, request) in [(1001, receive), (1002, schedule)] {
        let (now, steady) = (Moment::from_millis(driver.wall), Steady::from_millis(driver.wall));
        let turn = driver.shard.turn(now, steady, vec![Input::Request(RequestId(id), request)]);
        pending.extend(turn.effects);
        let waiting = driver.shard.resident().waiting.count;
        assert!(waiting <= limits.waiting as u64, "{waiting}");
    }
    assert!(
        pending.iter().any(|effect| matches!(effect, Effect::Load(_, Query::Waiting { .. }))),
        "a page is loaded"
    );
    let (inputs, _) = driver.perform(pending);
    let mut received = 0;
    for answer in driver.run(inputs) {
        if let Answer::Deliveries(deliveries) = answer {
            received += deliveries.len();
        }
    }
    while received < 70 {
        let more = driver.receive(9).len();
        assert!(more > 0, "{received} of 70");
        received += more;
    }
}

#[test]
fn an_extra_run_leaves_the_rhythm_as_it_was() {
    let mut driver = Driver::new(Limits::default());
    let rhythm = Rhythm::every(Span::from_secs(3600)).unwrap();
    let recurrence = Some(Recurrence { rhythm, missed: Missed::Once, until: None, times: None });
    driver.schedule(
        vec![NewTimer { recurrence, ..timer(key("hourly"), When::Rhythm) }],
        Conflict::Refuse,
    );
    let Answer::Timer(Some(view)) =
        driver.ask(Request::Run { queue: queue(), key: key("hourly").unwrap() })
    else {
        panic!()
    };
    assert_eq!((view.due.millis(), view.occurrence), (MIDNIGHT, 1));
    let tokens = driver.receive(1);
    let hour = Moment::from_millis(MIDNIGHT + 3_600_000);
    assert_eq!(driver.settle(tokens, Verdict::Ack), [Ok(Settled::Acked(Some(hour)))]);
    driver.pass_until(hour.millis());
    assert_eq!(driver.receive(1)[0].occurrence, 2);
}

/// The first edge is a day ahead and rounds to a minute; the second is later and rounds to an hour, which is earlier.
#[test]
fn the_edges_of_a_forecast_stay_in_order() {
    let mut driver = Driver::new(Limits::default());
    driver.wall += 3_599_998;
    let day = driver.wall + 86_400_000;
    let edges = [day, day + 1, day + 7_200_000].map(Moment::from_millis);
    let request = Request::Forecast { queue: queue(), edges: edges.to_vec() };
    let Answer::Forecast(pieces) = driver.ask(request) else { panic!() };
    let edges: Vec<u64> =
        pieces.iter().flat_map(|piece| [piece.0.millis(), piece.1.millis()]).collect();
    assert!(edges.is_sorted() && day - edges[0] < 60_000, "{pieces:?}");
}

/// Unreadable rows block nothing else and cost no turns, in a bucket that comes near, passes or is split, or
/// among the leased timers.
#[test]
fn damage_does_not_stop_what_is_healthy() {
    const DAY: u64 = 86_400;
    // Two good timers are in one page with a bad row.
    for (damage, healthy) in [(Damage::LeftOut, 6), (Damage::Refused, 4)] {
        let mut driver = Driver::new(Limits::default());
        driver.schedule(vec![timer(key("bad-out"), in_secs(0))], Conflict::Refuse);
        assert_eq!(driver.receive(1).len(), 1);
        // Each in its own bucket, of a different width.
        let far = [120, 7200, 2 * DAY, 20 * DAY, 200 * DAY];
        for (nth, secs) in far.into_iter().enumerate() {
            let bad = timer(key(&format!("bad-{nth}")), in_secs(secs));
            driver.schedule(vec![bad], Conflict::Refuse);
        }
        let good = |secs: u64| timer(None, in_secs(secs + 3 * DAY));
        driver.schedule(far.map(good).into(), Conflict::Refuse);
        let Driver { store, wall, .. } = driver;
        let mut driver =
            Driver::open_damaged(store, Limits::default(), wall, (Opened::Started, damage));
        let late = [timer(key("late"), in_secs(2 * DAY))];
        driver.schedule(late.into(), Conflict::Refuse);
        let before = driver.turns;
        driver.pass_until(wall + 400 * DAY * 1000);
        let turns = driver.turns - before;
        assert!(turns < 200, "{damage:?}: {turns} turns");
        assert_eq!(driver.receive(100).len(), healthy, "{damage:?}");
    }
}

/// A second that does not fit into the window is not resident. Once its first timer is due, its second timer is the
/// next; if the clock is set back, the first one is the next again.
#[test]
fn the_next_timer_of_a_crowded_second_is_to_come() {
    let mut driver = Driver::new(Limits { window: 1, page: 1, ..Limits::default() });
    let at = |millis: u64| timer(None, When::At(Moment::from_millis(MIDNIGHT + millis)));
    driver.schedule([60_100, 60_500, 60_900, 3_600_000].map(at).into(), Conflict::Refuse);
    let back = [(60_950, 3_600_000), (60_300, 60_500)];
    for (wall, next) in
        [(60_000, 60_100), (60_100, 60_500), (60_700, 60_900)].into_iter().chain(back)
    {
        driver.pass_until(MIDNIGHT + wall);
        let Answer::Stats(Some(stats)) = driver.ask(Request::Stats(queue())) else { panic!() };
        assert_eq!(stats.next, Some(Moment::from_millis(MIDNIGHT + next)), "at {wall}");
    }
}
