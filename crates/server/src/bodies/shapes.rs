//! Request schemas: the fields of each call's body.

use crate::json::{Field, Form, Shape};

/// Maximum number of timers, keys or tokens in a request.
pub(crate) const MOST: usize = 10_000;

const fn field(name: &'static str, form: Form, about: &'static str) -> Field {
    Field { name, form, about }
}

pub(crate) const RETRY: Shape = Shape {
    name: "Retry",
    fields: &[
        field("attempts", Form::Whole(1, u32::MAX as u64), "The most attempts of an occurrence."),
        field("first", Form::Duration, "The delay after the first failure."),
        field("factor", Form::Number, "How many times longer each further delay is."),
        field("longest", Form::Duration, "The longest delay, before jitter."),
        field("jitter", Form::Number, "The part of a delay that chance may add, 0 to 1."),
    ],
};

pub(crate) const WEBHOOK: Shape = Shape {
    name: "NewWebhook",
    fields: &[
        field("url", Form::Text, "Where it is posted: http or https, at a public address."),
        field("headers", Form::Texts, "Headers of the post. Their values are never shown."),
        field("timeout", Form::Duration, "How long a post may take, 1s to 60s; 10s if not given."),
    ],
};

const OR_WEBHOOK: Form = Form::OrNull(&Form::Object(&WEBHOOK));

pub(crate) const TIMER: Shape = Shape {
    name: "NewTimer",
    fields: &[
        field("in", Form::Duration, "Due once, so long from now."),
        field("at", Form::Moment, "Due once, at that moment; with `every`, the first moment."),
        field("every", Form::Duration, "Due again and again, at least 1s apart."),
        field("cron", Form::Text, "Due by a cron expression of five fields, or six with seconds."),
        field("zone", Form::Text, "The time zone of `cron`; UTC if it is not given."),
        field("key", Form::Key, "Unique in the queue; assigned if it is not given."),
        field("payload", Form::Any, "What the holder of a delivery gets, as it came."),
        field("payload_base64", Form::Text, "The same, for what is not JSON."),
        field("until", Form::Moment, "No occurrence is due after it."),
        field("times", Form::Whole(1, 1 << 53), "The most occurrences."),
        field("missed", Form::OneOf(&["skip", "once", "all"]), "What becomes of missed moments."),
        field("expires", Form::Duration, "No attempt starts later than so long after `due`."),
        field("remember", Form::Duration, "How long the key stays taken afterwards."),
        field(
            "webhook",
            OR_WEBHOOK,
            "Where it is posted; null for nowhere, whatever the queue says.",
        ),
        field("retry", Form::Object(&RETRY), "How often it is tried."),
    ],
};

pub(crate) const TIMERS: Shape = Shape {
    name: "NewTimers",
    fields: &[field("timers", Form::List(&Form::Object(&TIMER), MOST), "All are made, or none.")],
};

pub(crate) const MOVE: Shape = Shape {
    name: "Move",
    fields: &[
        field("in", Form::Duration, "Due so long from now."),
        field("at", Form::Moment, "Due at that moment."),
    ],
};

pub(crate) const KEYS: Shape = Shape {
    name: "Keys",
    fields: &[field("keys", Form::List(&Form::Key, MOST), "The timers to cancel.")],
};

pub(crate) const REDRIVE: Shape =
    Shape { name: "Redrive", fields: &[field("prefix", Form::Text, "Only keys that begin so.")] };

const LIMIT: Form = Form::OrNull(&Form::Whole(1, u32::MAX as u64));

pub(crate) const QUEUE: Shape = Shape {
    name: "QueueChange",
    fields: &[
        field("paused", Form::Flag, "Hands out nothing."),
        field("retry", Form::Object(&RETRY), "The default of new timers."),
        field("webhook", OR_WEBHOOK, "The default of new timers."),
        field("remember", Form::Duration, "The default of new timers with a chosen key."),
        field("dead_keep", Form::Duration, "How long the dead are kept."),
        field("rate", LIMIT, "The most hand-outs a second."),
        field("concurrency", LIMIT, "The most timers that are out at once."),
    ],
};

pub(crate) const CLOCK: Shape = Shape {
    name: "Clock",
    fields: &[field("now", Form::Moment, "What the server's wall clock reads from now on.")],
};

pub(crate) const RECEIVE: Shape = Shape {
    name: "Receive",
    fields: &[
        field("max", Form::Whole(1, 1000), "The most deliveries; 1 if it is not given."),
        field("wait", Form::Duration, "How long to wait for one, at most 60s; 0s if not given."),
        field("lease", Form::Duration, "How long the taker has them, 1s to 12h; 30s if not given."),
    ],
};

const TOKENS: Field = field("tokens", Form::List(&Form::Text, MOST), "Tokens of deliveries.");

pub(crate) const ACK: Shape = Shape { name: "Ack", fields: &[TOKENS] };

pub(crate) const NACK: Shape = Shape {
    name: "Nack",
    fields: &[
        TOKENS,
        field("in", Form::Duration, "When the next attempt is; by its backoff if not given."),
        field("error", Form::Text, "Why, at most 4096 bytes: the timer's `last_error`."),
    ],
};

pub(crate) const EXTEND: Shape = Shape {
    name: "Extend",
    fields: &[TOKENS, field("lease", Form::Duration, "From now, 1s to 12h; 30s if not given.")],
};
