//! Answers: the results of `tourbillon-durable` as JSON. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use tourbillon_durable::values::{Content, Generation, Key, Missed, Moment, Retry, Rhythm};
use tourbillon_durable::{
    Cancelled, Cursor, Delivery, Many, Outcome, Scheduled, Stats, View, Webhook,
};

use crate::json::{List, Object, quoted};

/// A timer. Includes the payload only if `payload` is set.
pub(crate) fn timer(queue: &str, view: &View, payload: bool) -> Object {
    let mut object = Object::new();
    object
        .text("queue", queue)
        .text("key", &view.key)
        .raw("generation", view.generation.0)
        .text("state", view.state.name())
        .text("due", view.due)
        .text("next_attempt", view.next_attempt)
        .raw("occurrence", view.occurrence)
        .raw("attempt", view.attempt)
        .text("created", view.created);
    if payload {
        write_payload(&mut object, &view.payload, view.payload.content());
    }
    recurrence(&mut object, view);
    object
        .text_or_null("expires", view.expires)
        .text("remember", view.remember)
        .raw_or_null("webhook", view.webhook.as_deref().map(webhook))
        .raw("retry", retry(&view.retry))
        .text_or_null("last_error", view.last_error.as_deref());
    object
}

fn recurrence(object: &mut Object, view: &View) {
    let recurrence = view.recurrence.as_ref();
    let (mut every, mut cron, mut zone) = (None, None, None);
    match recurrence.map(|recurrence| &recurrence.rhythm) {
        Some(Rhythm::Every(period)) => every = Some(period),
        Some(Rhythm::Cron { expression, zone: of, .. }) => {
            (cron, zone) = (Some(expression), Some(of));
        }
        None => {}
    }
    let missed = recurrence.map(|recurrence| match recurrence.missed {
        Missed::Skip => "skip",
        Missed::Once => "once",
        Missed::All => "all",
    });
    object
        .text_or_null("every", every)
        .text_or_null("cron", cron)
        .text_or_null("zone", zone)
        .text_or_null("missed", missed)
        .text_or_null("until", recurrence.and_then(|recurrence| recurrence.until))
        .raw_or_null("times", recurrence.and_then(|recurrence| recurrence.times));
}

/// Writes JSON unchanged, and other bytes in base64. An empty payload is null.
fn write_payload(object: &mut Object, payload: &[u8], content: Content) {
    match str::from_utf8(payload).ok().filter(|_| content == Content::Json) {
        Some(json) => object.raw("payload", json),
        None if payload.is_empty() => object.raw("payload", "null"),
        None => object.text("payload_base64", BASE64.encode(payload)),
    };
}

/// A webhook, without the values of its headers.
fn webhook(webhook: &Webhook) -> String {
    let names = webhook.headers.iter().map(|(name, _)| quoted(name));
    let mut object = Object::new();
    object.text("url", &webhook.url).raw("headers", List::of(names));
    object.text("timeout", webhook.timeout);
    object.end()
}

pub(crate) fn retry(retry: &Retry) -> String {
    let Retry { attempts, first, factor, longest, jitter } = retry;
    let mut object = Object::new();
    object.raw("attempts", attempts).text("first", first).raw("factor", format!("{factor:?}"));
    object.text("longest", longest).raw("jitter", format!("{jitter:?}"));
    object.end()
}

/// The timer that was replaced, if one was.
pub(crate) fn replaced(outcome: Outcome) -> Option<String> {
    let Outcome::Replaced(generation, state) = outcome else { return None };
    let mut object = Object::new();
    object.raw("generation", generation.0).text("state", state.name());
    Some(object.end())
}

/// The outcomes of a list of new timers.
pub(crate) fn outcomes(scheduled: &[Scheduled]) -> String {
    let one = |scheduled: &Scheduled| {
        let mut object = Object::new();
        object.text("key", &scheduled.key).raw("generation", scheduled.generation.0);
        object.text("due", scheduled.due);
        object.text(
            "outcome",
            match scheduled.outcome {
                Outcome::Made => "made",
                Outcome::Replaced(..) => "replaced",
                Outcome::Kept => "kept",
            },
        );
        if let Some(replaced) = replaced(scheduled.outcome) {
            object.raw("replaced", replaced);
        }
        object.end()
    };
    let mut object = Object::new();
    object.raw("timers", List::of(scheduled.iter().map(one)));
    object.end()
}

/// A page of a list.
pub(crate) fn page(queue: &str, views: &[View], next: Option<&Cursor>, payload: bool) -> String {
    let timers = views.iter().map(|view| timer(queue, view, payload).end());
    let mut object = Object::new();
    object.raw("timers", List::of(timers)).text_or_null("next", next.map(cursor));
    object.end()
}

/// The outcomes for the keys of a cancel.
pub(crate) fn cancelled(keys: &[Key], outcomes: &[Cancelled]) -> String {
    let count = |which| outcomes.iter().filter(|outcome| **outcome == which).count();
    let names = |which| {
        let those = keys.iter().zip(outcomes).filter(move |(_, outcome)| **outcome == which);
        List::of(those.map(|(key, _)| quoted(key.as_str())))
    };
    let mut object = Object::new();
    object.raw("cancelled", count(Cancelled::Cancelled));
    object.raw("delivering", count(Cancelled::Delivering));
    object.raw("done", names(Cancelled::Done)).raw("unknown", names(Cancelled::Unknown));
    object.end()
}

pub(crate) fn cancelled_many(many: Many) -> String {
    let mut object = Object::new();
    object.raw("cancelled", many.done).raw("delivering", many.delivering).raw("more", many.more);
    object.end()
}

pub(crate) fn revived(many: Many) -> String {
    let mut object = Object::new();
    object.raw("revived", many.done).raw("more", many.more);
    object.end()
}

/// Deliveries for their taker.
pub(crate) fn deliveries(queue: &str, deliveries: &[Delivery]) -> String {
    let one = |delivery: &Delivery| {
        let token = delivery.token();
        let mut object = Object::new();
        object.text("token", token).text("queue", queue).text("key", &token.key);
        write_payload(&mut object, delivery.payload(), delivery.content());
        object.text("due", delivery.due()).raw("generation", token.generation.0);
        object.raw("occurrence", token.occurrence).raw("attempt", token.attempt);
        object.text("handed", delivery.handed()).text("lease_until", delivery.lease_until());
        object.end()
    };
    let mut object = Object::new();
    object.raw("deliveries", List::of(deliveries.iter().map(one)));
    object.end()
}

/// The outcomes for tokens; `reasons` has a reason for each stale one.
pub(crate) fn settled(
    verb: &str,
    tokens: &[String],
    reasons: &[Option<&str>],
    until: Option<Option<Moment>>,
) -> String {
    let stale = tokens.iter().zip(reasons).filter_map(|(token, reason)| {
        let mut object = Object::new();
        object.text("token", token).text("reason", (*reason)?);
        Some(object.end())
    });
    let mut object = Object::new();
    object.raw(verb, reasons.iter().filter(|reason| reason.is_none()).count());
    if let Some(until) = until {
        object.text_or_null("lease_until", until);
    }
    object.raw("stale", List::of(stale));
    object.end()
}

/// A queue.
pub(crate) fn queue(name: &str, stats: &Stats) -> String {
    let Stats { counts, settings, lateness, .. } = stats;
    let mut counted = Object::new();
    counted.raw("scheduled", counts.scheduled).raw("due", counts.due);
    counted.raw("delivering", counts.delivering).raw("dead", counts.dead);
    let mut late = Object::new();
    late.text("p50", lateness.p50).text("p99", lateness.p99).text("max", lateness.max);
    let mut set = Object::new();
    set.raw("retry", retry(&settings.retry));
    set.raw_or_null("webhook", settings.webhook.as_deref().map(webhook))
        .text("remember", settings.remember);
    set.text("dead_keep", settings.dead_keep).raw_or_null("rate", settings.rate);
    set.raw_or_null("concurrency", settings.concurrency);
    let mut object = Object::new();
    object.text("queue", name).raw("counts", counted.end());
    object.text_or_null("next", stats.next).text_or_null("oldest_due", stats.oldest_due);
    object.raw("paused", settings.paused).raw("lateness", late.end());
    object.raw("per_second", format!("{:.3}", stats.per_second)).raw("settings", set.end());
    object.end()
}

pub(crate) fn forecast(pieces: &[(Moment, Moment, u64)]) -> String {
    let one = |(from, to, count): &(Moment, Moment, u64)| {
        let mut object = Object::new();
        object.text("from", from).text("to", to).raw("count", count);
        object.end()
    };
    let mut object = Object::new();
    object.raw("buckets", List::of(pieces.iter().map(one)));
    object.end()
}

/// A cursor as an opaque text.
pub(crate) fn cursor(cursor: &Cursor) -> String {
    let text = match cursor {
        Cursor::Key(key) => format!("k{key}"),
        Cursor::Time(moment, None) => format!("t{}", moment.millis()),
        Cursor::Time(moment, Some(key)) => format!("t{} {key}", moment.millis()),
        Cursor::Ended(moment, generation) => format!("d{} {}", moment.millis(), generation.0),
    };
    URL_SAFE_NO_PAD.encode(text)
}

/// Parses a cursor.
pub(crate) fn read_cursor(text: &str) -> Option<Cursor> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let moment = |text: &str| {
        let millis = text.parse().ok().filter(|millis| *millis <= Moment::MAX.millis());
        millis.map(Moment::from_millis)
    };
    let rest = text.get(1..)?;
    match text.as_bytes()[0] {
        b'k' => Some(Cursor::Key(Key::new(rest).ok()?)),
        b't' => match rest.split_once(' ') {
            None => Some(Cursor::Time(moment(rest)?, None)),
            Some((at, key)) => Some(Cursor::Time(moment(at)?, Some(Key::new(key).ok()?))),
        },
        b'd' => {
            let (at, generation) = rest.split_once(' ')?;
            Some(Cursor::Ended(moment(at)?, Generation(generation.parse().ok()?)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tourbillon_durable::values::Payload;

    use super::*;

    #[test]
    fn a_cursor_comes_back() {
        let key = Key::new("a b/ä").unwrap();
        for one in [
            Cursor::Key(key.clone()),
            Cursor::Time(Moment::MAX, None),
            Cursor::Time(Moment::from_millis(7), Some(key)),
            Cursor::Ended(Moment::ZERO, Generation(4711)),
        ] {
            assert_eq!(read_cursor(&cursor(&one)), Some(one));
        }
        for wrong in ["", "x", "AAAA", "aw", "dA", "dDk5OTk5OTk5OTk5OTk5OTk5OTk", "w6Q"] {
            assert_eq!(read_cursor(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn payloads_leave_as_they_came() {
        let shown = |payload: Payload| {
            let mut object = Object::new();
            write_payload(&mut object, &payload, payload.content());
            object.end()
        };
        assert_eq!(shown(Payload::default()), r#"{"payload":null}"#);
        assert_eq!(shown(Payload::json(r#"{ "a" : 1.0 }"#)), r#"{"payload":{ "a" : 1.0 }}"#);
        assert_eq!(shown(Payload::bytes("{}")), r#"{"payload_base64":"e30="}"#);
    }
}
