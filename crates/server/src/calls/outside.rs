//! Calls outside `/v1`, the dump and the test clock.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use http_body::Frame;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tourbillon_durable::dump::{Dump, unreadable};
use tourbillon_durable::{Durable, Health};

use super::{Reply, ok, queues};
use crate::app::App;
use crate::bodies;
use crate::extract;
use crate::json::Object;
use crate::metrics;
use crate::problem::{Code, Problem};
use crate::tokens::Grant;

/// Answers 200 while the process runs.
pub(crate) async fn healthz() -> Reply {
    ok(r#"{"status":"ok"}"#.into())
}

/// 200 if the store accepts changes, else 503 with the reason.
pub(crate) async fn readyz(State(durable): State<Durable>) -> Reply {
    match durable.health() {
        Health::Ready => {
            let mut object = Object::new();
            object.text("status", "ready").raw("damaged", !durable.damage().is_empty());
            ok(object.end())
        }
        Health::Failing(why) => {
            Err(Problem::new(Code::Unavailable, format!("the store failed: {why}")))
        }
        _ => Err(Problem::new(Code::Unavailable, "the store is closed")),
    }
}

/// The metrics of the server and its queues.
pub(crate) async fn metrics(State(durable): State<Durable>, grant: Grant) -> Reply {
    of_all(&grant, "the metrics are of every queue")?;
    let queues = queues::stats(&durable, &grant).await?;
    let state = (matches!(durable.health(), Health::Ready), durable.damage().len());
    let text = metrics::text(state, &queues, durable.now());
    Ok(([(CONTENT_TYPE, metrics::KIND)], text).into_response())
}

/// Refuses a token with a scope, because it does not cover every queue.
fn of_all(grant: &Grant, what: &str) -> Result<(), Problem> {
    match grant.scope {
        None => Ok(()),
        Some(_) => {
            let detail = format!("{what}, and the token is for some");
            Err(Problem::new(Code::Forbidden, detail))
        }
    }
}

/// Maximum number of pieces of a dump that wait to be sent, and the size of each.
const PIECES: usize = 4;
const PIECE: usize = 64 << 10;

/// Streams a dump: every timer in one state of the store. The server continues meanwhile.
pub(crate) async fn dump(State(app): State<App>, grant: Grant) -> Reply {
    of_all(&grant, "a dump has every queue")?;
    let room = app.dumps.clone().try_acquire_owned().map_err(|_| {
        Problem::new(Code::TooMany, "the server has its most dumps: wait for one to end")
    })?;
    let durable = app.durable;
    let lines = Dump::new(durable.image().await?, durable.now());
    let (send, pieces) = mpsc::channel(PIECES);
    // On a blocking thread, because it reads the store and waits for a slow client.
    spawn_blocking(move || {
        let mut piece = String::new();
        for line in lines {
            match line {
                Ok(line) => piece.push_str(&line),
                Err(error) => {
                    tracing::error!(%error, "a row is not dumped");
                    piece.push_str(&unreadable(&error));
                }
            }
            if piece.len() >= PIECE && send.blocking_send(std::mem::take(&mut piece)).is_err() {
                return;
            }
        }
        let _ = send.blocking_send(piece);
        drop(room);
    });
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::new(Pieces(pieces))).into_response())
}

/// A body sent piece by piece, as pieces arrive.
struct Pieces(mpsc::Receiver<String>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece.into()))))
    }
}

/// The OpenAPI document.
pub(crate) async fn openapi(State(app): State<App>) -> Reply {
    ok((app.document)().to_owned())
}

/// Sets the wall clock, which continues from that moment.
pub(crate) async fn set_clock(
    State(app): State<App>,
    extract::Body(body, _place): extract::Body,
) -> Reply {
    let now = bodies::clock(&body)?;
    let Some(clock) = app.settings.test_clock.clone() else {
        return Err(Problem::new(Code::UnknownPath, "there is no test clock"));
    };
    // On a blocking thread, because setting the clock waits for the timers that become due.
    let set = spawn_blocking(move || clock.set_wall(now.into())).await;
    set.map_err(|error| Problem::new(Code::Internal, error.to_string()))?
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let mut object = Object::new();
    object.text("now", now);
    ok(object.end())
}
