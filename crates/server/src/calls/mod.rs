//! The calls: their table, and their handlers of a few lines each.
//!
//! | file | calls |
//! |---|---|
//! | `table.rs` | the table from which the router and the OpenAPI document are made |
//! | `takes.rs` | refuses what a call does not take |
//! | `timers.rs` | one timer: make, show, move, cancel, run |
//! | `many.rs` | many timers: lists, cancelling and reviving in bulk |
//! | `deliveries.rs` | receiving and settling |
//! | `queues.rs` | queues: reading, settings, forecast |
//! | `events.rs` | the stream of events |
//! | `page.rs` | the web page |
//! | `outside.rs` | calls outside `/v1`, the dump and the test clock |

mod deliveries;
mod events;
mod many;
mod outside;
mod page;
mod queues;
pub(crate) mod table;
mod takes;
mod timers;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;
use crate::authorise::authorise;
use crate::gate::gate;
use crate::problem::{Code, Problem, unknown_path};
pub use page::SHARED;
use table::{CALLS, TEST_CLOCK};

/// The result of a handler.
pub(crate) type Reply = Result<Response, Problem>;

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: String) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

pub(crate) fn ok(body: String) -> Reply {
    Ok(json(StatusCode::OK, body))
}

/// The router of all calls.
pub(crate) fn router(app: App) -> Router {
    let clock = app.settings.test_clock.is_some();
    let calls = CALLS.iter().filter(|call| clock || call.path != TEST_CLOCK);
    let router = calls.fold(Router::new(), |router, call| {
        let access = from_fn_with_state((app.clone(), call.right), authorise);
        let takes = from_fn_with_state((app.clone(), call), takes::takes);
        router.route(call.path, (call.handler)().route_layer(takes).route_layer(access))
    });
    let router = page::paths().fold(router, |router, path| router.route(&path, get(page::file)));
    router
        .fallback(async || unknown_path())
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(app.clone(), gate))
        .with_state(app)
}

async fn method_not_allowed() -> Problem {
    Problem::new(Code::MethodNotAllowed, "the header Allow names the methods of this path")
}
