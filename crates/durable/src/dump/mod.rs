//! A dump: one state of a store as lines of JSON. What `tourbillon dump` writes, and a server while it runs.
//!
//! The first line names the store, then each queue has one with its settings, then each timer, the dead and the
//! remembered included, as the HTTP interface shows it with its payload and headers, and with the moment that an extra
//! run has pushed back. What could not be read has a line that says what and why. When a remembered or dead timer is
//! forgotten is not shown; loading counts that from then on. What was out is due, attempts go on rising, and the store
//! gets a new name, so that no delivery has the name of an earlier one.

mod line;

use std::collections::VecDeque;

use crate::message::state;
use crate::record::{Place, Record};
use crate::store::{Image, Snapshot, StoreError};
use crate::values::Moment;
pub use line::{Line, Timer};

/// The lines of a dump, each with its end. A row that cannot be read is an error, and the next ones follow: whoever
/// writes the dump says so with [`unreadable`] in its place.
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
    /// Lines that come before the timers.
    first: VecDeque<String>,
    timers: Snapshot,
    wall: Moment,
}

impl Dump {
    /// A dump of that state; `now` tells what is due.
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

/// The line that stands for what could not be read, so that a dump which is not complete says so itself.
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
