//! Deliveries: receiving due timers, and settling them.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Extension;
use axum::body::{Body as Outgoing, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use http_body::{Frame, SizeHint};
use tourbillon_durable::{Delivery, Outcomes, Settled, Token};

use super::{Reply, ok};
use crate::app::App;
use crate::bodies::{self, Take};
use crate::extract::{Body, InQueue};
use crate::problem::{Code, Problem};
use crate::render;
use crate::room::Revocable;
use crate::socket::Gone;
use crate::unsent::Unsent;

pub(crate) async fn receive(
    State(mut app): State<App>,
    InQueue(queue): InQueue,
    gone: Option<Extension<Gone>>,
    Body(body, place): Body,
) -> Reply {
    let Take { max, wait, lease } = bodies::take(&body)?;
    // Freed now, because the poll may wait for a long time.
    drop((body, place));
    let queue = queue.lease(lease.into()).map_err(|wrong| Problem::refused("lease", &wrong))?;
    let _room = app.polls.clone().try_acquire_owned().map_err(|_| {
        let detail = "the server has its most polls: take more deliveries with each, or try later";
        Problem::new(Code::TooMany, detail)
    })?;
    let gone = async {
        match gone {
            Some(Extension(gone)) => gone.wait().await,
            None => pending().await,
        }
    };
    let deliveries = tokio::select! {
        received = queue.receive(max, wait.into()) => received?,
        // Nobody reads this answer.
        () = gone => Vec::new(),
        // When the server stops, the poll is answered empty, and deliveries that arrive afterwards are released.
        _ = app.stopping.wait_for(|stopping| *stopping) => Vec::new(),
    };
    Ok(answer(queue.name(), deliveries))
}

fn answer(queue: &str, deliveries: Vec<Delivery>) -> Response {
    let text = Some(render::deliveries(queue, &deliveries).into());
    let body = Outgoing::new(Handed { text, unsent: Unsent::new(deliveries) });
    // Deliveries that are not sent are released.
    (Extension(Revocable), [(CONTENT_TYPE, "application/json")], body).into_response()
}

/// The body of an answer with deliveries. Once its bytes are taken for sending, the deliveries belong to the taker. If
/// the client disconnects before that, they are released.
struct Handed {
    text: Option<Bytes>,
    unsent: Unsent,
}

impl http_body::Body for Handed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.unsent.detach();
        Poll::Ready(self.text.take().map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.as_ref().map_or(0, |text| text.len() as u64))
    }
}

pub(crate) async fn ack(InQueue(queue): InQueue, Body(body, _place): Body) -> Reply {
    let tokens = Tokens::of(bodies::tokens(&body, &bodies::ACK)?.tokens);
    let outcomes = queue.ack(&tokens.read).await?;
    ok(tokens.answer("acked", &outcomes, None))
}

pub(crate) async fn nack(InQueue(queue): InQueue, Body(body, _place): Body) -> Reply {
    let said = bodies::tokens(&body, &bodies::NACK)?;
    let tokens = Tokens::of(said.tokens);
    let outcomes = queue.nack(&tokens.read, said.nack).await?;
    ok(tokens.answer("nacked", &outcomes, None))
}

pub(crate) async fn extend(InQueue(queue): InQueue, Body(body, _place): Body) -> Reply {
    let said = bodies::tokens(&body, &bodies::EXTEND)?;
    let tokens = Tokens::of(said.tokens);
    let outcomes = queue.extend(&tokens.read, said.lease.into()).await?;
    let until = outcomes.iter().find_map(|outcome| match outcome {
        Ok(Settled::Extended(until)) => Some(*until),
        _ => None,
    });
    ok(tokens.answer("extended", &outcomes, Some(until)))
}

/// The tokens of a request. A text that is not a token is answered as an unknown token.
struct Tokens {
    texts: Vec<String>,
    read: Vec<Token>,
}

impl Tokens {
    fn of(texts: Vec<String>) -> Self {
        let read = texts.iter().filter_map(|text| text.parse().ok()).collect();
        Tokens { texts, read }
    }

    fn answer(
        &self,
        verb: &str,
        outcomes: &Outcomes,
        until: Option<Option<tourbillon_durable::values::Moment>>,
    ) -> String {
        let mut outcomes = outcomes.iter();
        let reason = |text: &String| match text.parse::<Token>() {
            Ok(_) => outcomes.next()?.as_ref().err().map(|stale| stale.name()),
            Err(_) => Some("unknown"),
        };
        let reasons: Vec<Option<&str>> = self.texts.iter().map(reason).collect();
        render::settled(verb, &self.texts, &reasons, until)
    }
}
