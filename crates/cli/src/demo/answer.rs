//! What is sent to the page: the lines of `replay`, and what changed.
//!
//! Times are written as strings: a number of JavaScript holds only 53 bits. A timer is `[name, due, fires, level,
//! slot]`; one that is in no slot, because it is already due or never will be, has level 0.

use serde_json::{Value, json};
use tourbillon_wheel::Place;

use crate::replay::{Live, Seen};

/// The state after a message; with the levels of the wheel if it was the first.
pub(super) fn state(live: &mut Live, first: bool) -> String {
    let mut gone = Vec::new();
    let mut timers = Vec::new();
    live.look(|seen| {
        if seen.pending { timers.push(timer(&seen)) } else { gone.push(seen.name.to_owned()) }
    });
    let totals = live.totals();
    let mut state = json!({
        "clock": time(live.clock()),
        "stop": live.next_stop().map(time),
        "empty": time(live.empty_wakes()),
        "wakes": time(totals.wakes),
        "pending": totals.pending,
        "fired": totals.fired,
        "cancelled": totals.cancelled,
        "cascades": totals.cascades,
        "lines": live.take_lines(),
        "done": live.done(),
        "timers": timers,
        "gone": gone,
    });
    if first {
        let levels = live.levels();
        state["levels"] =
            levels.iter().map(|level| json!([level.slots, time(level.ticks_a_slot)])).collect();
    }
    state.to_string()
}

/// A refusal, of a message or of the whole run.
pub(super) fn wrong(what: &str, over: bool) -> String {
    json!({ "error": what, "over": over }).to_string()
}

fn timer(seen: &Seen<'_>) -> Value {
    let (level, slot) = match seen.place {
        Some(Place::Level { level, slot }) => (level, slot),
        Some(Place::Ring { slot, .. }) => (1, slot),
        Some(Place::Due) | None => (0, 0),
    };
    json!([seen.name, seen.due.map(time), seen.fires.map(time), level, slot])
}

fn time(units: u64) -> String {
    units.to_string()
}
