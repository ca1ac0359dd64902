//! A queue is cleared while its rows are still in the store.

use super::*;

fn at(millis: u64) -> NewTimer {
    timer(None, When::At(Moment::from_millis(MIDNIGHT + millis)))
}

#[test]
fn discarded_rows_do_not_count_as_resident() {
    let mut driver = Driver::new(Limits { window: 8, ..Limits::default() });
    driver.pass_until(MIDNIGHT + 3_300_000);
    driver.schedule((0..6).map(|nth| at(5_400_000 + nth)).collect(), Conflict::Refuse);
    assert_eq!(driver.shard.resident().window, 6, "the next hour is near");
    let timers = (0..9).map(|nth| at(3_500_000 + nth)).collect();
    let made = Request::Schedule { queue: queue(), timers, conflict: Conflict::Refuse };
    let inputs = vec![
        Input::Request(RequestId(1000), Request::Clear(queue())),
        Input::Request(RequestId(1001), made),
    ];
    let (wall, steady) = (Moment::from_millis(driver.wall), Steady::from_millis(driver.wall));
    driver.shard.turn(wall, steady, inputs);
    assert!(driver.shard.resident().window <= 8, "{:?}", driver.shard.resident());
}

/// The look has read nothing, because everything was discarded; what came after that it has not seen.
#[test]
fn a_look_begins_anew_when_its_queue_is_cleared() {
    const DAY: u64 = 86_400_000;
    let mut driver = Driver::new(Limits::default());
    driver.schedule(vec![at(3 * DAY)], Conflict::Refuse);
    let mut driver = Driver::open(driver.store, driver.limits, driver.wall);
    driver.schedule(vec![at(2 * DAY)], Conflict::Refuse);
    let (wall, steady) = (Moment::from_millis(driver.wall), Steady::from_millis(driver.wall));
    let look = Input::Request(RequestId(1000), Request::Stats(queue()));
    let turn = driver.shard.turn(wall, steady, vec![look]);
    let [Effect::Load(id, query)] = &turn.effects[..] else { panic!("{:?}", turn.effects) };
    assert_eq!(
        driver.ask(Request::Clear(queue())),
        Answer::Many(Many { done: 2, ..Many::default() })
    );
    let cells = Input::Loaded(*id, driver.store.load(query).unwrap());
    driver.schedule(vec![at(4 * DAY)], Conflict::Refuse);
    let answers = driver.run(vec![cells]);
    let [Answer::Stats(Some(stats))] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(stats.next, Some(Moment::from_millis(MIDNIGHT + 4 * DAY)));
}
