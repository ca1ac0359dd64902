//! A verb that is refused says why: no room is not a stop, and neither is the want of a thread (`spawn_hooks.rs`).

use crate::common::{HOUR, PLACES, running_on};
use crate::spawn_hooks::VERBS;
use tourbillon::{ScheduleError, Timer};

#[test]
fn a_full_timer_says_that_there_is_no_room_and_a_stopped_one_that_it_was_stopped() {
    for place in PLACES {
        let timer = running_on(place).limit(1).build().unwrap();
        let key = timer.arm(HOUR, |_| ()).unwrap();
        // To start is no matter of room.
        for (name, verb) in VERBS.iter().filter(|(name, _)| *name != "start") {
            let told = verb(&timer).to_string();
            assert!(told.contains("no room") && !told.contains("stop"), "{name}: {told}");
        }
        assert!(timer.is_pending(key) && timer.len() == 1);
        assert_eq!(timer.stop().len(), 1);
        for (name, verb) in VERBS {
            let told = verb(&timer).to_string();
            assert!(told.contains("stopped") && !told.contains("room"), "{name}: {told}");
        }
    }
}

#[test]
fn values_too() {
    let engine = Timer::builder().limit(1).deliver(|_| ()).unwrap();
    let key = engine.schedule(HOUR, 1).unwrap();
    let now = engine.now();
    for refused in [engine.schedule(HOUR, 7), engine.schedule_at(now, 7)] {
        assert!(matches!(refused, Err(ScheduleError::Full(7))));
    }
    assert_eq!(engine.cancel(key), Some(1));
    engine.stop();
    for refused in [engine.schedule(HOUR, 7), engine.schedule_at(now, 7)] {
        assert!(matches!(refused, Err(ScheduleError::Stopped(7))));
    }
}
