//! Durable timers over HTTP, for any language: an axum router over `tourbillon-durable`.
//!
//! Mount it in a service of yours, or run it as a server with [`serve`]:
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
//! The core is pure, the edge is thin: handlers read a request, ask `tourbillon-durable`, and render its answer.
//!
//! | module | what it holds |
//! |---|---|
//! | `json` | strict reading by shapes, and writing |
//! | `percent`, `params`, `conditions` | paths, queries and preconditions |
//! | `bodies` | what each call takes |
//! | `render` | what each call answers |
//! | `problem` | every error, in one table |
//! | `gate`, `extract` | what is checked of every request, and what handlers are given of it |
//! | `calls` | the table of calls, and their handlers |
//! | `shapes`, `openapi` | what each call answers, and the OpenAPI document |
//! | `listen` | sockets and connections |

#![forbid(unsafe_code)]

mod app;
mod bodies;
mod calls;
mod conditions;
mod extract;
mod gate;
mod json;
mod listen;
mod openapi;
mod params;
mod percent;
mod problem;
mod render;
mod shapes;

use std::sync::Arc;

use axum::Router;
use tokio::sync::watch;
use tourbillon_durable::Durable;

use app::App;
pub use app::Settings;
pub use gate::Hosts;
pub use listen::{Connections, serve};

/// The API over some durable timers.
#[derive(Debug)]
pub struct Api {
    durable: Durable,
    settings: Arc<Settings>,
    stopping: watch::Sender<bool>,
}

impl Api {
    /// The API over these timers.
    pub fn new(durable: Durable, settings: Settings) -> Self {
        Api { durable, settings: Arc::new(settings), stopping: watch::Sender::new(false) }
    }

    /// Every call, as a router to serve or to merge into another.
    pub fn router(&self) -> Router {
        let (durable, settings) = (self.durable.clone(), self.settings.clone());
        calls::router(App { durable, settings, stopping: self.stopping.subscribe() })
    }

    /// Answers long polls, and those to come, at once: with nothing.
    pub fn stop_polls(&self) {
        self.stopping.send_replace(true);
    }
}
