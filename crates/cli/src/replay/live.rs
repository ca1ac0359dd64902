//! A run that receives its steps one at a time, and can be inspected in between.
//!
//! However the steps are split into calls, the lines are those that [`run`](super::run()) writes for all steps at once,
//! and [`Live::done`] is the last one. A run that has failed is over: the effects of the failing step remain, so there
//! is no sensible state to continue from.
//!
//! ```
//! use tourbillon_cli::replay::Live;
//! use tourbillon_cli::scenario::Scenario;
//!
//! let text = r#"{"name": "live", "wheel": {"kind": "hierarchical", "slots": [20]}, "steps": []}"#;
//! let mut live = Live::new(&Scenario::parse(text)?)?;
//! live.tell(r#"[{"schedule": "A", "delay": 22}]"#)?;
//! assert_eq!(live.take_lines(), "{\"at\":0,\"event\":\"scheduled\",\"id\":\"A\",\"due\":22,\"place\":\"L2[1]\"}\n");
//! live.tell(r#"[{"advance": 20}]"#)?;
//! assert_eq!(live.look(|seen| seen.place.map(|place| place.to_string())), [Some("L1[2]".into())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeSet;
use std::{fmt, io};

use tourbillon_wheel::{self as wheel, LevelView, Place, Time};

use super::event::{Event, JsonLines, Sink, Totals};
use super::run::{Run, Whereabouts};
use super::{RunError, hashed, hierarchical};
use crate::scenario::{Further, Id, Kind, Scenario, ScenarioError, Step};

/// The maximum number of lines that one call may produce: a repeating timer could continue forever.
pub const MOST_LINES: usize = 100_000;

/// A run that receives its steps one at a time.
pub struct Live {
    further: Further,
    machine: Box<dyn Machine + Send>,
}

/// The visible state of a timer.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it is pending. If not, the other fields are `None`.
    pub pending: bool,
    /// Its deadline; `None` if it lies past the end of time.
    pub due: Option<u64>,
    /// The tick at which it fires, as a moment of the clock.
    pub fires: Option<u64>,
    /// Its slot; `None` if it is already due.
    pub place: Option<Place>,
}

impl Live {
    /// Runs the steps of the scenario.
    ///
    /// # Errors
    /// As for [`run`](super::run()); also if a step is an expectation, or produces more than [`MOST_LINES`].
    pub fn new(scenario: &Scenario) -> Result<Live, RunError> {
        let mut machine: Box<dyn Machine + Send> = match scenario.wheel.kind {
            Kind::Hierarchical => {
                Box::new(Run::new(scenario, hierarchical(scenario)?, Lines::default()))
            }
            Kind::Hashed => Box::new(Run::new(scenario, hashed(scenario)?, Lines::default())),
        };
        machine.watch();
        machine.steps(&scenario.steps)?;
        Ok(Live { further: Further::new(scenario), machine })
    }

    /// Runs further steps, given as a JSON array.
    ///
    /// # Errors
    /// [`LiveError::Unread`] if the text is not a list of steps; the run is then unchanged. Any other error ends the
    /// run.
    pub fn tell(&mut self, steps: &str) -> Result<(), LiveError> {
        let steps = self.further.read(steps).map_err(LiveError::Unread)?;
        self.machine.learn(self.further.names());
        self.machine.steps(&steps).map_err(LiveError::Over)
    }

    /// The lines since the last call.
    pub fn take_lines(&mut self) -> String {
        self.machine.take_lines()
    }

    /// The line that would end the run now.
    pub fn done(&self) -> String {
        let mut line = JsonLines(Vec::new());
        let written = line.event(self.machine.clock(), &Event::Done(self.machine.totals()));
        written.expect("writing to memory");
        String::from_utf8(line.0).expect("JSON is text")
    }

    /// The timers that were added, moved or removed since the last call.
    pub fn look<T>(&mut self, mut see: impl FnMut(Seen<'_>) -> T) -> Vec<T> {
        let names = self.further.names();
        let touched = self.machine.touched().into_iter();
        touched.map(|id| see(self.machine.seen(id, &names[id.0 as usize]))).collect()
    }

    /// The number of timer names so far.
    pub fn names(&self) -> usize {
        self.further.names().len()
    }

    /// The current time of the clock.
    pub fn clock(&self) -> u64 {
        self.machine.clock()
    }

    /// The totals so far.
    pub fn totals(&self) -> Totals {
        self.machine.totals()
    }

    /// Wakes at which nothing fired.
    pub fn empty_wakes(&self) -> u64 {
        self.machine.empty_wakes()
    }

    /// The next moment at which the drive stops and something can happen: the clock, if a timer is already due.
    pub fn next_stop(&mut self) -> Option<u64> {
        self.machine.next_stop()
    }

    /// The levels of its wheel, lowest first.
    pub fn levels(&self) -> Vec<LevelView> {
        self.machine.levels()
    }
}

/// Why a live run did not run its steps.
#[derive(Debug)]
pub enum LiveError {
    /// The text is not a list of steps. The run is unchanged.
    Unread(ScenarioError),
    /// A step failed, which ended the run.
    Over(RunError),
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::Unread(error) => error.fmt(f),
            LiveError::Over(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LiveError {}

/// A run of either kind of wheel.
trait Machine {
    fn watch(&mut self);
    fn learn(&mut self, names: &[String]);
    fn steps(&mut self, steps: &[Step]) -> Result<(), RunError>;
    fn take_lines(&mut self) -> String;
    fn touched(&mut self) -> BTreeSet<Id>;
    fn seen<'n>(&self, id: Id, name: &'n str) -> Seen<'n>;
    fn clock(&self) -> u64;
    fn totals(&self) -> Totals;
    fn empty_wakes(&self) -> u64;
    fn next_stop(&mut self) -> Option<u64>;
    fn levels(&self) -> Vec<LevelView>;
}

impl<K: wheel::Kind> Machine for Run<K, Lines> {
    fn watch(&mut self) {
        self.touched = Some(BTreeSet::new());
    }

    fn learn(&mut self, names: &[String]) {
        Run::learn(self, names);
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), RunError> {
        self.sink.count = 0;
        for (i, step) in steps.iter().enumerate() {
            let done = match step {
                Step::Expect(_) => Err(RunError::at_once("expectations are for replay".into())),
                step => self.step(step),
            };
            done.map_err(|error| error.or_at(|| format!("steps[{i}]")))?;
        }
        Ok(())
    }

    fn take_lines(&mut self) -> String {
        let text = std::mem::take(&mut self.sink.text);
        String::from_utf8(text).expect("JSON is text")
    }

    fn touched(&mut self) -> BTreeSet<Id> {
        self.touched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn seen<'n>(&self, id: Id, name: &'n str) -> Seen<'n> {
        let pending = self.pending(id);
        let due = pending.and_then(|pending| u64::try_from(pending.due).ok());
        let fires = match pending.map(|pending| pending.whereabouts) {
            Some(Whereabouts::Wheel(key)) => self.wheel.due(key).map(Time::units),
            _ => None,
        };
        Seen { name, pending: pending.is_some(), due, fires, place: self.place(id) }
    }

    fn clock(&self) -> u64 {
        self.clock
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn empty_wakes(&self) -> u64 {
        self.totals.wakes - self.passes
    }

    fn next_stop(&mut self) -> Option<u64> {
        if self.stopped {
            return None;
        }
        // A timer that is already due is in no slot.
        let due = self.wheel.next_due().map(Time::units).filter(|due| *due <= self.clock);
        due.map(|_| self.clock).or_else(|| Run::next_stop(self))
    }

    fn levels(&self) -> Vec<LevelView> {
        self.wheel.levels().collect()
    }
}

/// Collects lines in memory, up to a limit.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    count: usize,
}

impl Sink for Lines {
    fn event(&mut self, at: u64, event: &Event<'_>) -> io::Result<()> {
        self.count += 1;
        if self.count > MOST_LINES {
            let message = format!(
                "more than {MOST_LINES} events in one go: go a shorter way, or slow down what repeats"
            );
            return Err(io::Error::other(message));
        }
        JsonLines(&mut self.text).event(at, event)
    }
}
