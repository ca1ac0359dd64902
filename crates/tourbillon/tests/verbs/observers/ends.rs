//! A timer whose engine ends: before it runs, while it runs, and between two runs.

use std::thread;
use std::time::Duration;

use tourbillon::State::{Fired, HandedBack, Running};
use tourbillon::{Timer, Unfired};

use super::{Ends, Stage, Told, Way, on_every_stage};
use crate::common::{HOUR, eventually};

const BEFORE: &[Way] = &[
    ("it is handed back and dropped", |stage| {
        let unfired = stage.timer.stop();
        stage.is_handed_back(&unfired);
        stage.tells("handed back", HandedBack, [1, 0, 0, 1, 0]);
        drop(unfired);
        stage.tells("dropped", HandedBack, [1, 0, 0, 1, 0]);
        assert!(stage.timer.is_stopped() && stage.timer.stop().is_empty());
    }),
    ("it is handed back and run by hand", |stage| {
        let mut unfired = stage.timer.stop_within(Duration::ZERO).unfired;
        stage.is_handed_back(&unfired);
        let (unfired, expected) =
            (unfired.pop().unwrap(), stage.expected(HandedBack, [1, 0, 0, 1, 0]));
        // A retry that was stopped has its outcome, and nothing to run.
        if stage.verb.name.starts_with("retry") {
            unfired.run();
            return stage.tells("nothing ran", HandedBack, [1, 0, 0, 1, 0]);
        }
        let by_hand = thread::spawn(move || unfired.run());
        let inside: Vec<Told> = stage.begun.recv().unwrap();
        assert_eq!(inside.len(), 2, "it has a handle of itself");
        inside.iter().for_each(|inside| assert_eq!(*inside, expected, "inside the run by hand"));
        stage.tells("while it is run by hand", HandedBack, [1, 0, 0, 1, 0]);
        stage.end.send(Ends::Returns).unwrap();
        by_hand.join().unwrap();
        stage.tells("run by hand", HandedBack, [1, 0, 0, 1, 0]);
    }),
    ("its engine is shut down before it runs", |stage| {
        let ended = stage.timer.shutdown_within(Duration::ZERO);
        stage.is_handed_back(&ended.unfired);
        stage.tells("handed back", HandedBack, [1, 0, 0, 1, 0]);
    }),
];

#[test]
fn of_one_that_is_handed_back() {
    on_every_stage(BEFORE);
}

/// Ends the engine on another thread while the timer runs, and returns what that hands back.
fn ends(
    stage: &mut Stage,
    end: fn(&Timer) -> Vec<Unfired>,
    is_ending: fn(&Timer) -> bool,
) -> Vec<Unfired> {
    let time = stage.run([1, 1, 0, 0, 0]);
    let timer = stage.timer.clone();
    let ending = thread::spawn(move || end(&timer));
    eventually(|| is_ending(&stage.timer));
    stage.tells("it runs while its engine ends", Running, [1, 1, 0, 0, 0]);
    stage.end(time, Ends::Returns);
    ending.join().unwrap()
}

/// The next run of one that repeats was armed, and handed back at once.
fn next_run_is_handed_back(stage: &Stage, unfired: Vec<Unfired>) {
    if !stage.repeats() {
        assert!(unfired.is_empty());
        return stage.tells("when it has run", Fired, [1, 1, 0, 0, 0]);
    }
    stage.is_handed_back(&unfired);
    stage.tells("its next run is handed back", HandedBack, [2, 1, 0, 1, 0]);
    drop(unfired);
    stage.tells("and dropped", HandedBack, [2, 1, 0, 1, 0]);
}

const DURING: &[Way] = &[
    ("its engine is stopped while it runs", |stage| {
        let unfired = ends(stage, Timer::stop, Timer::is_stopped);
        next_run_is_handed_back(stage, unfired);
    }),
    ("its engine is stopped while it runs, twice", |stage| {
        let time = stage.run([1, 1, 0, 0, 0]);
        let first = stage.timer.stop_within(Duration::ZERO);
        assert!(!first.finished && first.unfired.is_empty());
        stage.tells("it runs on", Running, [1, 1, 0, 0, 0]);
        stage.end(time, Ends::Returns);
        let unfired = stage.timer.stop();
        next_run_is_handed_back(stage, unfired);
    }),
    ("it panics while its engine is stopped", |stage| {
        let time = stage.run([1, 1, 0, 0, 0]);
        assert!(!stage.timer.stop_within(Duration::ZERO).finished);
        stage.end(time, Ends::Panics);
        assert!(stage.timer.stop().is_empty());
        stage.tells("it has no next run", Fired, [1, 1, 0, 0, 1]);
    }),
    ("its engine is shut down while it runs", |stage| {
        let refuses = |timer: &Timer| timer.start().is_err();
        let unfired = ends(stage, |timer| timer.shutdown_within(HOUR).unfired, refuses);
        assert!(unfired.is_empty(), "it was the last run");
        stage.tells("when it has run", Fired, [1, 1, 0, 0, 0]);
    }),
    ("its engine is stopped after a run", |stage| {
        let time = stage.run([1, 1, 0, 0, 0]);
        stage.end(time, Ends::Returns);
        let unfired = stage.timer.stop();
        next_run_is_handed_back(stage, unfired);
    }),
];

#[test]
fn of_one_whose_engine_ends_while_it_runs() {
    on_every_stage(DURING);
}
