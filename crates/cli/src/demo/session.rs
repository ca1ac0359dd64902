//! One connection of the page: a run that receives its steps over a WebSocket.
//!
//! A message is answered before the next one is read, so that nothing accumulates for a slow reader. A reader that does
//! not receive an answer within [`PATIENCE`] is disconnected. A few threads, apart from those of the sockets, do the
//! work.
//!
//! | limit | bounds |
//! |---|---|
//! | [`MOST_SESSIONS`] | concurrent runs |
//! | [`MOST_MESSAGE`] | a scenario or a list of steps, and the cost of reading it |
//! | [`MOST_SLOTS`], [`MOST_LEVELS`] | the memory of an empty wheel |
//! | [`MOST_TIMERS`], [`MOST_NAMES`] | the memory of a run |
//! | [`MOST_LINES`](crate::replay::MOST_LINES) | the time that a message takes, and the size of its answer |

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tourbillon::tasks::timeout;

use super::answer;
use crate::replay::{Live, LiveError};
use crate::scenario::Scenario;

/// The maximum number of concurrent runs.
pub const MOST_SESSIONS: usize = 16;
/// The maximum length of a message, in bytes.
pub const MOST_MESSAGE: usize = 1 << 20;
/// The maximum number of slots of a level: a day of seconds.
pub const MOST_SLOTS: u32 = 86_400;
/// The maximum number of levels that a scenario may list.
const MOST_LEVELS: usize = 64;
/// The maximum number of pending timers after a message.
pub const MOST_TIMERS: u64 = 20_000;
/// The maximum number of timer names in one run.
const MOST_NAMES: usize = 100_000;
/// The number of messages that are processed concurrently.
const WORKERS: usize = 4;
/// How long a browser may take to send its first message, or to receive an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The WebSocket protocol that the page offers beside its token. A browser requires the server to choose one of those
/// offered.
const PROTOCOL: &str = "tourbillon";

/// The permits for runs and for processing.
#[derive(Clone)]
pub(super) struct Sessions {
    runs: Arc<Semaphore>,
    work: Arc<Semaphore>,
}

impl Default for Sessions {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Sessions { runs: places(MOST_SESSIONS), work: places(WORKERS) }
    }
}

pub(super) async fn upgrade(
    State(sessions): State<Sessions>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Ok(place) = sessions.runs.try_acquire_owned() else {
        let full = "too many pages are open: close one, or start another demo\n";
        return (StatusCode::SERVICE_UNAVAILABLE, full).into_response();
    };
    upgrade
        .protocols([PROTOCOL])
        .max_message_size(MOST_MESSAGE)
        .max_frame_size(MOST_MESSAGE)
        .on_upgrade(|socket| session(socket, sessions.work, place))
}

async fn session(mut socket: WebSocket, work: Arc<Semaphore>, place: OwnedSemaphorePermit) {
    let mut live = None;
    let first = timeout(PATIENCE, receive(&mut socket)).await;
    let mut next = first.unwrap_or_default();
    while let Some(text) = next {
        let Ok(worker) = work.acquire().await else { break };
        let Ok((after, answer)) = spawn_blocking(|| answer_to(live, text)).await else { break };
        drop(worker);
        live = after;
        let sent = timeout(PATIENCE, socket.send(Message::text(answer))).await;
        if live.is_none() || !matches!(sent, Ok(Ok(()))) {
            break;
        }
        next = receive(&mut socket).await;
    }
    // It does not matter if the close message is not received.
    let _ = timeout(PATIENCE, socket.send(Message::Close(None))).await;
    drop(place);
}

/// The next text message, if one comes.
async fn receive(socket: &mut WebSocket) -> Option<String> {
    loop {
        match socket.recv().await?.ok()? {
            Message::Text(text) => return Some(text.to_string()),
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Binary(_) | Message::Close(_) => return None,
        }
    }
}

/// The run after a message, if it continues, and the answer.
fn answer_to(live: Option<Live>, text: String) -> (Option<Live>, String) {
    let first = live.is_none();
    let told = match live {
        None => open(&text),
        Some(live) => tell(live, &text),
    };
    match told {
        Ok((mut live, None)) => {
            let answer = answer::state(&mut live, first);
            (Some(live), answer)
        }
        Ok((live, Some(wrong))) => (Some(live), answer::wrong(&wrong, false)),
        Err(wrong) => (None, answer::wrong(&wrong, true)),
    }
}

/// The run, with an error if the message had no effect; or the error that ended the run.
type Told = Result<(Live, Option<String>), String>;

fn open(text: &str) -> Told {
    let scenario = Scenario::parse(text).map_err(|error| error.to_string())?;
    let slots = &scenario.wheel.slots;
    if slots.len() > MOST_LEVELS {
        return Err(format!(
            "wheel.slots: {} levels are too many for a page: {MOST_LEVELS} are enough",
            slots.len()
        ));
    }
    if let Some(level) = slots.iter().position(|slots| *slots > MOST_SLOTS) {
        let slots = slots[level];
        return Err(format!(
            "wheel.slots[{level}]: {slots} slots are too many for a page: give {MOST_SLOTS} or fewer"
        ));
    }
    let live = Live::new(&scenario).map_err(|error| error.to_string())?;
    bounded(live)
}

fn tell(mut live: Live, text: &str) -> Told {
    match live.tell(text) {
        Ok(()) => bounded(live),
        Err(LiveError::Unread(error)) => Ok((live, Some(error.to_string()))),
        Err(LiveError::Over(error)) => Err(error.to_string()),
    }
}

fn bounded(live: Live) -> Told {
    if live.totals().pending > MOST_TIMERS {
        return Err(format!("more than {MOST_TIMERS} timers are too many for a page"));
    }
    if live.names() > MOST_NAMES {
        return Err(format!("more than {MOST_NAMES} timers in one run: save it, and begin anew"));
    }
    Ok((live, None))
}
