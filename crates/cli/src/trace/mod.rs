//! `tourbillon trace`: the path of one timer, as text for people.
//!
//! [`Settings`] holds the command's arguments. [`trace`] checks them, follows the timer on a real wheel and describes
//! its path: where it is stored and why, when it cascades, when it fires, and what each drive costs. The text has
//! colours as ANSI codes; the caller strips them if its output is not a terminal.

mod amount;
mod journey;
mod picture;
mod tell;
mod wrap;

use std::io;
use std::num::NonZeroU64;

use anstyle::{AnsiColor, Style};
use tourbillon_wheel::MAX_SLOTS;

pub use amount::Amount;

use crate::replay::{self, Event, Sink, Totals};
use crate::scenario::{Drive, Id, Kind, Scenario, Schedule, Step, WheelSpec, When};
use amount::Unit;

/// The style of the timer.
const TIMER: Style = AnsiColor::Yellow.on_default().bold();
/// The style of the hand.
const HAND: Style = AnsiColor::Cyan.on_default();
/// The style of moments of the clock.
const STRONG: Style = Style::new().bold();

/// The arguments of a trace. Every one has a default.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The timer's delay.
    pub delay: Option<Amount>,
    /// The slots of each level, lowest first, as in `60,60,24`.
    pub slots: Option<String>,
    /// What a slot of the lowest level covers; determines whether the trace uses numbers or durations.
    pub tick: Option<Amount>,
    /// The clock when the timer is scheduled; the wheel began at 0.
    pub start: Option<Amount>,
    /// Describe and count only this drive.
    pub drive: Option<Drive>,
    /// A hashed wheel instead of a hierarchical one.
    pub hashed: bool,
}

/// A trace with all settings resolved.
#[derive(Debug)]
struct Plan {
    unit: Unit,
    /// The wheel, whose clock begins at 0.
    wheel: WheelSpec,
    /// The clock when the timer is scheduled.
    start: u64,
    delay: u64,
    due: u64,
    drive: Option<Drive>,
}

/// Follows a timer and returns a description of its path.
///
/// # Errors
/// Which setting is invalid, and what would be valid.
pub fn trace(settings: &Settings) -> Result<Vec<u8>, String> {
    let plan = plan(settings)?;
    let journey = journey::follow(&plan.wheel, plan.start, plan.due)?;
    let drives = plan.drive.map_or(Drive::ALL.to_vec(), |drive| vec![drive]);
    let costs = drives
        .into_iter()
        .map(|drive| Ok((drive, wakes(&plan, drive)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let mut text = Vec::new();
    tell::tell(&mut text, &plan, &journey, &costs).map_err(|error| error.to_string())?;
    Ok(wrap::wrap(&text))
}

fn plan(settings: &Settings) -> Result<Plan, String> {
    let kind = if settings.hashed { Kind::Hashed } else { Kind::Hierarchical };
    let slots = slots(settings, kind)?;
    let delay = settings.delay.unwrap_or(match settings.tick {
        Some(Amount::Plain(_)) => Amount::Plain(5420),
        _ => Amount::Nanos(5_420_000_000_000),
    });
    let tick = settings.tick.unwrap_or({
        let (unit, units) = delay.split();
        match unit {
            Unit::Plain => Amount::Plain(1),
            Unit::Nanos => Amount::Nanos(unit.usual_tick(units)),
        }
    });
    let (unit, tick_units) = tick.split();
    let in_unit = |amount: Amount, what: &str| match amount.split() {
        (_, 0) => Ok(0),
        (of, units) if of == unit => Ok(units),
        (Unit::Plain, units) => Err(format!(
            "{what}: {units} has no unit, but the tick is {tick}: write {units}s or {units}ms"
        )),
        (Unit::Nanos, _) => Err(format!(
            "{what}: {amount} has a unit, but the tick {tick} has none: give one, as --tick 1s"
        )),
    };
    let tick = NonZeroU64::new(tick_units)
        .ok_or("--tick: 0 is no length of time: give 1 or more, or a duration (10ms)")?;
    let start = settings.start.map_or(Ok(0), |start| in_unit(start, "--start"))?;
    let delay = in_unit(delay, "DELAY")?;
    let due = start.saturating_add(delay);
    Ok(Plan {
        unit,
        wheel: WheelSpec { kind, tick, slots, start: 0 },
        start,
        delay,
        due,
        drive: settings.drive,
    })
}

/// Reads the list of slots, as in `60,60,24`. All invalid numbers get the same message.
fn slots(settings: &Settings, kind: Kind) -> Result<Vec<u32>, String> {
    let (usual, least) = match kind {
        Kind::Hierarchical => ("60,60,24", 2),
        Kind::Hashed => ("60", 1),
    };
    let one = |slots: &str| match slots.trim().parse() {
        Ok(number) if (least..=MAX_SLOTS).contains(&number) => Ok(number),
        _ => Err(format!(
            "--slots: {slots:?} is not a number of slots: give {least} to {MAX_SLOTS}, as in {usual}"
        )),
    };
    let text = settings.slots.as_deref().unwrap_or(usual);
    let slots = text.split(',').map(one).collect::<Result<Vec<u32>, String>>()?;
    if kind == Kind::Hashed && slots.len() > 1 {
        let count = slots.len();
        return Err(format!("--slots: a hashed wheel has one ring: give one number, not {count}"));
    }
    Ok(slots)
}

/// The wakes that a drive needs for the timer: counted by a replay, so that the two never disagree.
fn wakes(plan: &Plan, drive: Drive) -> Result<u64, String> {
    let tick = plan.wheel.tick.get();
    let late = plan.due % tick;
    let until = if late == 0 { plan.due } else { plan.due.saturating_add(tick - late) };
    let schedule = Schedule { id: Id(0), when: When::At(plan.due), every: None, then: None };
    let before = vec![Step::Advance(plan.start)];
    let whole =
        vec![Step::Advance(plan.start), Step::Schedule(schedule.into()), Step::Advance(until)];
    Ok(count(plan, drive, whole)? - count(plan, drive, before)?)
}

/// The wakes of a replay of these steps.
fn count(plan: &Plan, drive: Drive, steps: Vec<Step>) -> Result<u64, String> {
    let scenario = Scenario {
        name: String::new(),
        about: None,
        wheel: plan.wheel.clone(),
        drive,
        limit: None,
        budget: None,
        steps,
        ids: vec!["A".into()],
    };
    let mut last = LastTotals(Totals::default());
    replay::run(&scenario, &mut last).map_err(|error| error.to_string())?;
    Ok(last.0.wakes)
}

struct LastTotals(Totals);

impl Sink for LastTotals {
    fn event(&mut self, _at: u64, event: &Event<'_>) -> io::Result<()> {
        if let Event::Done(totals) = event {
            self.0 = *totals;
        }
        Ok(())
    }
}
