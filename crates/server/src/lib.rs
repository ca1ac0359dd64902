//! Durable timers over HTTP, for any language: an axum router over `tourbillon-durable`.
//!
//! Mount it in your own service, or run it as a server with [`Api::serve`]:
//!
//! ```
//! use axum::Router;
//! use tourbillon_durable::Durable;
//! use tourbillon_server::{Api, Settings};
//!
//! let api = Api::new(Durable::memory()?, Settings::default());
//! let service: Router = Router::new().merge(api.router());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Inside
//! Handlers are thin: they parse a request, call `tourbillon-durable`, and render its answer. Parsing and rendering are
//! pure functions.
//!
//! | module | what it holds |
//! |---|---|
//! | `json`, `fields` | schemas and writing, and strict reading by schema |
//! | `percent`, `params`, `conditions` | paths, queries and preconditions |
//! | `bodies` | the request bodies |
//! | `render` | the answers |
//! | `metrics` | the metrics for Prometheus |
//! | `problem` | every error, in one table |
//! | `tokens`, `access`, `authorise` | access control by token |
//! | `app` | the settings, and the state shared by handlers |
//! | `hosts`, `gate`, `extract` | the checks of every request, and the extractors of handlers |
//! | `calls` | the table of calls, and their handlers |
//! | `shapes`, `openapi` | the response schemas, and the OpenAPI document |
//! | `webhook` | posting timers |
//! | `unsent` | deliveries that are not sent yet |
//! | `room` | the limit on bytes of requests and answers in memory |
//! | `listen`, `socket`, `patient`, `tls` | sockets and connections |

#![forbid(unsafe_code)]

mod access;
mod app;
mod authorise;
mod bodies;
mod calls;
mod conditions;
mod extract;
mod fields;
mod gate;
mod hosts;
mod json;
mod listen;
mod metrics;
mod openapi;
mod params;
mod patient;
mod percent;
mod problem;
mod render;
mod room;
mod shapes;
mod socket;
mod tls;
mod tokens;
mod unsent;
mod webhook;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use futures_core::Stream;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tourbillon_durable::{Durable, Heard};

use access::Access;
use app::App;
pub use app::Settings;
pub use calls::SHARED;
pub use hosts::Hosts;
pub use listen::Connections;
use room::Room;
pub use tls::Tls;
use tokens::Right;
pub use tokens::Tokens;
use webhook::Agent;
pub use webhook::{Allow, Secrets, Webhooks};

/// The API over durable timers.
pub struct Api {
    app: App,
    stopping: watch::Sender<bool>,
}

impl Api {
    /// Creates the API over these timers.
    pub fn new(durable: Durable, mut settings: Settings) -> Self {
        let access = Arc::new(Access::default());
        access.set(settings.tokens.take());
        let room = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let (polls, streams) = (room(settings.max_polls), room(settings.max_streams));
        let (dumps, room) = (room(settings.max_dumps), Room::new(settings.max_bytes));
        let stopping = watch::Sender::new(false);
        let settings = Arc::new(settings);
        let stops = stopping.subscribe();
        let document = openapi::text;
        let app = App {
            durable,
            settings,
            access,
            polls,
            streams,
            dumps,
            room,
            document,
            stopping: stops,
        };
        Api { app, stopping }
    }

    /// A router with every call, to serve or to merge into another.
    pub fn router(&self) -> Router {
        calls::router(self.app.clone())
    }

    /// Adds the `Host` and `Origin` checks to a router that is served beside this one.
    pub fn guard(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(self.app.clone(), gate::gate))
    }

    /// Requires the right `read` for the WebSockets of a router that is served beside this one, if there are tokens.
    ///
    /// A browser cannot send `Authorization` with a WebSocket. There the token may be one of the names in
    /// `Sec-WebSocket-Protocol`: `token.` and the token in base64url without padding.
    pub fn guard_socket(&self, router: Router) -> Router {
        let state = (self.app.clone(), Right::Read);
        let checked = router.route_layer(from_fn_with_state(state, authorise::authorise));
        checked.route_layer(from_fn(authorise::token_of_socket))
    }

    /// Serves a router, such as [`router`](Api::router) or one that extends it, until `stop` completes.
    ///
    /// Then it accepts no more connections, answers long polls empty, and gives requests in progress 4 s to end. Before
    /// it returns, deliveries that did not reach their takers are released.
    pub async fn serve(
        &self,
        listener: TcpListener,
        router: Router,
        limits: Connections,
        stop: impl Future<Output = ()>,
    ) {
        let stop = async {
            stop.await;
            self.stop_polls();
        };
        listen::serve(listener, router, limits, self.app.durable.clone(), stop).await;
    }

    /// Replaces the tokens. Later requests need one of the new tokens.
    pub fn set_tokens(&self, tokens: Tokens) {
        self.app.access.set(Some(tokens));
    }

    /// Posts timers that have a webhook, until [`stop_polls`](Api::stop_polls) is called.
    ///
    /// After that, webhooks in progress have 3 s to be answered; the timers of the unanswered ones are released. Run it
    /// once, on tokio.
    pub fn post_webhooks(&self) -> impl Future<Output = ()> + Send + use<> {
        let agent = Agent::new(self.app.durable.clone(), self.app.settings.webhooks.clone());
        agent.run(self.stopping.subscribe())
    }

    /// Logs what an operator should know about the store: damage, failures, a clock far off. Ends when the store
    /// closes.
    pub fn log_notices(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut notices = self.app.durable.notices();
        async move {
            while let Some(heard) =
                poll_fn(|context| Pin::new(&mut notices).poll_next(context)).await
            {
                match heard {
                    Heard::Item(notice) => tracing::warn!(?notice, "the store"),
                    Heard::Lost(count) => tracing::warn!(count, "notices were lost"),
                }
            }
        }
    }

    /// Answers current and later long polls at once, empty.
    pub fn stop_polls(&self) {
        self.stopping.send_replace(true);
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("settings", &self.app.settings).finish()
    }
}
