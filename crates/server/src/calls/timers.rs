//! One timer: make, show, move, cancel, run.

use axum::extract::State;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use tourbillon_durable::values::{Generation, Key};
use tourbillon_durable::{Cancelled, Conflict, NewTimer, Outcome, Queue, Scheduled, View};

use super::{Reply, json, ok};
use crate::app::App;
use crate::bodies::{self, Draft};
use crate::conditions::{Condition, Tags};
use crate::extract::{AtKey, Body, InQueue, Query};
use crate::json::{Field, Form};
use crate::params::Params;
use crate::percent::encoded;
use crate::problem::{Code, Problem};
use crate::render;
use crate::webhook;

pub(crate) const ON_CONFLICT: &[Field] = &[Field {
    name: "on_conflict",
    form: Form::OneOf(&["replace", "keep"]),
    about: "What to do with a key that is taken; refused if it is not given.",
}];

pub(crate) async fn schedule(
    State(app): State<App>,
    InQueue(queue): InQueue,
    Query(query): Query,
    Body(body, _place): Body,
) -> Reply {
    let conflict = match Params::read(&query, ON_CONFLICT)?.one_of("on_conflict")? {
        None => Conflict::Refuse,
        Some(0) => Conflict::Replace,
        Some(_) => Conflict::Keep,
    };
    let (drafts, many) = bodies::one_or_many(&body, app.settings.max_payload)?;
    let timers = complete(&app, &queue, drafts, many).await?;
    let scheduled = queue.schedule_all(timers, conflict).await;
    let scheduled = scheduled.map_err(|error| Problem::of_schedule(error, many))?;
    if many {
        let made = scheduled.iter().any(|one| one.outcome == Outcome::Made);
        let status = if made { StatusCode::CREATED } else { StatusCode::OK };
        return Ok(json(status, render::outcomes(&scheduled)));
    }
    made(&queue, scheduled)
}

pub(crate) async fn replace(
    State(app): State<App>,
    InQueue(queue): InQueue,
    AtKey(key): AtKey,
    condition: Condition,
    Body(body, _place): Body,
) -> Reply {
    let mut draft = bodies::timer(&body, app.settings.max_payload)?;
    if draft.timer.key.as_ref().is_some_and(|of| *of != key) {
        let detail = "key is not the one that the path names: leave it out";
        return Err(Problem::new(Code::BadValue, detail).field("key"));
    }
    let conflict = match condition {
        Condition::None => Conflict::Replace,
        Condition::Absent => Conflict::Refuse,
        Condition::Match(tags) => {
            let there = match tags.only() {
                Some(only) => Some(only),
                None => there(&queue, &key).await?.filter(|there| tags.have(*there)),
            };
            Conflict::ReplaceOnly(there.ok_or_else(precondition_failed)?)
        }
    };
    draft.timer.key = Some(key);
    let timers = complete(&app, &queue, vec![draft], false).await?;
    let scheduled = queue.schedule_all(timers, conflict).await.map_err(|error| {
        let problem = Problem::of_schedule(error, false);
        match problem.code {
            Code::KeyTaken => Problem { code: Code::PreconditionFailed, ..problem },
            _ => problem,
        }
    })?;
    made(&queue, scheduled)
}

/// The generation of the timer under a key.
async fn there(queue: &Queue, key: &Key) -> Result<Option<Generation>, Problem> {
    Ok(queue.get(key.as_str()).await?.map(|view| view.generation))
}

fn precondition_failed() -> Problem {
    let detail = "no timer that If-Match names has the key: look before you repeat it";
    Problem::new(Code::PreconditionFailed, detail)
}

/// The generation that the condition allows to be changed; `None` if it allows any. A missing timer is reported as
/// unknown, whatever the condition: without a condition the answer would be the same.
async fn only(
    queue: &Queue,
    key: &Key,
    condition: Condition,
) -> Result<Option<Generation>, Problem> {
    match condition {
        Condition::None | Condition::Match(Tags::Any) => Ok(None),
        Condition::Match(tags) => {
            if let Some(only) = tags.only() {
                return Ok(Some(only));
            }
            let there = there(queue, key).await?.ok_or_else(|| unknown_timer(key))?;
            if tags.have(there) { Ok(Some(there)) } else { Err(precondition_failed()) }
        }
        Condition::Absent => {
            let detail = "If-None-Match is for PUT: leave it out";
            Err(Problem::new(Code::BadValue, detail).field("If-None-Match"))
        }
    }
}

/// Completes timers: a retry takes its missing fields from the queue.
async fn complete(
    app: &App,
    queue: &Queue,
    drafts: Vec<Draft>,
    many: bool,
) -> Result<Vec<NewTimer>, Problem> {
    for (index, draft) in drafts.iter().enumerate() {
        if let Some(Some(webhook)) = &draft.timer.webhook {
            let checked = webhook::check(webhook, &app.settings.webhooks.allow);
            checked.map_err(|problem| if many { problem.index(index) } else { problem })?;
        }
    }
    let mut base = None;
    if drafts.iter().any(|draft| draft.retry.is_some()) {
        base = queue.settings().await?.map(|settings| settings.retry);
    }
    let whole = |Draft { timer, retry }: Draft| {
        let retry = retry.map(|part| part.over(base.unwrap_or_default()));
        NewTimer { retry, ..timer }
    };
    Ok(drafts.into_iter().map(whole).collect())
}

/// The answer for one timer that was made, replaced or kept.
fn made(queue: &Queue, scheduled: Vec<Scheduled>) -> Reply {
    let one = scheduled.first().and_then(|one| Some((one, one.timer.as_deref()?)));
    let Some((one, view)) = one else {
        return Err(Problem::new(Code::Internal, "a timer was not answered"));
    };
    let mut timer = render::timer(queue.name(), view, true);
    if let Some(replaced) = render::replaced(one.outcome) {
        timer.raw("replaced", replaced);
    }
    let made = one.outcome == Outcome::Made;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = json(status, timer.end());
    let headers = response.headers_mut();
    headers.extend(etag(one.generation));
    if made {
        let at = format!("/v1/queues/{}/timers/{}", queue.name(), encoded(one.key.as_str()));
        headers.extend(HeaderValue::from_str(&at).ok().map(|at| (LOCATION, at)));
    }
    Ok(response)
}

fn etag(generation: Generation) -> Option<(axum::http::HeaderName, HeaderValue)> {
    Some((ETAG, HeaderValue::from_str(&format!("\"{}\"", generation.0)).ok()?))
}

/// The answer that shows a timer, with its ETag.
fn shown(queue: &Queue, view: &View) -> Reply {
    let mut response = json(StatusCode::OK, render::timer(queue.name(), view, true).end());
    response.headers_mut().extend(etag(view.generation));
    Ok(response)
}

pub(crate) async fn show(InQueue(queue): InQueue, AtKey(key): AtKey) -> Reply {
    match queue.get(key.as_str()).await? {
        Some(view) => shown(&queue, &view),
        None => Err(unknown_timer(&key)),
    }
}

fn unknown_timer(key: &Key) -> Problem {
    Problem::new(Code::UnknownTimer, format!("there is no timer with the key {:?}", key.as_str()))
}

pub(crate) async fn reschedule(
    InQueue(queue): InQueue,
    AtKey(key): AtKey,
    condition: Condition,
    Body(body, _place): Body,
) -> Reply {
    let when = bodies::moved(&body)?;
    let moved = match only(&queue, &key, condition).await? {
        None => queue.reschedule(key.as_str(), when).await?,
        Some(only) => queue.reschedule_only(key.as_str(), when, only).await?,
    };
    shown(&queue, &moved)
}

pub(crate) async fn run(InQueue(queue): InQueue, AtKey(key): AtKey) -> Reply {
    shown(&queue, &queue.run_now(key.as_str()).await?)
}

pub(crate) async fn cancel(
    InQueue(queue): InQueue,
    AtKey(key): AtKey,
    condition: Condition,
) -> Reply {
    let cancelled = match only(&queue, &key, condition).await? {
        None => queue.cancel(key.as_str()).await?,
        Some(only) => queue.cancel_only(key.as_str(), only).await?,
    };
    match cancelled {
        Cancelled::Cancelled => ok(r#"{"state":"cancelled"}"#.into()),
        Cancelled::Delivering => Ok(json(StatusCode::ACCEPTED, r#"{"state":"delivering"}"#.into())),
        Cancelled::Done => {
            let detail = "the timer is done: there is nothing to cancel";
            Err(Problem::new(Code::Done, detail))
        }
        Cancelled::Unknown => Err(unknown_timer(&key)),
    }
}
