//! A timer that fires, is moved, or is cancelled.

use tourbillon::State::{Cancelled, Fired, Pending, Running};

use super::{Ends, Stage, Sums, Way, on_every_stage};
use crate::common::{HOUR, SECOND};

const FIRES: &[Way] = &[
    ("it fires", |stage| {
        stage.tells("as it is armed", Pending, [1, 0, 0, 0, 0]);
        if stage.verb.first > SECOND / 2 {
            stage.clock.advance(stage.verb.first / 2).unwrap();
            stage.tells("halfway", Pending, [1, 0, 0, 0, 0]);
        }
        let time = stage.run([1, 1, 0, 0, 0]);
        stage.end(time, Ends::Returns);
        if !stage.repeats() {
            return stage.tells("when it has run", Fired, [1, 1, 0, 0, 0]);
        }
        stage.tells("between two runs", Pending, [2, 1, 0, 0, 0]);
        let time = stage.run([2, 2, 0, 0, 0]);
        stage.end(time, Ends::Returns);
        stage.tells("after the second run", Pending, [3, 2, 0, 0, 0]);
    }),
    ("it panics", |stage| {
        let time = stage.run([1, 1, 0, 0, 0]);
        stage.end(time, Ends::Panics);
        stage.tells("when it has panicked", Fired, [1, 1, 0, 0, 1]);
        stage.clock.advance(HOUR).unwrap();
        stage.tells("long after", Fired, [1, 1, 0, 0, 1]);
    }),
];

#[test]
fn of_one_that_fires() {
    on_every_stage(FIRES);
}

/// Moves it to so long after now, by its handle or by its key.
fn moved(stage: &mut Stage, hours: u32, by_key: bool) {
    let (timer, handle) = (&stage.timer, &stage.handle);
    let at = timer.now() + HOUR * hours;
    match (by_key, hours % 2 == 0) {
        (false, false) => handle.reschedule(HOUR * hours).unwrap(),
        (false, true) => handle.reschedule_at(at).unwrap(),
        (true, false) => timer.reschedule(handle.key(), HOUR * hours).unwrap(),
        (true, true) => timer.reschedule_at(handle.key(), at).unwrap(),
    }
    stage.due = stage.clock.elapsed() + HOUR * hours;
    // It does not wait for the wall clock any more.
    stage.wall = false;
}

fn is_moved(stage: &mut Stage, by_key: bool) {
    for hours in [5, 8, 2, 1] {
        moved(stage, hours, by_key);
        stage.tells("as it is moved", Pending, [1, 0, 0, 0, 0]);
    }
    let time = stage.run([1, 1, 0, 0, 0]);
    assert!(stage.handle.reschedule(HOUR).is_err(), "it runs");
    stage.tells("while it runs, not moved", Running, [1, 1, 0, 0, 0]);
    stage.end(time, Ends::Returns);
    if !stage.repeats() {
        return stage.tells("when it has run", Fired, [1, 1, 0, 0, 0]);
    }
    stage.tells("between two runs", Pending, [2, 1, 0, 0, 0]);
    moved(stage, 3, by_key);
    stage.tells("moved between two runs", Pending, [2, 1, 0, 0, 0]);
}

const MOVES: &[Way] = &[
    ("it is moved", |stage| is_moved(stage, false)),
    ("it is moved by its key", |stage| is_moved(stage, true)),
];

#[test]
fn of_one_that_is_moved() {
    on_every_stage(MOVES);
}

/// Cancels it; a second time there is nothing to cancel.
fn cancel(stage: &Stage, by_key: bool) -> bool {
    let cancel = || match by_key {
        true => stage.timer.cancel(stage.handle.key()),
        false => stage.handle.cancel(),
    };
    let first = cancel();
    assert!(!cancel(), "a second time");
    first
}

fn is_cancelled(stage: &mut Stage, by_key: bool) {
    assert!(cancel(stage, by_key));
    stage.tells("as it is cancelled", Cancelled, [1, 0, 1, 0, 0]);
    stage.clock.advance(HOUR).unwrap();
    stage.tells("an hour later", Cancelled, [1, 0, 1, 0, 0]);
    assert!(stage.timer.stop().is_empty());
    stage.tells("after a stop", Cancelled, [1, 0, 1, 0, 0]);
}

fn is_cancelled_in_its_run(stage: &mut Stage, by_key: bool) {
    let time = stage.run([1, 1, 0, 0, 0]);
    let repeats = stage.repeats();
    assert_eq!(cancel(stage, by_key), repeats, "one that runs once has started");
    let (during, after) = if repeats { (Cancelled, Cancelled) } else { (Running, Fired) };
    stage.tells("cancelled while it runs", during, [1, 1, 0, 0, 0]);
    stage.end(time, Ends::Returns);
    stage.tells("when the run has ended", after, [1, 1, 0, 0, 0]);
    assert!(stage.timer.stop().is_empty());
    stage.tells("after a stop", after, [1, 1, 0, 0, 0]);
}

fn is_cancelled_between(stage: &mut Stage, by_key: bool) {
    let time = stage.run([1, 1, 0, 0, 0]);
    stage.end(time, Ends::Returns);
    assert_eq!(cancel(stage, by_key), stage.repeats());
    match stage.repeats() {
        true => stage.tells("cancelled between two runs", Cancelled, [2, 1, 1, 0, 0]),
        false => stage.tells("too late to cancel", Fired, [1, 1, 0, 0, 0]),
    }
}

const CANCELS: &[Way] = &[
    ("it is cancelled", |stage| is_cancelled(stage, false)),
    ("it is cancelled by its key", |stage| is_cancelled(stage, true)),
    ("it is cancelled in its run", |stage| is_cancelled_in_its_run(stage, false)),
    ("it is cancelled by its key in its run", |stage| is_cancelled_in_its_run(stage, true)),
    ("it is cancelled after a run", |stage| is_cancelled_between(stage, false)),
    ("it is cancelled by its key after a run", |stage| is_cancelled_between(stage, true)),
];

#[test]
fn of_one_that_is_cancelled() {
    on_every_stage(CANCELS);
}

/// Sets the wall clock on by half of the time that is left: those that wait for it are due sooner, and only those.
#[track_caller]
fn wall_is_set(stage: &mut Stage, counts: Sums) {
    let half = (stage.due - stage.clock.elapsed()) / 2;
    // Setting the clock runs what is due.
    if half.is_zero() {
        return;
    }
    stage.clock.set_wall(stage.clock.wall_now() + half).unwrap();
    if stage.wall {
        stage.due -= half;
    }
    stage.tells("the wall clock was set", Pending, counts);
}

const SETS: &[Way] = &[
    ("the wall clock is set", |stage| {
        wall_is_set(stage, [1, 0, 0, 0, 0]);
        let time = stage.run([1, 1, 0, 0, 0]);
        stage.end(time, Ends::Returns);
        if stage.repeats() {
            wall_is_set(stage, [2, 1, 0, 0, 0]);
        }
    }),
    ("it is moved, and the wall clock is set", |stage| {
        moved(stage, 3, false);
        wall_is_set(stage, [1, 0, 0, 0, 0]);
    }),
];

#[test]
fn of_one_whose_wall_clock_is_set() {
    on_every_stage(SETS);
}
