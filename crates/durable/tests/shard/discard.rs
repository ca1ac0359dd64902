//! Clearing a queue whose rows are still in the store.

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

/// The queue is cleared during a look, which found no timer. The answer must include the timer scheduled afterwards.
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

/// A look skips discarded rows that are still in the store, without reading them.
#[test]
fn a_look_reads_no_discarded_rows() {
    const DAYS: u64 = 2 * 86_400_000;
    let mut driver = Driver::new(Limits { page: 10, ..Limits::default() });
    driver.schedule((0..200).map(|nth| at(DAYS + nth)).collect(), Conflict::Refuse);
    let keys = ["first", "next"].map(|name| key(name).unwrap());
    let timers = [30_000, 40_000].map(|later| at(DAYS + later)).into_iter().zip(&keys);
    let timers = timers.map(|(timer, key)| NewTimer { key: Some(key.clone()), ..timer }).collect();
    let requests = [
        Request::Clear(queue()),
        Request::Schedule { queue: queue(), timers, conflict: Conflict::Refuse },
        Request::Cancel { queue: queue(), keys: vec![keys[0].clone()], only: None },
        Request::Stats(queue()),
    ];
    let (wall, steady) = (Moment::from_millis(driver.wall), Steady::from_millis(driver.wall));
    let (mut loads, mut next, mut inputs) = (0, None, Vec::new());
    for (id, request) in (1000..).map(RequestId).zip(requests) {
        inputs.push(Input::Request(id, request));
        let mut answered = false;
        while !answered {
            for effect in driver.shard.turn(wall, steady, std::mem::take(&mut inputs)).effects {
                match effect {
                    Effect::Commit(id, ops) => {
                        driver.store.commit(driver.epoch, &ops).unwrap();
                        inputs.push(Input::Committed(id));
                    }
                    // Never answered, so the discarded rows stay in the store.
                    Effect::Load(_, Query::Waiting { .. } | Query::Bucket { .. }) => {}
                    Effect::Load(id, query) => {
                        loads += usize::from(matches!(query, Query::Sorted { .. }));
                        inputs.push(Input::Loaded(id, driver.store.load(&query).unwrap()));
                    }
                    Effect::Answer(_, answer) => {
                        answered = true;
                        next = match answer {
                            Answer::Stats(Some(stats)) => stats.next,
                            _ => None,
                        };
                    }
                }
            }
        }
    }
    assert_eq!((next, loads), (Some(Moment::from_millis(MIDNIGHT + DAYS + 40_000)), 1));
}
