//! Response schemas, for the OpenAPI document. The tests check every answer against them.

use crate::bodies::RETRY;
use crate::json::{Field, Form, Shape};

const fn field(name: &'static str, form: Form, about: &'static str) -> Field {
    Field { name, form, about }
}

const WHOLE: Form = Form::Whole(0, (1 << 53) - 1);
const STATE: Form = Form::OneOf(&["scheduled", "due", "delivering", "dead", "done", "cancelled"]);

pub(crate) const STATUS: Shape =
    Shape { name: "Status", fields: &[field("status", Form::Text, "`ok`.")] };

pub(crate) const READY: Shape =
    Shape { name: "Ready", fields: &[field("status", Form::Text, "`ready`."), DAMAGED] };

const DAMAGED: Field =
    field("damaged", Form::Flag, "Whether some of the store cannot be read; the log says what.");

/// Any object.
pub(crate) const DOCUMENT: Shape = Shape { name: "Document", fields: &[] };

/// A stream of events.
pub(crate) const EVENTS: Shape = Shape { name: "Events", fields: &[] };

/// Metrics in the text format of Prometheus.
pub(crate) const METRICS: Shape = Shape { name: "Metrics", fields: &[] };

/// Lines of JSON.
pub(crate) const DUMP: Shape = Shape { name: "Dump", fields: &[] };

const WEBHOOK: Shape = Shape {
    name: "Webhook",
    fields: &[
        field("url", Form::Text, "Where it is posted."),
        field("headers", Form::List(&Form::Text, 64), "The names of its headers."),
        field("timeout", Form::Duration, "How long a post may take."),
    ],
};

const REPLACED: Shape = Shape {
    name: "Replaced",
    fields: &[
        field("generation", WHOLE, "The timer that was replaced."),
        field("state", STATE, "Its state; if `delivering`, its token is stale."),
    ],
};

const TIMER_FIELDS: &[Field] = &[
    field("queue", Form::Text, "Its queue."),
    field("key", Form::Key, "Its key, unique in the queue."),
    field("generation", WHOLE, "Names this timer for ever."),
    field("state", STATE, "Where it is in its life."),
    field("due", Form::Moment, "The moment of the occurrence."),
    field("next_attempt", Form::Moment, "The earliest moment of the next hand-out."),
    field("occurrence", WHOLE, "The number of the occurrence, from 1."),
    field("attempt", WHOLE, "Hand-outs of this occurrence so far."),
    field("created", Form::Moment, "When it was made."),
    field("payload", Form::Any, "What the holder of a delivery gets; null if there is none."),
    field("payload_base64", Form::Text, "The same, of a payload that is not JSON."),
    field("every", Form::OrNull(&Form::Duration), "Its period."),
    field("cron", Form::OrNull(&Form::Text), "Its cron expression."),
    field("zone", Form::OrNull(&Form::Text), "The time zone of `cron`."),
    field("missed", Form::OrNull(&Form::Text), "What becomes of missed moments."),
    field("until", Form::OrNull(&Form::Moment), "No occurrence is due after it."),
    field("times", Form::OrNull(&WHOLE), "The most occurrences."),
    field("expires", Form::OrNull(&Form::Duration), "No attempt starts so long after `due`."),
    field("remember", Form::Duration, "How long the key stays taken afterwards."),
    field("webhook", Form::OrNull(&Form::Object(&WEBHOOK)), "Where it is posted."),
    field("retry", Form::Object(&RETRY), "How often it is tried."),
    field("last_error", Form::OrNull(&Form::Text), "What the last failure said."),
    field("replaced", Form::Object(&REPLACED), "What it replaced, if it did."),
];

pub(crate) const TIMER: Shape = Shape { name: "Timer", fields: TIMER_FIELDS };

const OUTCOME: Shape = Shape {
    name: "Outcome",
    fields: &[
        field("key", Form::Key, "The key, given or assigned."),
        field("generation", WHOLE, "Names the timer for ever."),
        field("due", Form::Moment, "When it is due."),
        field("outcome", Form::OneOf(&["made", "replaced", "kept"]), "What happened."),
        field("replaced", Form::Object(&REPLACED), "What it replaced, if it did."),
    ],
};

/// A timer, or the outcomes of a list.
pub(crate) const MADE: Shape = Shape { name: "Made", fields: &[] };

pub(crate) const OUTCOMES: Shape = Shape {
    name: "Outcomes",
    fields: &[field("timers", Form::List(&Form::Object(&OUTCOME), 10_000), "In their order.")],
};

pub(crate) const PAGE: Shape = Shape {
    name: "Page",
    fields: &[
        field("timers", Form::List(&Form::Object(&TIMER), 1000), "The timers of the page."),
        field("next", Form::OrNull(&Form::Text), "The cursor of the next page, if there is one."),
    ],
};

pub(crate) const CANCELLED: Shape = Shape {
    name: "Cancelled",
    fields: &[field(
        "state",
        Form::OneOf(&["cancelled", "delivering"]),
        "`delivering`: only the consumer that holds it may still process it.",
    )],
};

pub(crate) const CANCELLED_KEYS: Shape = Shape {
    name: "CancelledKeys",
    fields: &[
        field("cancelled", WHOLE, "How many will never be handed out."),
        field("delivering", WHOLE, "The number that consumers hold."),
        field("done", Form::List(&Form::Key, 10_000), "Those that were done before."),
        field("unknown", Form::List(&Form::Key, 10_000), "Those that are not there."),
    ],
};

pub(crate) const CANCELLED_MANY: Shape = Shape {
    name: "CancelledMany",
    fields: &[
        field("cancelled", WHOLE, "How many will never be handed out."),
        field("delivering", WHOLE, "The number that consumers hold."),
        field("more", Form::Flag, "There may be more: ask again."),
    ],
};

pub(crate) const REVIVED: Shape = Shape {
    name: "Revived",
    fields: &[
        field("revived", WHOLE, "How many live again."),
        field("more", Form::Flag, "There may be more: ask again."),
    ],
};

const DELIVERY: Shape = Shape {
    name: "Delivery",
    fields: &[
        field("token", Form::Text, "Names the delivery: to settle it with."),
        field("queue", Form::Text, "The queue of the timer."),
        field("key", Form::Key, "The key of the timer."),
        field("payload", Form::Any, "What was scheduled; null if nothing."),
        field("payload_base64", Form::Text, "The same, of a payload that is not JSON."),
        field("due", Form::Moment, "The moment of the occurrence."),
        field("generation", WHOLE, "Names the timer for ever."),
        field("occurrence", WHOLE, "The number of the occurrence, from 1."),
        field("attempt", WHOLE, "The number of this hand-out, from 1."),
        field("handed", Form::Moment, "When it was handed out."),
        field("lease_until", Form::Moment, "When the lease ends."),
    ],
};

pub(crate) const DELIVERIES: Shape = Shape {
    name: "Deliveries",
    fields: &[field(
        "deliveries",
        Form::List(&Form::Object(&DELIVERY), 1000),
        "Longest due first; empty if the wait has passed.",
    )],
};

const STALE: Shape = Shape {
    name: "Stale",
    fields: &[
        field("token", Form::Text, "A token that does not count."),
        field(
            "reason",
            Form::OneOf(&[
                "acked",
                "nacked",
                "lapsed",
                "moved",
                "handed_again",
                "cancelled",
                "replaced",
                "given_up",
                "unknown",
            ]),
            "Why it does not.",
        ),
    ],
};

const STALE_LIST: Field =
    field("stale", Form::List(&Form::Object(&STALE), 10_000), "Tokens that do not count.");

pub(crate) const ACKED: Shape =
    Shape { name: "Acked", fields: &[field("acked", WHOLE, "How many are done."), STALE_LIST] };

pub(crate) const NACKED: Shape = Shape {
    name: "Nacked",
    fields: &[field("nacked", WHOLE, "How many are tried again or given up."), STALE_LIST],
};

pub(crate) const EXTENDED: Shape = Shape {
    name: "Extended",
    fields: &[
        field("extended", WHOLE, "How many have a new end of their lease."),
        field("lease_until", Form::OrNull(&Form::Moment), "That end; null if there are none."),
        STALE_LIST,
    ],
};

const COUNTS: Shape = Shape {
    name: "Counts",
    fields: &[
        field("scheduled", WHOLE, "Their next attempt is to come."),
        field("due", WHOLE, "Due, and not handed out."),
        field("delivering", WHOLE, "Somebody has them."),
        field("dead", WHOLE, "They were given up."),
    ],
};

const LATENESS: Shape = Shape {
    name: "Lateness",
    fields: &[
        field("p50", Form::Duration, "Half of them were not later."),
        field("p99", Form::Duration, "99 in a hundred were not later."),
        field("max", Form::Duration, "The latest."),
    ],
};

const LIMIT: Form = Form::OrNull(&Form::Whole(1, u32::MAX as u64));

const QUEUE_SETTINGS: Shape = Shape {
    name: "QueueSettings",
    fields: &[
        field("retry", Form::Object(&RETRY), "The default of new timers."),
        field("webhook", Form::OrNull(&Form::Object(&WEBHOOK)), "The default of new timers."),
        field("remember", Form::Duration, "The default of new timers with a chosen key."),
        field("dead_keep", Form::Duration, "How long the dead are kept."),
        field("rate", LIMIT, "The most hand-outs a second."),
        field("concurrency", LIMIT, "The most timers that are out at once."),
    ],
};

pub(crate) const QUEUE: Shape = Shape {
    name: "Queue",
    fields: &[
        field("queue", Form::Text, "Its name."),
        field("counts", Form::Object(&COUNTS), "How many timers are in which state."),
        field("next", Form::OrNull(&Form::Moment), "When the next timer becomes due."),
        field("oldest_due", Form::OrNull(&Form::Moment), "Since when the longest due waits."),
        field("paused", Form::Flag, "Whether it hands out nothing."),
        field("lateness", Form::Object(&LATENESS), "Of the hand-outs of the last minute."),
        field("per_second", Form::Number, "Hand-outs a second, over the last minute."),
        field("settings", Form::Object(&QUEUE_SETTINGS), "What PATCH has set."),
    ],
};

pub(crate) const DELETED: Shape = Shape {
    name: "Deleted",
    fields: &[field("state", Form::OneOf(&["deleted"]), "It and all its timers are gone.")],
};

pub(crate) const QUEUES: Shape = Shape {
    name: "Queues",
    fields: &[
        field("queues", Form::List(&Form::Object(&QUEUE), usize::MAX), "In no order."),
        DAMAGED,
        field("right", Form::OneOf(&["read", "write", "admin"]), "What the token may do."),
    ],
};

const BUCKET: Shape = Shape {
    name: "Bucket",
    fields: &[
        field("from", Form::Moment, "Its beginning."),
        field("to", Form::Moment, "Its end, which is not in it."),
        field("count", WHOLE, "How many timers are due in it."),
    ],
};

pub(crate) const FORECAST: Shape = Shape {
    name: "Forecast",
    fields: &[field("buckets", Form::List(&Form::Object(&BUCKET), 1000), "In their order.")],
};

pub(crate) const PROBLEM: Shape = Shape {
    name: "Problem",
    fields: &[
        field("title", Form::Text, "The kind of problem, for people."),
        field("status", WHOLE, "The status."),
        field("detail", Form::Text, "What is wrong, and what would be right."),
        field("code", Form::Text, "The kind of problem, for programs. Stable."),
        field("field", Form::Text, "The field or parameter that is wrong."),
        field("index", WHOLE, "Which timer, key or token of the request, from 0."),
        field("state", STATE, "The state of the timer that is there."),
    ],
};
