//! The stream of events: lines of `text/event-stream`, read as they arrive.

use std::time::{Duration, SystemTime};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::error::Error;
use crate::time;

/// After a silence of this length the stream counts as lost. The server sends something every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// The longest line: a key has at most 256 bytes.
const LONGEST: usize = 64 << 10;

/// Events of timers, as they happen.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    /// Bytes that are not yet a whole event.
    rest: Vec<u8>,
}

/// An event, or a gap.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Something happened to a timer.
    Happened(Happened),
    /// The reader was too slow and lost this many events.
    Lost(u64),
}

/// Something that happened to a timer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Happened {
    /// `scheduled`, `due`, `handed`, `acked`, `failed`, `dead` or `cancelled`.
    #[serde(rename = "event", default)]
    pub what: String,
    /// The queue of the timer.
    pub queue: String,
    /// The key of the timer; `None` if all timers of a queue were cancelled at once.
    pub key: Option<String>,
    /// Identifies the timer permanently.
    pub generation: u64,
    /// The number of the occurrence.
    pub occurrence: u64,
    /// The number of the hand-out.
    pub attempt: u64,
    /// When it happened.
    #[serde(with = "time::at")]
    pub at: SystemTime,
}

impl Events {
    pub(crate) fn new(body: Incoming) -> Self {
        Events { body, rest: Vec::new() }
    }

    /// The next event; `None` when the server ends the stream.
    ///
    /// # Errors
    /// [`Error::Lost`]: the connection was lost, or the server is silent.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        loop {
            if let Some(event) = self.take() {
                return Some(event);
            }
            if self.rest.len() > LONGEST {
                return Some(Err(Error::Unreadable("a line without an end".into())));
            }
            match timeout(SILENCE, self.body.frame()).await {
                Err(_) => return Some(Err(Error::Lost("the server is silent".into()))),
                Ok(None) => return None,
                Ok(Some(Err(error))) => return Some(Err(Error::Lost(error.to_string()))),
                Ok(Some(Ok(frame))) => {
                    self.rest.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                }
            }
        }
    }

    /// The first complete event among the bytes received. Skips comments.
    fn take(&mut self) -> Option<Result<Event, Error>> {
        loop {
            let end = self.rest.windows(2).position(|two| two == b"\n\n")?;
            let block: Vec<u8> = self.rest.drain(..end + 2).collect();
            if let Some(event) = read(&String::from_utf8_lossy(&block)) {
                return Some(event.map_err(|wrong| Error::Unreadable(wrong.to_string())));
            }
        }
    }
}

#[derive(Deserialize)]
struct Gap {
    lost: u64,
}

fn read(block: &str) -> Option<Result<Event, serde_json::Error>> {
    let field = |name| block.lines().find_map(|line| line.strip_prefix(name));
    let (what, data) = (field("event: ")?, field("data: ")?);
    if what == "lost" {
        return Some(serde_json::from_str(data).map(|Gap { lost }| Event::Lost(lost)));
    }
    let happened = serde_json::from_str(data);
    Some(happened.map(|it: Happened| Event::Happened(Happened { what: what.to_owned(), ..it })))
}
