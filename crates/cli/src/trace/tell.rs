//! The text of a trace.

use std::io::{self, Write};

use tourbillon_wheel::Place;

use super::journey::{Journey, Stay};
use super::picture::draw;
use super::{HAND, Plan, STRONG, TIMER};
use crate::scenario::{Drive, Kind};

/// The number of turns printed at each end, if a hashed wheel makes many turns before the timer is due.
const TURNS_TOLD: u64 = 3;

pub(super) fn tell(
    out: &mut Vec<u8>,
    plan: &Plan,
    journey: &Journey,
    costs: &[(Drive, u64)],
) -> io::Result<()> {
    Teller { plan, journey }.tell(out, costs)
}

struct Teller<'a> {
    plan: &'a Plan,
    journey: &'a Journey,
}

impl Teller<'_> {
    fn tell(&self, out: &mut Vec<u8>, costs: &[(Drive, u64)]) -> io::Result<()> {
        self.title(out)?;
        self.summary(out)?;
        for (i, stay) in self.journey.stays.iter().enumerate() {
            let from = i.checked_sub(1).map(|before| self.journey.stays[before].place);
            self.stay(out, stay, from)?;
        }
        self.turns(out)?;
        self.end(out)?;
        self.costs(out, costs)
    }

    fn title(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let Plan { wheel, delay, .. } = self.plan;
        let slots: Vec<_> = wheel.slots.iter().map(u32::to_string).collect();
        let kind = match wheel.kind {
            Kind::Hierarchical => "hierarchical",
            Kind::Hashed => "hashed",
        };
        let (delay, tick, slots) =
            (self.show(*delay), self.show(wheel.tick.get()), slots.join(", "));
        writeln!(
            out,
            "A timer with a delay of {delay}, on a {kind} wheel of {slots} slots with a tick of {tick}"
        )?;
        if self.plan.start > 0 {
            let (start, due) = (self.show(self.plan.start), self.show(self.plan.due));
            writeln!(out, "The clock is at {start}, so it is due at {due}")?;
        }
        writeln!(out)
    }

    fn summary(&self, out: &mut Vec<u8>) -> io::Result<()> {
        write!(out, "  {STRONG}")?;
        for stay in &self.journey.stays {
            match stay.place {
                Place::Due => write!(out, "already due → ")?,
                Place::Ring { rounds: 1, .. } => write!(out, "{} and 1 round → ", stay.place)?,
                Place::Ring { rounds, .. } => write!(out, "{} and {rounds} rounds → ", stay.place)?,
                Place::Level { .. } => write!(out, "{} → ", stay.place)?,
            }
        }
        let end = if self.journey.fired.is_some() { "fired" } else { "pending for ever" };
        writeln!(out, "{end}{STRONG:#}\n")?;
        writeln!(
            out,
            "  {HAND}▲{HAND:#} the hand   {TIMER}●{TIMER:#} the timer   {TIMER}◉{TIMER:#} both in one slot\n"
        )
    }

    fn stay(&self, out: &mut Vec<u8>, stay: &Stay, from: Option<Place>) -> io::Result<()> {
        match from {
            // With the drive `due`, the clock does not stop here.
            Some(_) if self.plan.drive == Some(Drive::Due) => {
                write!(out, "{STRONG}on the way, at {}{STRONG:#}  ", self.show(stay.clock))?;
            }
            _ => self.clock(out, stay.clock)?,
        }
        match (stay.place, from) {
            (Place::Due, _) => return writeln!(out, "already due: it fires with the next advance"),
            (place, None) => write!(out, "filed in {place}")?,
            (place, Some(from)) => write!(out, "{from} begins and cascades: now in {place}")?,
        }
        match (stay.place, stay.range) {
            (Place::Level { .. }, Some((first, last))) if first == last => {
                writeln!(out, ", the slot of {}", self.show(first))?;
            }
            (Place::Level { .. }, Some((first, last))) => {
                writeln!(out, ", the slot of {} … {}", self.show(first), self.show(last))?;
            }
            _ => writeln!(out)?,
        }
        self.why(out, stay)?;
        self.picture(out, stay.clock, Some(stay.place))
    }

    /// The arithmetic that determined the place.
    fn why(&self, out: &mut Vec<u8>, stay: &Stay) -> io::Result<()> {
        let (now, due) = (self.tick_of(stay.clock), self.due_tick());
        let left = due - now;
        match stay.place {
            Place::Level { level, .. } => {
                let (below, here) = (self.span(level as usize - 1), self.span(level as usize));
                write!(out, "  {left} {} left: less than {here}", ticks(left))?;
                if level > 1 {
                    write!(
                        out,
                        ", so level {level} has room; {below} or more, so level {} has not",
                        level - 1
                    )?;
                }
                writeln!(out)
            }
            Place::Ring { slot, rounds } => {
                let slots = self.plan.wheel.slots[0];
                write!(out, "  due tick {due} mod {slots} is slot {slot}; ")?;
                writeln!(
                    out,
                    "{left} {} left, divided by {slots}, is {rounds} full turns",
                    ticks(left)
                )
            }
            Place::Due => Ok(()),
        }
    }

    /// The turns in which the hand of a hashed wheel passes the timer without firing it.
    fn turns(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let (Some(Place::Ring { .. }), Some(fired)) =
            (self.journey.stays.last().map(|s| s.place), self.journey.fired)
        else {
            return Ok(());
        };
        if self.plan.drive == Some(Drive::Due) {
            return Ok(());
        }
        let slots = u64::from(self.plan.wheel.slots[0]);
        let left = self.due_tick() - self.tick_of(self.plan.start);
        let turns = left.saturating_sub(1) / slots;
        // Counted backwards from the last: there may be too many turns to print.
        let told: Vec<u64> = match turns.checked_sub(2 * TURNS_TOLD) {
            None | Some(0) => (1..=turns).rev().collect(),
            Some(_) => {
                (turns - TURNS_TOLD + 1..=turns).rev().chain((1..=TURNS_TOLD).rev()).collect()
            }
        };
        for left in told {
            if left == TURNS_TOLD && turns > 2 * TURNS_TOLD {
                writeln!(out, "  … {} more turns …", turns - 2 * TURNS_TOLD)?;
            }
            self.clock(out, fired - left * slots * self.plan.wheel.tick.get())?;
            let s = if left == 1 { "" } else { "s" };
            writeln!(out, "the hand meets the slot; {left} more turn{s} to go")?;
        }
        Ok(())
    }

    fn end(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(fired) = self.journey.fired else {
            return writeln!(
                out,
                "Its tick lies past the end of time: it stays pending and never fires"
            );
        };
        self.clock(out, fired)?;
        match fired.saturating_sub(self.journey.due) {
            0 => writeln!(out, "fired, exactly when it was due")?,
            late => {
                let (due, late) = (self.show(self.journey.due), self.show(late));
                writeln!(
                    out,
                    "fired. Due at {due}, it waited {late} for the tick: never early, less than one tick late"
                )?;
            }
        }
        self.picture(out, fired, None)
    }

    fn costs(&self, out: &mut Vec<u8>, costs: &[(Drive, u64)]) -> io::Result<()> {
        let hashed = self.plan.wheel.kind == Kind::Hashed;
        writeln!(out, "What it costs to drive it there")?;
        let width = costs.iter().map(|(_, wakes)| wakes.to_string().len()).max().unwrap_or(1);
        for (drive, wakes) in costs {
            let stops = match drive {
                Drive::Tick => "stops at every tick",
                Drive::Bucket if hashed => "stops where the hand meets a timer",
                Drive::Bucket => "stops where an occupied slot begins",
                Drive::Due => "stops only where a timer is due",
            };
            let s = if *wakes == 1 { " " } else { "s" };
            writeln!(
                out,
                "  {:<6}  {STRONG}{wakes:>width$}{STRONG:#} wake{s}  {stops}",
                drive.name()
            )?;
        }
        Ok(())
    }

    /// The rings at a moment of the clock.
    fn picture(&self, out: &mut Vec<u8>, clock: u64, place: Option<Place>) -> io::Result<()> {
        let top = self.journey.stays.iter().map(|stay| match stay.place {
            Place::Level { level, .. } => level as usize,
            Place::Ring { .. } | Place::Due => 1,
        });
        let top = top.max().unwrap_or(1);
        draw(out, &self.journey.levels, top, self.tick_of(clock), place)?;
        writeln!(out)
    }

    fn clock(&self, out: &mut Vec<u8>, clock: u64) -> io::Result<()> {
        write!(out, "{STRONG}clock {}{STRONG:#}  ", self.show(clock))
    }

    fn show(&self, units: u64) -> String {
        self.plan.unit.show(units)
    }

    fn tick_of(&self, clock: u64) -> u64 {
        clock / self.plan.wheel.tick
    }

    fn due_tick(&self) -> u64 {
        self.journey.due.div_ceil(self.plan.wheel.tick.get())
    }

    /// The number of ticks that the levels up to this one span.
    fn span(&self, level: usize) -> u128 {
        let Some(top) = level.checked_sub(1) else { return 1 };
        let level = self.journey.levels[top];
        u128::from(level.ticks_a_slot) * u128::from(level.slots)
    }
}

fn ticks(count: u64) -> &'static str {
    if count == 1 { "tick" } else { "ticks" }
}
