//! Queues: reading them, their settings, their forecast.

use axum::extract::State;
use tourbillon_durable::values::Span;
use tourbillon_durable::{Durable, Error, Queue, Stats};

use super::{Reply, ok};
use crate::app::App;
use crate::bodies;
use crate::extract::{Body, InQueue, Query};
use crate::json::{Field, Form, List, Object};
use crate::params::Params;
use crate::problem::{Code, Problem};
use crate::render;
use crate::tokens::Grant;
use crate::webhook;

pub(crate) async fn all(State(durable): State<Durable>, grant: Grant) -> Reply {
    let queues = stats(&durable, &grant).await?;
    let mut object = Object::new();
    object.raw("queues", List::of(queues.iter().map(|(name, stats)| render::queue(name, stats))));
    object.raw("damaged", !durable.damage().is_empty()).text("right", grant.right.name());
    ok(object.end())
}

/// The statistics of every queue that the token covers, ordered by name.
pub(super) async fn stats(
    durable: &Durable,
    grant: &Grant,
) -> Result<Vec<(String, Stats)>, Problem> {
    let mut all = Vec::new();
    for name in durable.queues().await?.iter().filter(|name| grant.sees(name.as_str())) {
        let queue = durable.queue(name.as_str());
        let queue = queue.map_err(|wrong| Problem::refused("queue", &wrong))?;
        // The queue may have been deleted meanwhile.
        all.extend(queue.stats().await?.map(|stats| (name.to_string(), stats)));
    }
    Ok(all)
}

/// A queue as JSON, if it exists.
async fn look(queue: &Queue) -> Result<Option<String>, Problem> {
    Ok(queue.stats().await?.map(|stats| render::queue(queue.name(), &stats)))
}

pub(crate) async fn one(InQueue(queue): InQueue) -> Reply {
    ok(look(&queue).await?.ok_or_else(|| unknown_queue(&queue))?)
}

fn unknown_queue(queue: &Queue) -> Problem {
    let detail = format!("there is no queue {}: its first timer makes it", queue.name());
    Problem::new(Code::UnknownQueue, detail)
}

pub(crate) async fn set(
    State(app): State<App>,
    InQueue(queue): InQueue,
    Body(body, _place): Body,
) -> Reply {
    let change = bodies::queue(&body)?;
    if let Some(Some(webhook)) = &change.webhook {
        webhook::check(webhook, &app.settings.webhooks.allow)?;
    }
    queue.set(change).await?;
    let shown = look(&queue).await.map_err(Problem::after_change)?;
    ok(shown.ok_or_else(|| unknown_queue(&queue))?)
}

pub(crate) const DELETE: &[Field] =
    &[Field { name: "force", form: Form::Flag, about: "Also if some of its timers are out." }];

pub(crate) async fn remove(InQueue(queue): InQueue, Query(query): Query) -> Reply {
    let force = Params::read(&query, DELETE)?.flag("force")?;
    match queue.delete(force).await {
        Ok(()) => ok(r#"{"state":"deleted"}"#.into()),
        Err(Error::UnknownQueue) => Err(unknown_queue(&queue)),
        Err(error) => Err(error.into()),
    }
}

pub(crate) const FORECAST: &[Field] = &[
    Field { name: "from", form: Form::Moment, about: "The beginning; now if it is not given." },
    Field { name: "to", form: Form::Moment, about: "The end; an hour later if it is not given." },
    Field { name: "buckets", form: Form::Whole(1, 1000), about: "How many; 60 if not given." },
];

pub(crate) async fn forecast(
    State(durable): State<Durable>,
    InQueue(queue): InQueue,
    Query(query): Query,
) -> Reply {
    let mut params = Params::read(&query, FORECAST)?;
    let from = params.moment("from")?.unwrap_or_else(|| durable.now());
    let to = params.moment("to")?.unwrap_or(from + Span::from_secs(3600));
    let buckets = params.whole("buckets")?.unwrap_or(60);
    if to <= from {
        return Err(Problem::value("to", &to.to_string(), "after `from`"));
    }
    if queue.count().await?.is_none() {
        return Err(unknown_queue(&queue));
    }
    ok(render::forecast(&queue.forecast(from, to, buckets).await?))
}
