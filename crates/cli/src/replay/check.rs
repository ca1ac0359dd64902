//! Checks expectations against the state of a run.

use serde_json::{Map, Value, json};
use tourbillon_wheel::{self as wheel, Place};

use super::event::Sink;
use super::run::{Run, Whereabouts};
use crate::scenario::{Check, Expect, Id};

/// The expected and the actual value, each as an object with the key that failed.
type Broken = (Value, Value);

impl<K: wheel::Kind, S: Sink> Run<K, S> {
    /// The first check that fails.
    pub(super) fn broken(&mut self, expect: &Expect) -> Option<Broken> {
        expect.checks.iter().find_map(|check| self.broken_check(check))
    }

    fn broken_check(&mut self, check: &Check) -> Option<Broken> {
        match check {
            Check::Pending(expected) => {
                differ("pending", json!(expected), json!(self.totals.pending))
            }
            Check::NextDue(expected) => {
                let found = self.wheel.next_due().map(|due| due.units().max(self.clock));
                differ("next_due", json!(expected), json!(found))
            }
            Check::Place(expected) => expected.iter().find_map(|(id, place)| {
                self.differ_for(
                    "place",
                    *id,
                    json!(place),
                    json!(self.place(*id).map(|found| found.to_string())),
                )
            }),
            Check::Rounds(expected) => expected.iter().find_map(|(id, rounds)| {
                let found = match self.pending(*id).map(|pending| pending.filed) {
                    Some(Place::Ring { rounds, .. }) => Some(rounds),
                    _ => None,
                };
                self.differ_for("rounds", *id, json!(rounds), json!(found))
            }),
            Check::Fired(expected) => self.broken_fired(expected),
            Check::Wakes(expected) => {
                differ("wakes", json!(expected), json!(self.totals.wakes - self.before.wakes))
            }
            Check::Cascades(expected) => differ(
                "cascades",
                json!(expected),
                json!(self.totals.cascades - self.before.cascades),
            ),
        }
    }

    /// The slot that a timer is in now. `None` if it is already due.
    pub(super) fn place(&self, id: Id) -> Option<Place> {
        let pending = self.pending(id)?;
        // The wheel moves a timer lazily: until the clock moves, a rescheduled timer is reported at the place where it
        // was filed, as its event said.
        let place = match (pending.moved, pending.whereabouts) {
            (Some(clock), _) if clock == self.clock => Some(pending.filed),
            (_, Whereabouts::Wheel(key)) => self.wheel.place(key),
            (_, Whereabouts::Ready | Whereabouts::Never) => None,
        };
        place.filter(|place| *place != Place::Due)
    }

    fn broken_fired(&self, expected: &[(Id, u64)]) -> Option<Broken> {
        if by_moment(expected) == by_moment(&self.fired) {
            return None;
        }
        let show = |list: &[(Id, u64)]| -> Value {
            list.iter().map(|&(id, clock)| json!([self.name_of(id), clock])).collect()
        };
        differ("fired", show(expected), show(&self.fired))
    }

    fn differ_for(&self, key: &str, id: Id, expected: Value, got: Value) -> Option<Broken> {
        let of = |value| Value::Object(Map::from_iter([(self.name_of(id).to_owned(), value)]));
        differ(key, of(expected), of(got))
    }
}

fn differ(key: &str, expected: Value, got: Value) -> Option<Broken> {
    (expected != got).then(|| (json!({ key: expected }), json!({ key: got })))
}

/// The same list with the timers of each moment in a fixed order, because their order is unspecified.
///
/// The order of the moments matters, so this sorts only runs of equal moments.
fn by_moment(fired: &[(Id, u64)]) -> Vec<(Id, u64)> {
    let mut fired = fired.to_vec();
    for moment in fired.chunk_by_mut(|a, b| a.1 == b.1) {
        moment.sort_unstable();
    }
    fired
}
