//! Many timers: lists, and cancelling and reviving in bulk.

use tourbillon_durable::{Cursor, Filter, State};

use super::{Reply, ok};
use crate::bodies;
use crate::extract::{Body, InQueue, Query};
use crate::json::{Field, Form};
use crate::params::Params;
use crate::problem::{Code, Problem};
use crate::render;
use crate::tokens::{Grant, Right};

const fn param(name: &'static str, form: Form, about: &'static str) -> Field {
    Field { name, form, about }
}

const STATE_NAMES: &[&str] = &["scheduled", "due", "delivering", "dead", "done", "cancelled"];

pub(crate) const LIST: &[Field] = &[
    param("state", Form::OneOf(STATE_NAMES), "Only timers in this state."),
    param("from", Form::Moment, "Only next attempts from here on."),
    param("to", Form::Moment, "Only next attempts before this."),
    param("prefix", Form::Text, "Only keys that begin so, in their order."),
    param("limit", Form::Whole(1, 1000), "The most timers of the page; 100 if it is not given."),
    param("cursor", Form::Text, "Where the page before ended: its `next`."),
    param("payload", Form::Flag, "Whether payloads are shown."),
];

pub(crate) async fn list(InQueue(queue): InQueue, Query(query): Query) -> Reply {
    let mut params = Params::read(&query, LIST)?;
    let mut filter =
        Filter { state: params.one_of("state")?.map(|nth| State::ALL[nth]), ..Filter::default() };
    filter.from = params.moment("from")?.unwrap_or(filter.from);
    filter.to = params.moment("to")?.unwrap_or(filter.to);
    filter.prefix = params.text("prefix").map(bodies::not_empty).transpose()?;
    let limit = params.whole("limit")?.unwrap_or(100);
    let after = params.text("cursor").map(|text| cursor(&text, &filter)).transpose()?;
    let payload = params.flag("payload")?;
    let page = queue.list(filter, after, limit).await?;
    ok(render::page(queue.name(), &page.timers, page.next.as_ref(), payload))
}

/// Parses a cursor. It continues only a list in the order of the list that returned it.
fn cursor(text: &str, filter: &Filter) -> Result<Cursor, Problem> {
    let must = "the `next` of the previous page, unchanged, with the same other parameters";
    let by_key = filter.prefix.is_some();
    let ended = matches!(filter.state, Some(State::Dead | State::Done | State::Cancelled));
    let goes_on = |cursor: &Cursor| match cursor {
        Cursor::Key(_) => by_key,
        Cursor::Ended(..) => ended && !by_key,
        Cursor::Time(..) => !ended && !by_key,
    };
    let cursor = render::read_cursor(text).filter(goes_on);
    cursor.ok_or_else(|| Problem::value("cursor", &format!("{text:?}"), must))
}

pub(crate) const CANCEL: &[Field] = &[
    param("prefix", Form::Text, "The beginning of their keys."),
    param(
        "all",
        Form::Flag,
        "Every timer of the queue; nothing of them is remembered. Needs `admin`.",
    ),
];

pub(crate) async fn cancel_many(
    InQueue(queue): InQueue,
    grant: Grant,
    Query(query): Query,
) -> Reply {
    let mut params = Params::read(&query, CANCEL)?;
    let prefix = params.text("prefix").map(bodies::not_empty).transpose()?;
    match (prefix, params.flag("all")?) {
        (Some(prefix), false) => ok(render::cancelled_many(queue.cancel_prefix(&prefix).await?)),
        (None, true) => {
            grant.must(Right::Admin)?;
            ok(render::cancelled_many(queue.clear().await?))
        }
        (Some(_), true) => {
            let detail = "prefix and all exclude each other: leave one out";
            Err(Problem::new(Code::ExclusiveFields, detail).field("all"))
        }
        (None, false) => {
            let detail = "prefix is missing: say which timers to cancel, or all=true";
            Err(Problem::new(Code::MissingField, detail).field("prefix"))
        }
    }
}

pub(crate) async fn cancel(InQueue(queue): InQueue, Body(body, _place): Body) -> Reply {
    let keys = bodies::keys(&body)?;
    let outcomes = queue.cancel_all(keys.iter().map(|key| key.as_str())).await?;
    ok(render::cancelled(&keys, &outcomes))
}

pub(crate) async fn redrive(InQueue(queue): InQueue, Body(body, _place): Body) -> Reply {
    let prefix = bodies::prefix(&body)?;
    ok(render::revived(queue.redrive(prefix.as_deref()).await?))
}
