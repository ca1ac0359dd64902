//! Follows one timer on a real wheel, from its insertion until it fires.

use tourbillon_wheel::{
    self as wheel, HashedWheel, HierarchicalWheel, LevelView, Moved, Place, Progress, Time, Wheel,
};

use crate::scenario::{Kind, WheelSpec};

/// The path of a timer.
#[derive(Debug)]
pub(super) struct Journey {
    pub(super) due: u64,
    /// The levels of the wheel, lowest first.
    pub(super) levels: Vec<LevelView>,
    /// The slots it was in, in order; the first is where it was filed.
    pub(super) stays: Vec<Stay>,
    /// The clock when it fired; `None` if its tick lies past the end of time.
    pub(super) fired: Option<u64>,
}

/// A slot that the timer was in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    /// The clock when it arrived there.
    pub(super) clock: u64,
    pub(super) place: Place,
    /// The first and last tick that the slot covers, as moments of the clock.
    pub(super) range: Option<(u64, u64)>,
}

/// Follows a timer that is scheduled at `clock` and due at `due` through a wheel, slot by slot.
///
/// Its path does not depend on the drive.
pub(super) fn follow(spec: &WheelSpec, clock: u64, due: u64) -> Result<Journey, String> {
    let (start, tick) = (Time::new(spec.start), spec.tick.get());
    let (clock, due) = (Time::new(clock), Time::new(due));
    match spec.kind {
        Kind::Hierarchical => {
            let wheel = HierarchicalWheel::with_levels(start, tick, &spec.slots);
            walk(wheel.map_err(|error| error.to_string())?, clock, due, |wheel| wheel.next_slot())
        }
        Kind::Hashed => {
            let wheel = HashedWheel::with_slots(start, tick, spec.slots[0]);
            // A hashed wheel does not cascade, so nothing happens on the way to the deadline.
            walk(wheel.map_err(|error| error.to_string())?, clock, due, |wheel| wheel.next_due())
        }
    }
}

fn walk<K: wheel::Kind>(
    mut wheel: Wheel<(), K>,
    clock: Time,
    due: Time,
    next: impl Fn(&mut Wheel<(), K>) -> Option<Time>,
) -> Result<Journey, String> {
    // The wheel is empty: this only moves the hand.
    let _ = wheel.advance(clock, usize::MAX);
    wheel.insert(due, ()).map_err(|full| full.to_string())?;
    let place = wheel.place_of(due);
    let due = due.units();
    let mut journey =
        Journey { due, levels: wheel.levels().collect(), stays: Vec::new(), fired: None };
    journey.stays.push(stay(&wheel, place));
    while journey.fired.is_none() {
        let Some(next) = next(&mut wheel) else { break };
        let mut moved: Vec<Moved> = Vec::new();
        match wheel.advance_watched(next, usize::MAX, |step| moved.push(step)) {
            Progress::OutOfMemory => return Err("no memory to hand the timer down".into()),
            Progress::Done | Progress::More => {}
        }
        journey.stays.extend(moved.into_iter().map(|step| stay(&wheel, step.to)));
        journey.fired = wheel.pop().map(|_| next.units());
    }
    Ok(journey)
}

fn stay<K: wheel::Kind>(wheel: &Wheel<(), K>, place: Place) -> Stay {
    let range = wheel.range(place).map(|(first, last)| (first.units(), last.units()));
    Stay { clock: wheel.now().units(), place, range }
}
