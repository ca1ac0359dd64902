//! The clock is set back, and a timer is due again before the shard has read its row.

use super::*;

#[test]
fn a_timer_that_is_due_again_before_its_page_came_is_handed_out() {
    let mut driver = Driver::new(Limits::default());
    driver.schedule(vec![timer(None, in_secs(0))], Conflict::Refuse);
    let poll = Request::Receive {
        queue: queue(),
        max: 1,
        wait: Span::from_secs(60),
        lease: Span::from_secs(30),
    };
    let steady = Steady::from_millis(driver.wall);
    let back = Moment::from_millis(MIDNIGHT - 5000);
    let turn = driver.shard.turn(back, steady, vec![Input::Request(RequestId(1000), poll)]);
    let [Effect::Load(id, query)] = &turn.effects[..] else { panic!("{:?}", turn.effects) };
    let page = Input::Loaded(*id, driver.store.load(query).unwrap());
    assert!(
        driver.shard.turn(Moment::from_millis(MIDNIGHT), steady, Vec::new()).effects.is_empty()
    );
    let answers = driver.run(vec![page]);
    assert!(
        matches!(&answers[..], [Answer::Deliveries(deliveries)] if deliveries.len() == 1),
        "{answers:?}"
    );
}

/// As above, for a recurring timer: the moment missed by the clock's jump is corrected, although no taker waits.
#[test]
fn a_recurring_timer_that_is_due_again_before_its_page_came_takes_the_moment_that_passed() {
    takes_the_moment_that_passed(Driver::new(Limits::default()));
}

/// The shard reads the rows of one queue at a time. When it begins to read those of the second queue, the timer is due
/// again, so that it is not among the rows ahead of the clock.
#[test]
fn a_recurring_timer_that_is_due_again_before_its_page_was_asked_for_takes_the_moment_that_passed()
{
    let mut driver = Driver::new(Limits::default());
    let first = QueueName::new("invoices").unwrap();
    driver.ask(Request::Schedule {
        queue: first,
        timers: vec![timer(None, in_secs(0))],
        conflict: Conflict::Refuse,
    });
    takes_the_moment_that_passed(driver);
}

/// Runs a timer that was due long ago, then sets the clock back. When the shard has swept the queue, and before the
/// first page of the rows ahead of the clock comes, the timer is due again.
fn takes_the_moment_that_passed(mut driver: Driver) {
    let rhythm = Rhythm::every(Span::from_secs(5)).unwrap();
    let recurrence = Some(Recurrence { rhythm, missed: Missed::Once, until: None, times: None });
    driver.schedule(
        vec![NewTimer { recurrence, ..timer(key("often"), When::Rhythm) }],
        Conflict::Refuse,
    );
    driver.pass_until(MIDNIGHT + 60_000);
    driver.ask(Request::Run { queue: queue(), key: key("often").unwrap() });
    let back = Moment::from_millis(MIDNIGHT + 40_000);
    let steady = Steady::from_millis(driver.wall);
    let turn = driver.shard.turn(back, steady, Vec::new());
    let [Effect::Load(sweep, all), Effect::Load(recede, ahead)] = &turn.effects[..] else {
        panic!("{:?}", turn.effects)
    };
    let mut page = |id, query| Input::Loaded(id, driver.store.load(query).unwrap());
    let (swept, page) = (page(*sweep, all), page(*recede, ahead));
    let turn = driver.shard.turn(back, steady, vec![swept]);
    assert!(turn.effects.is_empty(), "{:?}", turn.effects);
    let steady = Steady::from_millis(driver.wall + 20_000);
    let turn = driver.shard.turn(Moment::from_millis(driver.wall), steady, Vec::new());
    let (mut inputs, _) = driver.perform(turn.effects);
    inputs.push(page);
    driver.run(inputs);
    let recurring = driver.store.rows().filter(|(_, record)| record.spec.recurrence.is_some());
    let dues: Vec<u64> = recurring.map(|(_, record)| record.due.millis()).collect();
    assert_eq!(dues, [back.millis()]);
}

/// Timers in every place that waits for a moment. None is early and none is lost, whatever the clock reads at the next
/// start.
#[test]
fn a_clock_that_was_set_while_the_process_was_down_is_followed() {
    const HOUR: u64 = 3_600_000;
    let moments = [0, 1, 30, 90, 25 * 60, 40 * 24 * 60].map(|minutes| minutes * 60_000);
    for shift in [-400 * 24, -25, -1, 1, 25, 400 * 24] {
        for page in [1, 1000] {
            let mut driver = Driver::new(Limits { page, ..Limits::default() });
            let at = |millis: u64| timer(None, When::At(Moment::from_millis(MIDNIGHT + millis)));
            driver.schedule(moments.map(at).into(), Conflict::Refuse);
            // The second and third timer are due, and not taken.
            driver.pass_until(MIDNIGHT + HOUR);
            let wall = (MIDNIGHT + HOUR).checked_add_signed(shift * HOUR as i64).unwrap();
            let mut driver = Driver::open(driver.store, driver.limits, wall);
            let mut left: Vec<u64> = moments.iter().map(|millis| MIDNIGHT + millis).collect();
            loop {
                let due = left.iter().filter(|&&at| at <= driver.wall).count();
                let mut tokens = Vec::new();
                // One answer contains only resident timers, possibly one page.
                while tokens.len() < due {
                    let more = driver.receive(100);
                    assert!(!more.is_empty(), "at {} after {shift} h", driver.wall);
                    tokens.extend(more);
                }
                assert_eq!(tokens.len(), due, "at {} after {shift} h", driver.wall);
                driver.settle(tokens, Verdict::Ack);
                left.retain(|&at| at > driver.wall);
                let Some(&next) = left.first() else { break };
                driver.pass_until(next - 1);
                assert!(driver.receive(100).is_empty(), "a millisecond before {next}");
                driver.pass_until(next);
            }
        }
    }
}
