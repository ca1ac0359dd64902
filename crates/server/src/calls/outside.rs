//! What is not under `/v1`, and the test clock.

use std::sync::OnceLock;

use axum::extract::State;
use tokio::task::spawn_blocking;
use tourbillon_durable::Durable;

use super::{Reply, ok};
use crate::app::App;
use crate::bodies;
use crate::extract::Body;
use crate::json::Object;
use crate::openapi;
use crate::problem::{Code, Problem};

/// The process runs.
pub(crate) async fn healthz() -> Reply {
    ok(r#"{"status":"ok"}"#.into())
}

/// The store answers.
pub(crate) async fn readyz(State(durable): State<Durable>) -> Reply {
    durable.queues().await?;
    ok(r#"{"status":"ready"}"#.into())
}

/// What this server can do, for programs.
pub(crate) async fn openapi() -> Reply {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    ok(DOCUMENT.get_or_init(openapi::document).clone())
}

/// Sets the wall clock, which then runs on.
pub(crate) async fn set_clock(State(app): State<App>, Body(body): Body) -> Reply {
    let now = bodies::clock(&body)?;
    let Some(clock) = app.settings.test_clock.clone() else {
        return Err(Problem::new(Code::UnknownPath, "there is no test clock"));
    };
    // It waits for what becomes due.
    let set = spawn_blocking(move || clock.set_wall(now.into())).await;
    set.map_err(|error| Problem::new(Code::Internal, error.to_string()))?
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let mut object = Object::new();
    object.text("now", now);
    ok(object.end())
}
