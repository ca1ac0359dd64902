//! The answers to the page: the lines of `replay`, and what changed.
//!
//! Times are strings, because a JavaScript number holds only 53 bits. A timer is `[name, due, fires, level, slot]`; a
//! timer in no slot, because it is already due or never will be, has level 0.

use serde_json::{Value, json};
use tourbillon_wheel::Place;

use crate::replay::{Live, Seen};

/// The state after a message; after the first message, with the levels of the wheel.
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

/// An error, of one message or of the whole run.
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
