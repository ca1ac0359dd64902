//! A dump: one state of a store as lines of JSON, as `tourbillon dump` and a running server write it.
//!
//! The first line names the store. One line per queue follows, with its settings, then one per timer, including dead
//! and remembered ones. A timer's line is as the HTTP interface shows it, plus its payload, the values of its headers,
//! and the occurrence postponed by an extra run. An unreadable row becomes a line that says where and why.
//!
//! Not in a dump: when a remembered or dead timer is forgotten; that time restarts at loading. On loading, timers that
//! were out become due, attempt numbers keep rising, and the store gets a new name, so that no delivery reuses an
//! earlier identity.

mod line;

use std::collections::VecDeque;

use crate::message::state;
use crate::record::{Place, Record};
use crate::store::{Image, Snapshot, StoreError};
use crate::values::Moment;
pub use line::{Line, Timer};

/// The lines of a dump, each with its line end.
///
/// An unreadable row yields an error, and the rows after it follow. The writer of the dump replaces the error by an
/// [`unreadable`] line.
///
/// ```
/// use std::time::Duration;
/// use tourbillon_durable::dump::Dump;
/// use tourbillon_durable::{Durable, NewTimer};
///
/// let durable = Durable::memory()?;
/// durable.queue("jobs")?.schedule(NewTimer::after(Duration::from_secs(60)).key("a")?).wait()?;
/// let lines: Vec<String> =
///     Dump::new(durable.image().wait()?, durable.now()).collect::<Result<_, _>>()?;
/// assert_eq!(lines[0], format!("{{\"store\":\"{}\"}}\n", durable.name()));
/// assert!(lines[1].starts_with(r#"{"queue":"jobs","settings":{"paused":false,"#));
/// assert!(lines[2].starts_with(r#"{"queue":"jobs","key":"a","generation":0,"state":"scheduled","#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dump {
    /// Lines before the timers.
    first: VecDeque<String>,
    timers: Snapshot,
    wall: Moment,
}

impl Dump {
    /// Dumps that state; `now` decides what is due.
    pub fn new(image: Image, now: Moment) -> Self {
        let name = image.shard.name();
        let mut first = VecDeque::from([text(|out| line::write_store(&name, out))]);
        first.extend(
            image
                .queues()
                .map(|(name, settings)| text(|out| line::write_queue(name, settings, out))),
        );
        Dump { first, timers: image.timers(), wall: now }
    }
}

impl Iterator for Dump {
    type Item = Result<String, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.pop_front() {
            return Some(Ok(first));
        }
        let shown = |(place, record): (Place, Record)| {
            let timer = Timer { state: state(place, &record, self.wall), record };
            text(|out| timer.write(out))
        };
        Some(self.timers.next()?.map(shown))
    }
}

/// The line for a row that could not be read, so that an incomplete dump is recognisable as such.
pub fn unreadable(error: &StoreError) -> String {
    let what = match error {
        StoreError::Damaged(damage) => damage.to_string(),
        error => error.to_string(),
    };
    text(|out| line::write_unreadable(&what, out))
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("a vector takes what is written");
    String::from_utf8(out).expect("only text is written")
}
