//! Workers under virtual time, which does not pass while a handler runs.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use tourbillon_durable::values::Retry;
use tourbillon_durable::{Conflict, Counts, Nack, NewTimer, State};

use crate::{SECOND, memory, seconds};

#[test]
fn a_year_of_a_daily_job_takes_no_time() {
    let (clock, _durable, queue) = memory();
    queue
        .schedule(NewTimer::cron("0 2 * * *", "UTC").unwrap().key("daily").unwrap())
        .wait()
        .unwrap();
    let (send, runs) = mpsc::channel();
    let _worker = queue.worker(1, move |run| Ok(send.send(run.due())?)).unwrap();
    clock.advance(366 * 86_400 * SECOND).unwrap();
    let runs: Vec<_> = runs.try_iter().collect();
    assert_eq!(runs.len(), 366, "the year 2000");
    assert!(runs.windows(2).all(|pair| pair[1].since(pair[0]).millis() == 86_400_000));
}

#[test]
fn handlers_run_side_by_side_and_no_more_than_asked_for() {
    let (clock, _durable, queue) = memory();
    let (meet, running) = (Arc::new(Barrier::new(3)), Arc::new(AtomicUsize::new(0)));
    let most = running.clone();
    let _worker = queue
        .worker(3, move |_| {
            assert!(most.fetch_add(1, SeqCst) < 3);
            meet.wait();
            most.fetch_sub(1, SeqCst);
            Ok(())
        })
        .unwrap();
    queue.schedule_all((0..30).map(|_| seconds(5)).collect(), Conflict::Refuse).wait().unwrap();
    clock.advance(5 * SECOND).unwrap();
    assert_eq!(queue.count().wait().unwrap(), Some(Counts::default()));
}

#[test]
fn an_error_and_a_panic_are_refusals_with_their_text() {
    let (clock, _durable, queue) = memory();
    let retry = Retry { attempts: 1, ..Retry::default() };
    for key in ["panics", "fails", "works"] {
        queue.schedule(seconds(1).key(key).unwrap().retry(retry).unwrap()).wait().unwrap();
    }
    let _worker = queue
        .worker(1, |delivery| match delivery.key() {
            "panics" => panic!("on purpose"),
            "fails" => "x".parse::<u8>().map(drop).map_err(Into::into),
            _ => Ok(()),
        })
        .unwrap();
    clock.advance(SECOND).unwrap();
    let view = |key| queue.get(key).wait().unwrap().unwrap();
    assert_eq!(view("panics").last_error.as_deref(), Some("the handler panicked: on purpose"));
    assert_eq!(view("fails").last_error.as_deref(), Some("invalid digit found in string"));
    assert_eq!((view("fails").state, view("works").state), (State::Dead, State::Done));
}

#[test]
fn a_shutdown_stops_taking_and_waits_for_handlers() {
    let (clock, _durable, queue) = memory();
    let handled = Arc::new(AtomicUsize::new(0));
    let count = handled.clone();
    let worker = queue
        .worker(2, move |_| {
            count.fetch_add(1, SeqCst);
            Ok(())
        })
        .unwrap();
    queue.schedule(seconds(1)).wait().unwrap();
    clock.advance(SECOND).unwrap();
    assert!(worker.shutdown(10 * SECOND));
    queue.schedule(seconds(1)).wait().unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(handled.load(SeqCst), 1);
    assert_eq!(queue.count().wait().unwrap().unwrap().due, 1, "left for another worker");
}

#[test]
fn a_handler_may_schedule_and_say_when_to_try_again() {
    let (clock, _durable, queue) = memory();
    let own = queue.clone();
    let _worker = queue
        .worker(1, move |delivery| {
            if delivery.attempt() == 1 {
                return Err(Nack::because("busy").after(3600 * SECOND));
            }
            own.schedule(seconds(60).payload("next")).wait()?;
            Ok(())
        })
        .unwrap();
    queue.schedule(seconds(1)).wait().unwrap();
    clock.advance(3600 * SECOND).unwrap();
    assert_eq!(queue.count().wait().unwrap().unwrap().scheduled, 1);
    clock.advance(Duration::from_secs(1)).unwrap();
    let counts = queue.count().wait().unwrap().unwrap();
    assert_eq!(counts, Counts { scheduled: 1, ..counts });
}
