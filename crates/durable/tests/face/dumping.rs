//! Dumps of durable timers that are in use.

use tourbillon_durable::dump::{Dump, Line};
use tourbillon_durable::record::Place;
use tourbillon_durable::values::QueueName;
use tourbillon_durable::{Change, Conflict, Durable, Settings};

use crate::{SECOND, memory, seconds, take};

fn lines(durable: &Durable) -> Vec<Line> {
    let dump = Dump::new(durable.image().wait().unwrap(), durable.now());
    dump.map(|line| Line::read(&line.unwrap()).unwrap()).collect()
}

#[test]
fn a_dump_is_one_state_while_timers_are_scheduled() {
    let durable = Durable::memory().unwrap();
    let queue = durable.queue("orders").unwrap();
    let writer = std::thread::spawn(move || {
        for n in 0..500 {
            let pair = ["a", "b"].map(|half| seconds(60).key(format!("{half}{n}")).unwrap());
            queue.schedule_all(pair.to_vec(), Conflict::Refuse).wait().unwrap();
        }
    });
    let mut last = 0;
    while last < 1000 {
        let timers = lines(&durable).len().saturating_sub(2);
        assert!(timers.is_multiple_of(2) && timers >= last, "{timers} after {last}");
        last = timers;
    }
    writer.join().unwrap();
}

#[test]
fn a_dump_has_the_name_the_settings_and_what_was_out_is_due_when_it_is_loaded() {
    let (clock, durable, queue) = memory();
    let change = Change { rate: Some(Some(7)), paused: Some(false), ..Change::default() };
    queue.set(change).wait().unwrap();
    let deleted = durable.queue("deleted").unwrap();
    deleted.schedule(seconds(86_400).key("gone").unwrap()).wait().unwrap();
    deleted.delete(true).wait().unwrap();
    queue.schedule(seconds(10).key("a").unwrap()).wait().unwrap();
    clock.advance(10 * SECOND).unwrap();
    let held = take(&queue);
    let mut lines = lines(&durable);
    let Some(Line::Timer(timer)) = lines.pop() else { panic!("a timer") };
    let (place, record) = timer.placed(durable.now());
    assert!(matches!(place, Place::Waiting(..)) && record.attempt == 1, "{place:?} {record:?}");
    let settings = Settings { rate: Some(7), ..Settings::default() };
    let name = durable.name();
    assert_eq!((name.len(), &*name != "0000000000000000"), (16, true));
    assert_eq!(
        lines,
        [Line::Store(name), Line::Queue(QueueName::new("orders").unwrap(), settings)]
    );
    drop(held);
    durable.clone().close();
    assert!(durable.image().wait().is_err());
    assert_ne!(Durable::memory().unwrap().name(), Durable::memory().unwrap().name());
}
