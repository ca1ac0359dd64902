//! Many timers: lists, and cancelling and reviving many.

use tourbillon_durable::{Cursor, Filter, Queue, State};

use super::{Reply, ok};
use crate::bodies;
use crate::extract::{Body, InQueue, Query};
use crate::json::{Field, Form};
use crate::params::Params;
use crate::problem::{Code, Problem};
use crate::render;
use crate::tokens::{Grant, Right};

/// The most bytes of payloads in an answer.
pub(crate) const MOST_PAYLOADS: usize = 16 << 20;

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
    let after = params.text("cursor").map(|text| cursor(&text)).transpose()?;
    let payload = params.flag("payload")?;
    page(&queue, &filter, after, limit, payload).await
}

fn cursor(text: &str) -> Result<Cursor, Problem> {
    let must = "the `next` of the page before, as it came";
    render::read_cursor(text).ok_or_else(|| Problem::value("cursor", &format!("{text:?}"), must))
}

/// A page. If its payloads are too large for an answer, a shorter one.
async fn page(
    queue: &Queue,
    filter: &Filter,
    after: Option<Cursor>,
    mut limit: usize,
    payload: bool,
) -> Reply {
    loop {
        let page = queue.list(filter.clone(), after.clone(), limit).await?;
        let sizes = page.timers.iter().map(|timer| timer.payload.len());
        let fits = fitting(sizes);
        if !payload || fits >= page.timers.len() {
            let (views, next) = (&page.timers, page.next.as_ref());
            return ok(render::page(queue.name(), views, next, payload));
        }
        // Only the store knows the cursor of a page that ends earlier.
        limit = fits;
    }
}

/// How many of these payloads fit in an answer, at least one.
pub(crate) fn fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let mut total = 0;
    let fits = |size: &usize| {
        total += size;
        total <= MOST_PAYLOADS
    };
    sizes.take_while(fits).count().max(1)
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

pub(crate) async fn cancel(
    InQueue(queue): InQueue,
    Query(query): Query,
    Body(body): Body,
) -> Reply {
    Params::read(&query, &[])?;
    let keys = bodies::keys(&body)?;
    let outcomes = queue.cancel_all(keys.iter().map(|key| key.as_str())).await?;
    ok(render::cancelled(&keys, &outcomes))
}

pub(crate) async fn redrive(
    InQueue(queue): InQueue,
    Query(query): Query,
    Body(body): Body,
) -> Reply {
    Params::read(&query, &[])?;
    let prefix = bodies::prefix(&body)?;
    ok(render::revived(queue.redrive(prefix.as_deref()).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_stops_at_its_limit_and_has_at_least_one() {
        let half = MOST_PAYLOADS / 2;
        assert_eq!(fitting([half, half, 1].into_iter()), 2);
        assert_eq!(fitting([MOST_PAYLOADS + 1, 1].into_iter()), 1);
        assert_eq!(fitting([0; 5].into_iter()), 5);
    }
}
