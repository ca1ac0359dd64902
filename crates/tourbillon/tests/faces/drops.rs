//! Every user value whose drop panics, ended in every possible way: the panic is counted and reported, the engine
//! continues, and everything else is as without a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tourbillon::Context;

use crate::common::case;
use crate::common::{Drops, Log, SECOND, accounted};
use crate::fragile::{Bench, Broken, EVERYWHERE, Held, Holder, REPORTS, drop_in_hand};
use crate::held::{CALLBACKS, RETRIES};
use crate::held_by_key::{DELAYED, KEYED};

/// How a value ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Fires,
    MovedAndFires,
    Cancelled,
    Stopped,
    StoppedAndRun,
    Dropped,
    DroppedWithTheDriver,
    RefusedWhenFull,
    RefusedAfterStop,
}

use Way::*;

const WAYS: [Way; 9] = [
    Fires,
    MovedAndFires,
    Cancelled,
    Stopped,
    StoppedAndRun,
    Dropped,
    DroppedWithTheDriver,
    RefusedWhenFull,
    RefusedAfterStop,
];

/// The limit on pending timers: the value's, two others, and one that replaces it.
const LIMIT: usize = 4;

/// The places in which a way is tested. If no callback runs, the places do not differ.
fn places(way: Way) -> &'static [&'static str] {
    match way {
        Fires | MovedAndFires => &EVERYWHERE,
        Cancelled | Stopped | StoppedAndRun | Dropped => &EVERYWHERE[..2],
        DroppedWithTheDriver => &EVERYWHERE[3..],
        RefusedWhenFull | RefusedAfterStop => &EVERYWHERE[..1],
    }
}

fn every_way(holders: &'static [Holder]) {
    for holder in holders {
        for way in WAYS {
            let [calm, loud] = REPORTS;
            let reports = places(way).iter().map(|place| (*place, calm));
            for (place, report) in reports.chain([(places(way)[0], loud)]) {
                let name = format!("{}, {way:?}, on the {place}, {report}", holder.name);
                case(&name, move || ends(holder, way, Bench::new(place, report, LIMIT)));
            }
        }
    }
}

#[test]
fn what_a_callback_holds_may_panic() {
    every_way(CALLBACKS);
}

#[test]
fn what_a_retry_holds_may_panic() {
    every_way(RETRIES);
}

#[test]
fn what_a_keyed_timer_holds_may_panic() {
    every_way(KEYED);
}

#[test]
fn what_a_purgatory_holds_may_panic() {
    every_way(DELAYED);
}

/// Two other timers that are due when the value's is, one armed before it and one after it.
struct Others {
    ran: Log<()>,
    made: u64,
    drops: Drops,
}

impl Others {
    fn arm(&mut self, bench: &Bench) {
        let (ran, own) = (self.ran.clone(), self.drops.one());
        let callback = move |_: &Context<'_>| {
            let _own = &own;
            ran.add(());
        };
        assert!(bench.timer.arm(SECOND, callback).is_ok(), "there is room for it");
        self.made += 1;
    }

    /// Asserts that all of them have run, and each was dropped once.
    fn have_run(&self) {
        assert_eq!((self.ran.len() as u64, self.drops.count()), (self.made, self.made));
    }
}

fn ends(holder: &Holder, way: Way, bench: Bench) {
    let broken = Broken::default();
    let mut others = Others { ran: Log::new(), made: 0, drops: Drops::new() };
    others.arm(&bench);
    match way {
        RefusedWhenFull => return refused_when_full(holder, bench, &broken, others),
        RefusedAfterStop => return refused_after_stop(holder, &bench, &broken),
        _ => {}
    }
    let Held::Here(handle) = (holder.hold)(&bench, SECOND, broken.one()) else {
        panic!("it was not taken");
    };
    others.arm(&bench);
    assert_eq!(broken.count(), 0, "it is held");
    match way {
        Fires => fires(holder, &bench, &broken, &others),
        MovedAndFires => {
            let Some(reschedule) = handle.reschedule else { return };
            reschedule(&bench, 2 * SECOND);
            bench.advance(SECOND);
            assert_eq!(broken.count(), 0, "it was moved");
            bench.advance(9 * SECOND);
            fires(holder, &bench, &broken, &others);
        }
        Cancelled => {
            let Some(cancel) = handle.cancel else { return };
            let in_hand = cancel(&bench);
            assert_eq!((broken.count(), bench.timer.len()), (1, 2), "it is gone");
            assert_eq!(bench.reported.count(), u64::from(!in_hand));
            bench.advance(SECOND);
            others.have_run();
            goes_on(&bench);
        }
        Dropped => {
            let reported = bench.reported.clone();
            drop(bench);
            assert_eq!((broken.count(), others.drops.count()), (1, 2), "all are gone");
            assert!(reported.count() >= 1 && others.ran.len() == 0);
        }
        DroppedWithTheDriver => {
            let mut bench = bench;
            let Some(driver) = bench.driver.take() else { return };
            drop(driver);
            assert_eq!(others.drops.count(), 2, "the others are gone");
            over(holder, way, bench, &broken, &others);
        }
        _ => stopped(holder, way, bench, &broken, &others),
    }
    handle.wait.into_iter().for_each(|wait| wait());
}

fn fires(holder: &Holder, bench: &Bench, broken: &Broken, others: &Others) {
    bench.advance(SECOND);
    assert_eq!(broken.count(), 1, "it has run, and is gone");
    assert_eq!(bench.reported.count(), holder.panics, "each panic is reported");
    others.have_run();
    goes_on(bench);
}

fn stopped(holder: &Holder, way: Way, bench: Bench, broken: &Broken, others: &Others) {
    let unfired = bench.timer.stop();
    assert_eq!(others.drops.count(), 0, "they are whole");
    if way == StoppedAndRun {
        for unfired in unfired {
            // A panic reaches the caller, with its payload.
            drop_in_hand(catch_unwind(AssertUnwindSafe(|| unfired.run())));
        }
        others.have_run();
    } else {
        drop(unfired);
    }
    over(holder, way, bench, broken, others);
}

/// The timer was stopped, and what it held was dropped.
fn over(holder: &Holder, way: Way, bench: Bench, broken: &Broken, others: &Others) {
    let waits_on = holder.outlives_timer && way != StoppedAndRun;
    assert_eq!(broken.count(), u64::from(!waits_on), "it is gone with the timer");
    if way != StoppedAndRun {
        assert_eq!(bench.reported.count(), u64::from(!waits_on), "its panic is reported");
    }
    accounted(&bench.timer);
    assert_eq!(bench.timer.counts().panicked, bench.reported.count());
    drop(bench);
    assert_eq!((broken.count(), others.drops.count()), (1, 2), "all are gone");
}

fn refused_when_full(holder: &Holder, bench: Bench, broken: &Broken, mut others: Others) {
    (1..LIMIT).for_each(|_| others.arm(&bench));
    refused(holder, &bench, broken);
    bench.advance(SECOND);
    others.have_run();
    goes_on(&bench);
}

fn refused_after_stop(holder: &Holder, bench: &Bench, broken: &Broken) {
    assert_eq!(bench.timer.stop().len(), 1);
    refused(holder, bench, broken);
    accounted(&bench.timer);
}

fn refused(holder: &Holder, bench: &Bench, broken: &Broken) {
    match (holder.hold)(bench, SECOND, broken.one()) {
        Held::Here(_) => panic!("it was to be refused"),
        Held::Back(back) => {
            assert_eq!((broken.count(), bench.reported.count()), (0, 0), "it came back whole");
            assert!(drop_in_hand(back), "it was inside");
        }
        Held::Gone => assert_eq!(bench.reported.count(), 1),
    }
    assert_eq!(broken.count(), 1);
    assert!(bench.keyed.is_empty() && bench.purgatory.delayed() == 0);
    assert_eq!(bench.purgatory.watched(), 0);
}

/// Asserts that every place is free again, that a new timer runs, and that all timers are accounted for.
fn goes_on(bench: &Bench) {
    let (ran, timer) = (Log::new(), &bench.timer);
    assert_eq!((timer.len(), bench.keyed.len(), bench.purgatory.delayed()), (0, 0, 0));
    for _ in 0..LIMIT {
        let ran = ran.clone();
        assert!(timer.arm(SECOND, move |_| ran.add(())).is_ok(), "there is room again");
    }
    assert!(timer.arm(SECOND, |_| ()).is_err(), "and no more than there was");
    bench.advance(SECOND);
    assert_eq!(ran.len(), LIMIT, "the engine goes on");
    accounted(timer);
    assert_eq!(timer.counts().panicked, bench.reported.count(), "each panic is counted");
    assert!(timer.stop_within(Duration::from_secs(5)).finished, "a stop does not wait");
}
