//! The life of a timer that follows a cron expression.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use tourbillon::{Context, Cron, ScheduleError, State, Timer, VirtualClock};

use crate::common::{Drops, HOUR, Log, MS, PLACES, SECOND, accounted, panic_quietly, running_on};

fn minutely() -> Cron {
    Cron::parse("* * * * *", "UTC").unwrap()
}

const MINUTE: Duration = Duration::from_secs(60);

fn counted() -> (Arc<AtomicU64>, impl FnMut(&Context<'_>) + Send + 'static) {
    let count = Arc::new(AtomicU64::new(0));
    let own = count.clone();
    (count, move |_: &Context<'_>| {
        own.fetch_add(1, SeqCst);
    })
}

#[test]
fn it_runs_until_it_is_cancelled() {
    for place in PLACES {
        let clock = VirtualClock::new();
        let timer = running_on(place).clock(&clock).build().unwrap();
        let (count, callback) = counted();
        let job = timer.schedule_cron(&minutely(), callback).unwrap();
        clock.advance(10 * MINUTE).unwrap();
        assert_eq!((count.load(SeqCst), job.state()), (10, State::Pending), "{place}");
        assert_eq!(job.remaining(), Some(MINUTE));
        assert!(job.cancel());
        clock.set_wall(clock.wall_now() + HOUR).unwrap();
        clock.advance(HOUR).unwrap();
        assert_eq!((count.load(SeqCst), job.state()), (10, State::Cancelled));
        let counts = timer.counts();
        assert_eq!(
            (counts.armed, counts.fired, counts.cancelled),
            (11, 10, 1),
            "every arming counts"
        );
        accounted(&timer);
    }
}

#[test]
fn it_may_cancel_itself() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let (log, drops) = (Log::new(), Drops::new());
    let (write, held) = (log.clone(), drops.one());
    let job = timer.schedule_cron(&minutely(), move |context| {
        let _held = &held;
        write.add(());
        assert!(context.timeout().unwrap().cancel());
    });
    clock.advance(HOUR).unwrap();
    assert_eq!((log.len(), job.unwrap().state(), drops.count()), (1, State::Cancelled, 1));
    assert_eq!((timer.len(), timer.counts().panicked), (0, 0));
}

#[test]
fn a_panic_ends_it() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).build().unwrap();
    let mut runs = 0;
    let callback = move |_: &Context<'_>| {
        runs += 1;
        if runs == 3 {
            panic_quietly();
        }
    };
    let job = timer.schedule_cron(&minutely(), callback).unwrap();
    clock.advance(HOUR).unwrap();
    assert_eq!((job.state(), timer.counts().fired, timer.counts().panicked), (State::Fired, 3, 1));
    // Its place under the limit is free.
    timer.schedule(SECOND, |_| ()).unwrap();
}

/// Moments that pass during a run are skipped: runs do not overlap, and none is made up for.
#[test]
fn a_long_run_misses_the_next() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    let log = Log::new();
    let (write, own) = (log.clone(), clock.clone());
    // Virtual time does not pass during a callback, so the next run is postponed past two moments instead.
    let mut first = true;
    let begin = clock.wall_now();
    let job = timer.schedule_cron(&minutely(), move |context| {
        write.add((own.wall_now().duration_since(begin).unwrap(), context.wall_deadline()));
        if std::mem::take(&mut first) {
            context.again(2 * MINUTE + SECOND);
        }
    });
    clock.advance(5 * MINUTE).unwrap();
    let at = |minutes: u32| Some(begin + MINUTE * minutes);
    assert_eq!(
        log.take(),
        [(MINUTE, at(1)), (3 * MINUTE + SECOND, None), (4 * MINUTE, at(4)), (5 * MINUTE, at(5)),]
    );
    assert!(job.unwrap().is_pending());
}

#[test]
fn moved_it_runs_once_in_between() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let (count, callback) = counted();
    let job = timer.schedule_cron(&minutely(), callback).unwrap();
    job.reschedule(SECOND).unwrap();
    clock.set_wall(clock.wall_now() + 10 * MS).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(count.load(SeqCst), 1);
    assert_eq!(job.remaining(), Some(MINUTE - SECOND - 10 * MS));
    clock.advance(MINUTE).unwrap();
    assert_eq!(count.load(SeqCst), 2);
}

#[test]
fn stopped_it_is_handed_back() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let (count, callback) = counted();
    let job = timer.schedule_cron(&minutely(), callback).unwrap();
    clock.advance(3 * MINUTE).unwrap();
    let mut unfired = timer.stop();
    assert_eq!((unfired.len(), job.state()), (1, State::HandedBack));
    unfired.pop().unwrap().run();
    assert_eq!(count.load(SeqCst), 4, "run by hand, it does not arm itself");
    clock.advance(HOUR).unwrap();
    assert_eq!(count.load(SeqCst), 4);
    assert!(matches!(timer.schedule_cron(&minutely(), |_| ()), Err(ScheduleError::Stopped(_))));
    accounted(&timer);
}

#[test]
fn one_with_no_run_to_come() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let past = Cron::parse("0 0 0 1 1 * 1999", "UTC").unwrap();
    let refused = timer.schedule_cron(&past, |_| ()).unwrap_err();
    assert_eq!(refused.to_string(), "the cron expression has no run to come: look at its year");
    assert!(matches!(refused, ScheduleError::Never(_)));
    assert_eq!(timer.counts().armed, 0);

    // Three runs, and it ends.
    let few = Cron::parse("0 0 0 1-3 2 * 2000", "UTC").unwrap();
    let job = timer.schedule_cron(&few, |_| ()).unwrap();
    clock.advance(Duration::from_secs(400 * 86_400)).unwrap();
    assert_eq!((job.state(), timer.counts().fired, timer.len()), (State::Fired, 3, 0));
    clock.set_wall(SystemTime::UNIX_EPOCH).unwrap();
    clock.advance(HOUR).unwrap();
    assert_eq!((job.state(), timer.counts().fired), (State::Fired, 3), "over is over");
}

/// A cron timer keeps its place while it runs, as any repeating one.
#[test]
fn it_keeps_its_place() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).on_driver().build().unwrap();
    let log = Log::new();
    let write = log.clone();
    let job = timer.schedule_cron(&minutely(), move |context| {
        write.add(context.timer().schedule(SECOND, |_| ()).is_err());
    });
    clock.advance(3 * MINUTE).unwrap();
    assert_eq!(log.take(), [true, true, true]);
    assert!(job.unwrap().cancel());
    timer.schedule(SECOND, |_| ()).unwrap();
}

#[test]
fn a_run_that_is_handed_back_by_a_stop_during_the_last_knows_its_moment() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let (log, begin) = (Log::default(), clock.wall_now());
    let write = log.clone();
    let stops = move |context: &Context<'_>| {
        write.add(context.wall_deadline());
        context.timer().stop();
    };
    timer.schedule_cron(&minutely(), stops).unwrap();
    clock.advance(MINUTE).unwrap();
    timer.stop().into_iter().for_each(|unfired| unfired.run());
    assert_eq!(log.take(), [1, 2].map(|n| Some(begin + MINUTE * n)));
}
