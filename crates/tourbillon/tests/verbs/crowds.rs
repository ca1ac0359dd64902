//! Many timers are due at the same moment: all of them fire, however small the driver's budget.
//!
//! In real time, milliseconds of it: faces with a thread of their own are tested with that thread.

use std::sync::mpsc;
use std::time::Duration;

use tourbillon::Builder;

use crate::common::faces::{FACES, Face, WALL_FACES};
use crate::common::{MS, PLACES, case, running_on};

/// The number of timers on each face.
const CROWD: usize = 25;

/// Budgets of the driver: a crowd of at least that many takes several passes.
const BUDGETS: [usize; 3] = [1, 7, 25];

fn open(face: &Face, builder: Builder) {
    let arm = (face.open)(builder);
    let (told, happened) = mpsc::channel();
    for n in 0..CROWD {
        let told = told.clone();
        arm(MS, Box::new(move || told.send(n).unwrap()));
    }
    let happened = (0..CROWD).map(|_| happened.recv_timeout(Duration::from_secs(5)));
    let mut all: Vec<usize> = happened.map(|n| n.expect("it happens")).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..CROWD), "each of them once");
}

#[test]
fn all_that_is_due_at_once_happens() {
    for face in FACES.iter().chain(WALL_FACES) {
        for place in if face.callbacks { &PLACES[..] } else { &PLACES[..1] } {
            for budget in BUDGETS {
                case(format!("{}, {place}, a budget of {budget}", face.name), move || {
                    let builder =
                        if face.callbacks { running_on(place) } else { Builder::default() };
                    open(face, builder.shards(1).budget(budget));
                });
            }
        }
    }
}
