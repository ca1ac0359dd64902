//! The settings, and the state that every handler shares.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use tokio::sync::{Semaphore, watch};
use tourbillon::VirtualClock;
use tourbillon_durable::Durable;

use crate::access::Access;
use crate::hosts::Hosts;
use crate::room::Room;
use crate::tokens::Tokens;
use crate::webhook::Webhooks;

/// Settings of the API.
///
/// ```
/// use std::time::Duration;
/// use tourbillon_server::{Hosts, Settings};
///
/// let settings = Settings { hosts: Hosts::Any, body_time: Duration::from_secs(5), ..Settings::default() };
/// assert_eq!(settings.max_payload, 256 << 10);
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hosts that requests may name. A request for any other host is answered 421.
    pub hosts: Hosts,
    /// The largest payload in bytes, at most 256 KiB.
    pub max_payload: usize,
    /// How long the body of a request may take to arrive. A later one is answered 408.
    pub body_time: Duration,
    /// The tokens and their rights. If not set, every request has all rights.
    pub tokens: Option<Tokens>,
    /// Maximum number of requests per token and second. Further ones are answered 429.
    pub token_rate: Option<u32>,
    /// Maximum number of requests that wait for deliveries at once. Further ones are answered 429.
    pub max_polls: usize,
    /// Maximum number of event streams at once. Further ones are answered 429.
    pub max_streams: usize,
    /// Maximum number of dumps at once. Further ones are answered 429.
    pub max_dumps: usize,
    /// Maximum bytes of large requests and answers held at once. Requests beyond that are answered 429.
    pub max_bytes: usize,
    /// How timers that have a webhook are posted.
    pub webhooks: Arc<Webhooks>,
    /// The clock of the timers, if `POST /v1/test/clock` may set it.
    pub test_clock: Option<VirtualClock>,
}

/// Loopback only, 256 KiB, 30 s, no tokens, 16 384 polls, 256 streams, 2 dumps, 128 MiB, no test clock.
impl Default for Settings {
    fn default() -> Self {
        Settings {
            hosts: Hosts::default(),
            max_payload: 256 << 10,
            body_time: Duration::from_secs(30),
            tokens: None,
            token_rate: None,
            max_polls: 16_384,
            max_streams: 256,
            max_dumps: 2,
            max_bytes: 128 << 20,
            webhooks: Arc::default(),
            test_clock: None,
        }
    }
}

/// The state of the router.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) durable: Durable,
    pub(crate) settings: Arc<Settings>,
    pub(crate) access: Arc<Access>,
    /// Permits for long polls.
    pub(crate) polls: Arc<Semaphore>,
    /// Permits for event streams.
    pub(crate) streams: Arc<Semaphore>,
    /// Permits for dumps.
    pub(crate) dumps: Arc<Semaphore>,
    /// Permits for the bytes of requests and answers.
    pub(crate) room: Room,
    /// The OpenAPI document. A function breaks a cycle: the document is made from the calls, and this is their state.
    pub(crate) document: fn() -> &'static str,
    /// Becomes true when the server stops. Long polls are then answered.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl FromRef<App> for Durable {
    fn from_ref(app: &App) -> Durable {
        app.durable.clone()
    }
}
