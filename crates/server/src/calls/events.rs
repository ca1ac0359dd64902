//! The events of timers, as a stream of server-sent events.
//!
//! A slow reader loses events and gets the number of lost ones. It delays no other reader. A stream ends when its token
//! is no longer valid, or has other rights.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use futures_core::Stream;
use http_body::Frame;
use tokio::sync::OwnedSemaphorePermit;
use tourbillon::tasks::{Sleep, sleep};
use tourbillon_durable::{Event, Heard, Watch};

use super::Reply;
use crate::app::App;
use crate::extract::Query;
use crate::json::{Field, Form, Object};
use crate::params::Params;
use crate::problem::{Code, Problem};
use crate::tokens::Grant;

pub(crate) const EVENTS: &[Field] =
    &[Field { name: "queue", form: Form::Text, about: "Only what happens in this queue." }];

/// How often an idle stream sends a keep-alive comment.
const BEAT: Duration = Duration::from_secs(15);
/// The buffered bytes at which a piece is sent. The last event may exceed this size.
const PIECE: usize = 16 << 10;

pub(crate) async fn events(
    State(mut app): State<App>,
    grant: Grant,
    headers: HeaderMap,
    Query(query): Query,
) -> Reply {
    let queue = Params::read(&query, EVENTS)?.text("queue");
    if queue.as_deref().is_some_and(|queue| !grant.sees(queue)) {
        return Err(Problem::new(Code::Forbidden, "the token is for other queues"));
    }
    let watch = match queue {
        None => app.durable.events(),
        Some(name) => {
            let queue = app.durable.queue(&name);
            queue.map_err(|wrong| Problem::refused("queue", &wrong))?.events()
        }
    };
    let room = app.streams.clone().try_acquire_owned().map_err(|_| {
        Problem::new(Code::TooMany, "the server has its most streams: close one, or try later")
    })?;
    let held = grant.clone();
    let stop = Box::pin(async move {
        tokio::select! {
            _ = app.stopping.wait_for(|stopping| *stopping) => {}
            () = app.access.revoked(&headers, &held) => {}
        }
    });
    let piece = String::from(":\n\n");
    let stream = Events { watch, grant, piece, stop, beat: Box::pin(sleep(BEAT)), _room: room };
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::new(stream)).into_response())
}

struct Events {
    watch: Watch<Event>,
    grant: Grant,
    /// The text to send next.
    piece: String,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    beat: Pin<Box<Sleep>>,
    _room: OwnedSemaphorePermit,
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        while self.piece.len() < PIECE {
            match Pin::new(&mut self.watch).poll_next(context) {
                Poll::Ready(Some(heard)) => {
                    let told = tell(&heard, &self.grant);
                    self.piece.push_str(&told);
                }
                Poll::Ready(None) if self.piece.is_empty() => return Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if self.piece.is_empty() && self.beat.as_mut().poll(context).is_ready() {
            self.beat = Box::pin(sleep(BEAT));
            let _ = self.beat.as_mut().poll(context);
            self.piece.push_str(":\n\n");
        }
        match std::mem::take(&mut self.piece) {
            empty if empty.is_empty() => Poll::Pending,
            piece => Poll::Ready(Some(Ok(Frame::data(piece.into())))),
        }
    }
}

/// One event as text; empty if the token does not cover its queue.
fn tell(heard: &Heard<Event>, grant: &Grant) -> String {
    let (name, data) = match heard {
        Heard::Lost(count) => {
            let mut object = Object::new();
            object.raw("lost", count);
            ("lost", object.end())
        }
        Heard::Item(event) if !grant.sees(event.queue.as_str()) => return String::new(),
        Heard::Item(event) => {
            let mut object = Object::new();
            object.text("queue", &event.queue).text_or_null("key", event.key.as_ref());
            object.raw("generation", event.generation.0).raw("occurrence", event.occurrence);
            object.raw("attempt", event.attempt).text("at", event.at);
            (event.happened.name(), object.end())
        }
    };
    format!("event: {name}\ndata: {data}\n\n")
}
