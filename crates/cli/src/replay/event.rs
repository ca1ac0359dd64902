//! The events of a replay, and how they are written: one JSON object per line, `at` and `event` first.
//!
//! A run passes each event to a [`Sink`]. [`JsonLines`] writes them; a test or a page may collect them instead.

use std::io::{self, Write};

use serde_json::Value;
use tourbillon_wheel::Place;

/// An event of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A timer was scheduled.
    Scheduled {
        /// Its name.
        id: &'a str,
        /// Its deadline.
        due: u64,
        /// Where it was filed; [`Place::Due`] if it is already due.
        place: Place,
    },
    /// A timer cascaded to a lower level.
    Cascaded {
        /// Its name.
        id: &'a str,
        /// Where it was.
        from: Place,
        /// Where it is.
        to: Place,
    },
    /// A timer fired.
    Fired {
        /// Its name.
        id: &'a str,
        /// The requested deadline.
        due: u64,
    },
    /// A cancel was requested.
    Cancelled {
        /// Its name.
        id: &'a str,
        /// Whether it was pending; it then never fires.
        ok: bool,
    },
    /// A reschedule was requested.
    Rescheduled {
        /// Its name.
        id: &'a str,
        /// Its new deadline and place, if it was pending.
        moved: Option<(u64, Place)>,
    },
    /// A timer was not scheduled.
    Rejected {
        /// Its name.
        id: &'a str,
        /// The reason.
        reason: Reason,
    },
    /// The engine stopped.
    Stopped {
        /// The timers that were still pending, by deadline, then in the order of scheduling.
        unfired: &'a [&'a str],
    },
    /// The run is over.
    Done(Totals),
    /// An expectation failed: the run is over.
    Failed {
        /// The step, counted from 0.
        step: usize,
        /// The key that failed, with the expected value.
        expected: Value,
        /// The key with the actual value.
        got: Value,
    },
}

/// Why a timer was not scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The scenario's limit on pending timers is reached.
    Limit,
    /// The engine has stopped.
    Stopped,
}

/// The totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Timers still pending.
    pub pending: u64,
    /// Timers that fired.
    pub fired: u64,
    /// Cancels that succeeded.
    pub cancelled: u64,
    /// Stops of the clock, and each further pass at one stop.
    pub wakes: u64,
    /// Cascades of timers.
    pub cascades: u64,
}

/// Receives the events of a run, in order.
pub trait Sink {
    /// Receives an event at a moment of the clock.
    ///
    /// # Errors
    /// If the event cannot be recorded, which ends the run.
    fn event(&mut self, at: u64, event: &Event<'_>) -> io::Result<()>;
}

impl<S: Sink> Sink for &mut S {
    fn event(&mut self, at: u64, event: &Event<'_>) -> io::Result<()> {
        (**self).event(at, event)
    }
}

/// Writes each event as a line of JSON.
#[derive(Debug)]
pub struct JsonLines<W>(pub W);

impl<W: Write> Sink for JsonLines<W> {
    fn event(&mut self, at: u64, event: &Event<'_>) -> io::Result<()> {
        write_event(&mut self.0, at, event)
    }
}

fn write_event(out: &mut impl Write, at: u64, event: &Event<'_>) -> io::Result<()> {
    match event {
        Event::Scheduled { id, due, place } => {
            head(out, at, "scheduled", id)?;
            filed(out, *due, *place)?;
        }
        Event::Cascaded { id, from, to } => {
            head(out, at, "cascaded", id)?;
            write!(out, r#","from":"{from}","to":"{to}""#)?;
        }
        Event::Fired { id, due } => {
            head(out, at, "fired", id)?;
            write!(out, r#","due":{due}"#)?;
        }
        Event::Cancelled { id, ok } => {
            head(out, at, "cancelled", id)?;
            write!(out, r#","ok":{ok}"#)?;
        }
        Event::Rescheduled { id, moved } => {
            head(out, at, "rescheduled", id)?;
            write!(out, r#","ok":{}"#, moved.is_some())?;
            if let Some((due, place)) = moved {
                filed(out, *due, *place)?;
            }
        }
        Event::Rejected { id, reason } => {
            head(out, at, "rejected", id)?;
            let reason = match reason {
                Reason::Limit => "limit",
                Reason::Stopped => "stopped",
            };
            write!(out, r#","reason":"{reason}""#)?;
        }
        Event::Stopped { unfired } => {
            write!(out, r#"{{"at":{at},"event":"stopped","unfired":"#)?;
            string_list(out, unfired)?;
        }
        Event::Done(totals) => {
            let Totals { pending, fired, cancelled, wakes, cascades } = totals;
            write!(out, r#"{{"at":{at},"event":"done","pending":{pending},"fired":{fired}"#)?;
            write!(out, r#","cancelled":{cancelled},"wakes":{wakes},"cascades":{cascades}"#)?;
        }
        Event::Failed { step, expected, got } => {
            write!(
                out,
                r#"{{"at":{at},"event":"failed","step":{step},"expected":{expected},"got":{got}"#
            )?;
        }
    }
    out.write_all(b"}\n")
}

fn head(out: &mut impl Write, at: u64, event: &str, id: &str) -> io::Result<()> {
    write!(out, r#"{{"at":{at},"event":"{event}","id":"#)?;
    json_string(out, id)
}

/// Writes a deadline and, unless it has passed, the place where the timer was filed.
fn filed(out: &mut impl Write, due: u64, place: Place) -> io::Result<()> {
    write!(out, r#","due":{due}"#)?;
    if place != Place::Due {
        write!(out, r#","place":"{place}""#)?;
    }
    if let Place::Ring { rounds, .. } = place {
        write!(out, r#","rounds":{rounds}"#)?;
    }
    Ok(())
}

fn string_list(out: &mut impl Write, list: &[&str]) -> io::Result<()> {
    for (i, text) in list.iter().enumerate() {
        out.write_all(if i == 0 { b"[" } else { b"," })?;
        json_string(out, text)?;
    }
    out.write_all(if list.is_empty() { b"[]" } else { b"]" })
}

/// Writes a JSON string, quoted and escaped.
pub(super) fn json_string(out: &mut impl Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(out, text).map_err(io::Error::from)
}
