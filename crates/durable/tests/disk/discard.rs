//! A queue is cleared or deleted, and the process ends before its rows are removed.

use std::path::Path;
use std::time::Duration;

use tourbillon_durable::disk::{DiskStore, check};
use tourbillon_durable::store::{Op, Store};
use tourbillon_durable::{Conflict, Durable, NewTimer};

use crate::scratch::{Scratch, queue};

/// Timers with near and far deadlines, with and without a chosen key; some are due, done or leased.
fn fill(directory: &Path) {
    let durable = Durable::open(directory).unwrap();
    for name in ["orders", "other"] {
        let queue = durable.queue(name).unwrap();
        let timer = |nth: u64| {
            let timer = NewTimer::after(Duration::from_secs(nth / 3 * 40_000));
            if nth.is_multiple_of(2) { timer } else { timer.key(format!("k{nth}")).unwrap() }
        };
        queue.schedule_all((0..300).map(timer).collect(), Conflict::Refuse).wait().unwrap();
        let mut due = queue.receive(3, Duration::from_secs(20)).wait().unwrap();
        due.pop().unwrap().ack().wait().unwrap();
        due.into_iter().for_each(|delivery| drop(delivery.detach()));
    }
    durable.close();
}

/// Commits only the shard's commit for a clear, as if the process had ended before removing rows.
fn clear(directory: &Path, deleted: bool) {
    let mut store = DiskStore::new(directory);
    let head = store.open().unwrap();
    let stored = head.queues.iter().find(|(name, _)| *name == queue());
    let (name, mut row) = stored.unwrap().clone();
    row.discard(head.shard.next_generation);
    row.deleted = deleted;
    store.commit(head.epoch, &[Op::Clear(name.clone()), Op::Queue { name, row }]).unwrap();
}

fn rows(directory: &Path) -> (usize, usize) {
    let mut store = DiskStore::new(directory);
    let queues = store.open().unwrap().queues.len();
    let rows: Vec<_> = store.snapshot().unwrap().map(|row| row.unwrap().1).collect();
    (queues, rows.into_iter().filter(|row| row.spec.queue == queue()).count())
}

#[test]
fn discarded_rows_are_no_timers_and_give_their_room_back() {
    for deleted in [false, true] {
        let scratch = Scratch::in_memory("discard");
        let directory = scratch.path();
        fill(directory);
        let sound = |timers: u64| {
            let report = check(directory, |_| ()).unwrap();
            assert_eq!((report.timers, report.damage), (timers, Vec::new()));
        };
        let whole = check(directory, |_| ()).unwrap().timers;
        assert_eq!(whole % 2, 0);
        clear(directory, deleted);
        sound(whole / 2);
        assert!(rows(directory).1 > 250, "they lie where they were");
        let durable = Durable::open(directory).unwrap();
        let orders = durable.queue("orders").unwrap();
        assert_eq!(orders.count().wait().unwrap(), (!deleted).then(Default::default));
        assert_eq!(durable.queues().wait().unwrap().len(), if deleted { 1 } else { 2 });
        assert!(orders.receive(1, Duration::ZERO).wait().unwrap().is_empty());
        // The key of a discarded timer is free again.
        let made = orders.schedule(NewTimer::after(Duration::from_secs(60)).key("k299").unwrap());
        assert!(made.wait().is_ok(), "its key is free");
        assert!(orders.receive(9, Duration::ZERO).wait().unwrap().is_empty());
        orders.clear().wait().unwrap();
        if deleted {
            orders.delete(false).wait().unwrap();
        }
        drop(orders);
        durable.close();
        sound(whole / 2);
        assert_eq!(rows(directory), (if deleted { 1 } else { 2 }, 0), "queues, and rows");
    }
}
