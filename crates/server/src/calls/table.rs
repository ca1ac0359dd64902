//! The table of calls, from which the router and the OpenAPI document are made.

use axum::routing::{MethodRouter, delete, get, patch, post, put};

use super::{deliveries, events, many, outside, queues, timers};
use crate::app::App;
use crate::bodies;
use crate::json::{Field, Shape};
use crate::problem::Code;
use crate::shapes;
use crate::tokens::Right;

/// A method of a path.
pub(crate) struct Call {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// The right that its token must grant.
    pub(crate) right: Right,
    /// The description of the call, in one sentence.
    pub(crate) about: &'static str,
    /// The parameters of its query.
    pub(crate) query: &'static [Field],
    /// The schemas of its request body, of which one applies.
    pub(crate) bodies: &'static [&'static Shape],
    /// Whether it takes `If-Match` or `If-None-Match`.
    pub(crate) conditional: bool,
    /// The success statuses, each with the schema of the answer.
    pub(crate) answers: &'static [(u16, &'static Shape)],
    /// Its problems, in addition to those of every call.
    pub(crate) problems: &'static [Code],
    pub(crate) handler: fn() -> MethodRouter<App>,
}

/// This path exists only with a test clock, and is not in the document.
pub(crate) const TEST_CLOCK: &str = "/v1/test/clock";

const QUEUES: &str = "/v1/queues";
const QUEUE: &str = "/v1/queues/{queue}";
const TIMERS: &str = "/v1/queues/{queue}/timers";
const TIMER: &str = "/v1/queues/{queue}/timers/{key}";

/// A call with the default right of its method.
const fn call(
    method: &'static str,
    path: &'static str,
    handler: fn() -> MethodRouter<App>,
) -> Call {
    let right = if matches!(method.as_bytes(), b"get") { Right::Read } else { Right::Write };
    let (query, bodies, answers, problems) = (&[], &[], &[], &[]);
    let (about, conditional) = ("", false);
    Call { method, path, right, about, query, bodies, conditional, answers, problems, handler }
}

pub(crate) const CALLS: &[Call] = &[
    Call {
        about: "Says that the process runs.",
        answers: &[(200, &shapes::STATUS)],
        right: Right::Open,
        ..call("get", "/healthz", || get(outside::healthz))
    },
    Call {
        about: "Says whether the server takes changes, else why not.",
        answers: &[(200, &shapes::READY)],
        right: Right::Open,
        ..call("get", "/readyz", || get(outside::readyz))
    },
    Call {
        about: "The OpenAPI document of this server.",
        answers: &[(200, &shapes::DOCUMENT)],
        ..call("get", "/openapi.json", || get(outside::openapi))
    },
    Call {
        about: "What the server and its queues do, for Prometheus; not with a token for some queues.",
        answers: &[(200, &shapes::METRICS)],
        ..call("get", "/metrics", || get(outside::metrics))
    },
    Call {
        about: "What happens to timers, as server-sent events; a slow reader loses lines and receives their number.",
        query: events::EVENTS,
        answers: &[(200, &shapes::EVENTS)],
        ..call("get", "/v1/events", || get(events::events))
    },
    Call {
        about: "Every timer with its payload and headers, one state of the store, a JSON object a line.",
        right: Right::Admin,
        answers: &[(200, &shapes::DUMP)],
        ..call("get", "/v1/dump", || get(outside::dump))
    },
    Call {
        about: "Shows every queue.",
        answers: &[(200, &shapes::QUEUES)],
        ..call("get", QUEUES, || get(queues::all))
    },
    Call {
        about: "Shows a queue: what it holds, and its settings.",
        answers: &[(200, &shapes::QUEUE)],
        problems: &[Code::UnknownQueue],
        ..call("get", QUEUE, || get(queues::one))
    },
    Call {
        about: "Changes settings of a queue, and makes it if it is not there.",
        bodies: &[&bodies::QUEUE],
        answers: &[(200, &shapes::QUEUE)],
        right: Right::Admin,
        ..call("patch", QUEUE, || patch(queues::set))
    },
    Call {
        about: "Deletes a queue and all its timers.",
        right: Right::Admin,
        query: queues::DELETE,
        answers: &[(200, &shapes::DELETED)],
        problems: &[Code::UnknownQueue, Code::Delivering],
        ..call("delete", QUEUE, || delete(queues::remove))
    },
    Call {
        about: "Counts timers by when they are due, without reading them.",
        query: queues::FORECAST,
        answers: &[(200, &shapes::FORECAST)],
        problems: &[Code::UnknownQueue],
        ..call("get", "/v1/queues/{queue}/forecast", || get(queues::forecast))
    },
    Call {
        about: "Makes a timer, or up to 10000: all or none.",
        query: timers::ON_CONFLICT,
        bodies: &[&bodies::TIMER, &bodies::TIMERS],
        answers: &[(201, &shapes::MADE), (200, &shapes::MADE)],
        problems: &[Code::KeyTaken, Code::KeyTwice, Code::Never, Code::PayloadTooLarge],
        ..call("post", TIMERS, || post(timers::schedule))
    },
    Call {
        about: "Lists timers by next attempt, or by key, a page at a time.",
        query: many::LIST,
        answers: &[(200, &shapes::PAGE)],
        ..call("get", TIMERS, || get(many::list))
    },
    Call {
        about: "Cancels the timers whose keys begin so, at most 100000 a call; or all of them at once.",
        query: many::CANCEL,
        answers: &[(200, &shapes::CANCELLED_MANY)],
        ..call("delete", TIMERS, || delete(many::cancel_many))
    },
    Call {
        about: "Makes a timer, or replaces the one that has the key.",
        conditional: true,
        bodies: &[&bodies::TIMER],
        answers: &[(201, &shapes::TIMER), (200, &shapes::TIMER)],
        problems: &[Code::Never, Code::PayloadTooLarge, Code::PreconditionFailed],
        ..call("put", TIMER, || put(timers::replace))
    },
    Call {
        about: "Shows a timer, also one that is dead or remembered.",
        answers: &[(200, &shapes::TIMER)],
        problems: &[Code::UnknownTimer],
        ..call("get", TIMER, || get(timers::show))
    },
    Call {
        about: "Moves the occurrence of a timer; a dead one lives again.",
        conditional: true,
        bodies: &[&bodies::MOVE],
        answers: &[(200, &shapes::TIMER)],
        problems: &[
            Code::UnknownTimer,
            Code::Delivering,
            Code::Done,
            Code::Cancelled,
            Code::PreconditionFailed,
        ],
        ..call("patch", TIMER, || patch(timers::reschedule))
    },
    Call {
        about: "Cancels a timer: 200 if it was not handed out, 202 if a consumer holds it.",
        conditional: true,
        answers: &[(200, &shapes::CANCELLED), (202, &shapes::CANCELLED)],
        problems: &[Code::UnknownTimer, Code::Done, Code::PreconditionFailed],
        ..call("delete", TIMER, || delete(timers::cancel))
    },
    Call {
        about: "Makes a timer due now; of a recurring one, an extra occurrence.",
        answers: &[(200, &shapes::TIMER)],
        problems: &[Code::UnknownTimer, Code::Delivering, Code::Done, Code::Cancelled],
        ..call("post", "/v1/queues/{queue}/timers/{key}/run", || post(timers::run))
    },
    Call {
        about: "Cancels up to 10000 timers.",
        bodies: &[&bodies::KEYS],
        answers: &[(200, &shapes::CANCELLED_KEYS)],
        ..call("post", "/v1/queues/{queue}/cancel", || post(many::cancel))
    },
    Call {
        about: "Makes dead timers due now, at most 10000 a call.",
        bodies: &[&bodies::REDRIVE],
        answers: &[(200, &shapes::REVIVED)],
        ..call("post", "/v1/queues/{queue}/redrive", || post(many::redrive))
    },
    Call {
        about: "Takes timers that are due; waits for one if there is none.",
        bodies: &[&bodies::RECEIVE],
        answers: &[(200, &shapes::DELIVERIES)],
        ..call("post", "/v1/queues/{queue}/receive", || post(deliveries::receive))
    },
    Call {
        about: "Says that the work of deliveries is done.",
        bodies: &[&bodies::ACK],
        answers: &[(200, &shapes::ACKED)],
        ..call("post", "/v1/queues/{queue}/ack", || post(deliveries::ack))
    },
    Call {
        about: "Says that the work of deliveries failed: they are tried again, or given up.",
        bodies: &[&bodies::NACK],
        answers: &[(200, &shapes::NACKED)],
        ..call("post", "/v1/queues/{queue}/nack", || post(deliveries::nack))
    },
    Call {
        about: "Extends the leases of deliveries, from now.",
        bodies: &[&bodies::EXTEND],
        answers: &[(200, &shapes::EXTENDED)],
        ..call("post", "/v1/queues/{queue}/extend", || post(deliveries::extend))
    },
    Call {
        right: Right::Admin,
        bodies: &[&bodies::CLOCK],
        ..call("post", TEST_CLOCK, || post(outside::set_clock))
    },
];
