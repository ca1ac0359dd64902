//! Bodies: parses each request body into the types of `tourbillon-durable`. Pure.

mod shapes;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tourbillon_durable::values::{
    Key, Missed, Moment, Payload, Recurrence, Retry, RetryChange, Rhythm, Span,
};
use tourbillon_durable::{Change, Nack, NewTimer, Secret, Webhook, When};

use crate::fields::Fields;
use crate::json::Shape;
use crate::problem::{Code, Problem};
pub(crate) use shapes::*;

const MISSED: &[(&str, Missed)] =
    &[("skip", Missed::Skip), ("once", Missed::Once), ("all", Missed::All)];

/// Maximum length of the error in a nack, in bytes.
const LONGEST_ERROR: usize = 4096;

/// Reads some fields of a retry; the remaining fields are the queue's.
fn retry(mut fields: Fields<'_>) -> Result<RetryChange, Problem> {
    let attempts = fields.whole("attempts")?.map(|number| number as u32);
    let (first, longest) = (fields.span("first")?, fields.span("longest")?);
    let (factor, jitter) = (fields.number("factor")?, fields.number("jitter")?);
    let change = RetryChange { attempts, first, factor, longest, jitter };
    // The limits of each field are independent of the other fields.
    let checked = change.over(Retry::default()).checked();
    checked.map_err(|wrong| Problem::refused(wrong.field, &wrong))?;
    Ok(change)
}

/// A timer as parsed; its retry may need the queue's defaults.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) timer: NewTimer,
    pub(crate) retry: Option<RetryChange>,
}

/// Reads a timer. `most` is the maximum payload.
pub(crate) fn timer(text: &str, most: usize) -> Result<Draft, Problem> {
    let mut fields = Fields::read(text, &TIMER)?;
    let key = fields.text("key")?.map(|key| Key::chosen(&key)).transpose();
    let key = key.map_err(|wrong| Problem::refused("key", &wrong))?;
    let (when, recurrence) = rhythm(&mut fields)?;
    let payload = payload(&mut fields, most)?;
    let (remember, expires) = (fields.span("remember")?, fields.span("expires")?);
    let webhook = webhook(&mut fields)?;
    let retry = fields.object("retry", "retry.")?.map(retry).transpose()?;
    let timer =
        NewTimer { key, when, payload, recurrence, remember, retry: None, expires, webhook };
    Ok(Draft { timer, retry })
}

/// Reads one timer, or the list of a body with `timers`. Returns whether it was a list.
pub(crate) fn one_or_many(text: &str, most: usize) -> Result<(Vec<Draft>, bool), Problem> {
    if !begins_with_timers(text) {
        return Ok((vec![timer(text, most)?], false));
    }
    let list = Fields::read(text, &TIMERS)?.list("timers")?.unwrap_or_default();
    if list.is_empty() {
        let detail = "timers is empty: give 1 to 10000";
        return Err(Problem::new(Code::BadValue, detail).field("timers"));
    }
    let one = |(index, text): (usize, &str)| {
        timer(text, most).map_err(|problem| in_list(problem, text).index(index))
    };
    Ok((list.into_iter().enumerate().map(one).collect::<Result<_, _>>()?, true))
}

/// Reports an element that is not an object as an invalid value of the list.
fn in_list(problem: Problem, text: &str) -> Problem {
    match problem.code {
        Code::BadJson => Problem::value("timers", text, "a list of timers"),
        _ => problem,
    }
}

/// Whether `timers` is the first field of the object. No timer has such a field, and a list has no other field.
fn begins_with_timers(text: &str) -> bool {
    let inner = text.trim_start().strip_prefix('{').map(str::trim_start);
    inner.is_some_and(|inner| inner.starts_with("\"timers\""))
}

fn exclusive(one: &str, other: &str) -> Problem {
    let detail = format!("{one} and {other} exclude each other: leave one out");
    Problem::new(Code::ExclusiveFields, detail).field(other)
}

/// When a timer is due, and how it recurs.
fn rhythm(fields: &mut Fields<'_>) -> Result<(When, Option<Recurrence>), Problem> {
    for (one, other) in
        [("in", "at"), ("in", "every"), ("in", "cron"), ("at", "cron"), ("every", "cron")]
    {
        if fields.has(one) && fields.has(other) {
            return Err(exclusive(one, other));
        }
    }
    let (delay, at) = (fields.span("in")?, fields.moment("at")?);
    let every = fields.span("every")?.map(Rhythm::every).transpose();
    let every = every.map_err(|wrong| Problem::refused("every", &wrong))?;
    let cron = match fields.text("cron")? {
        None => None,
        Some(expression) => {
            let zone = fields.text("zone")?.unwrap_or_else(|| "UTC".into());
            Some(cron(&expression, &zone)?)
        }
    };
    if fields.has("zone") {
        return Err(only_for("zone", "cron"));
    }
    let Some(rhythm) = every.or(cron) else {
        for name in ["missed", "times", "until"] {
            if fields.has(name) {
                return Err(only_for(name, "every or cron"));
            }
        }
        let when = delay.map(When::In).or(at.map(When::At));
        let none = || fields.missing("in", "give one of in, at, every and cron");
        return Ok((when.ok_or_else(none)?, None));
    };
    let missed = fields.one_of("missed")?.map_or_else(Missed::default, |nth| MISSED[nth].1);
    let (until, times) = (fields.moment("until")?, fields.whole("times")?);
    let when = at.map_or(When::Rhythm, When::At);
    Ok((when, Some(Recurrence { rhythm, missed, until, times })))
}

/// A cron expression in a zone. The problem names the expression or the zone, whichever is wrong.
fn cron(expression: &str, zone: &str) -> Result<Rhythm, Problem> {
    Rhythm::cron(expression, zone).map_err(|wrong| {
        let zone_is_wrong = Rhythm::cron("* * * * *", zone).is_err();
        let (field, text) = if zone_is_wrong { ("zone", zone) } else { ("cron", expression) };
        Problem::value(field, &format!("{text:?}"), &wrong.must)
    })
}

fn only_for(name: &str, of: &str) -> Problem {
    let detail = format!("{name} is only for a timer with {of}: leave it out");
    Problem::new(Code::BadValue, detail).field(name)
}

fn payload(fields: &mut Fields<'_>, most: usize) -> Result<Payload, Problem> {
    if fields.has("payload") && fields.has("payload_base64") {
        return Err(exclusive("payload", "payload_base64"));
    }
    let (name, payload) = match (fields.any("payload"), fields.text("payload_base64")?) {
        (Some(json), _) => ("payload", Payload::json(json)),
        (None, None) => return Ok(Payload::default()),
        (None, Some(text)) => {
            let bytes = BASE64.decode(&text).map_err(|_| {
                Problem::value("payload_base64", &format!("{text:?}"), "base64 with padding")
            })?;
            ("payload_base64", Payload::bytes(bytes))
        }
    };
    if payload.len() > most {
        let detail = format!(
            "{name} has {} bytes: at most {most} fit; store it elsewhere and name it",
            payload.len()
        );
        return Err(Problem::new(Code::PayloadTooLarge, detail).field(name));
    }
    Ok(payload)
}

/// The webhook of a timer. `Some(None)`: the timer has none.
fn webhook(fields: &mut Fields<'_>) -> Result<Option<Option<Arc<Webhook>>>, Problem> {
    let Some(found) = fields.object_or_null("webhook", "webhook.")? else { return Ok(None) };
    let Some(mut fields) = found else { return Ok(Some(None)) };
    let url = fields.text("url")?.ok_or_else(|| fields.missing("url", "say where to post"))?;
    let headers = fields.texts_by_name("headers")?;
    let headers = headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
    let timeout = fields.span("timeout")?.unwrap_or(Span::from_secs(10));
    let webhook = Webhook { url, headers, timeout }.checked();
    let webhook = webhook.map_err(|wrong| Problem::refused(wrong.field, &wrong))?;
    Ok(Some(Some(Arc::new(webhook))))
}

/// Reads the new moment of a timer.
pub(crate) fn moved(text: &str) -> Result<When, Problem> {
    let mut fields = Fields::read(text, &MOVE)?;
    match (fields.span("in")?, fields.moment("at")?) {
        (Some(_), Some(_)) => Err(exclusive("in", "at")),
        (Some(delay), None) => Ok(When::In(delay)),
        (None, Some(at)) => Ok(When::At(at)),
        (None, None) => Err(fields.missing("in", "give in or at")),
    }
}

/// Reads the keys of a cancel.
pub(crate) fn keys(text: &str) -> Result<Vec<Key>, Problem> {
    let mut fields = Fields::read(text, &KEYS)?;
    let keys = fields.texts("keys")?;
    let keys = keys.ok_or_else(|| fields.missing("keys", "name the timers to cancel"))?;
    let one = |(index, key): (usize, &String)| {
        Key::new(key).map_err(|wrong| Problem::refused("keys", &wrong).index(index))
    };
    keys.iter().enumerate().map(one).collect()
}

/// Reads an optional prefix, which must not be empty.
pub(crate) fn prefix(text: &str) -> Result<Option<String>, Problem> {
    let prefix = Fields::read(text, &REDRIVE)?.text("prefix")?;
    prefix.map(not_empty).transpose()
}

/// Checks that a prefix is not empty.
pub(crate) fn not_empty(prefix: String) -> Result<String, Problem> {
    if prefix.is_empty() {
        return Err(Problem::value("prefix", "\"\"", "at least one character"));
    }
    Ok(prefix)
}

/// Reads a change of a queue's settings.
pub(crate) fn queue(text: &str) -> Result<Change, Problem> {
    let mut fields = Fields::read(text, &QUEUE)?;
    let limit = |limit: Option<Option<u64>>| limit.map(|limit| limit.map(|limit| limit as u32));
    let change = Change {
        paused: fields.flag("paused")?,
        retry: fields.object("retry", "retry.")?.map(retry).transpose()?,
        remember: fields.span("remember")?,
        dead_keep: fields.span("dead_keep")?,
        rate: limit(fields.whole_or_null("rate")?),
        concurrency: limit(fields.whole_or_null("concurrency")?),
        webhook: webhook(&mut fields)?,
    };
    Ok(change)
}

/// The parameters of a receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Take {
    pub(crate) max: usize,
    pub(crate) wait: Span,
    pub(crate) lease: Span,
}

/// Reads the parameters of a receive.
pub(crate) fn take(text: &str) -> Result<Take, Problem> {
    let mut fields = Fields::read(text, &RECEIVE)?;
    let max = fields.whole("max")?.unwrap_or(1) as usize;
    let wait = fields.span("wait")?.unwrap_or_default();
    if wait > Span::from_secs(60) {
        return Err(Problem::value("wait", &format!("\"{wait}\""), "at most 60s"));
    }
    Ok(Take { max, wait, lease: lease(&mut fields)? })
}

fn lease(fields: &mut Fields<'_>) -> Result<Span, Problem> {
    let lease = fields.span("lease")?.unwrap_or(Span::from_secs(30));
    if !(Span::from_secs(1)..=Span::from_secs(12 * 3600)).contains(&lease) {
        return Err(Problem::value("lease", &format!("\"{lease}\""), "1s to 12h"));
    }
    Ok(lease)
}

/// The parameters of an ack, a nack or an extension.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) tokens: Vec<String>,
    pub(crate) nack: Nack,
    pub(crate) lease: Span,
}

/// Reads an ack, a nack or an extension.
pub(crate) fn tokens(text: &str, shape: &'static Shape) -> Result<Said, Problem> {
    let mut fields = Fields::read(text, shape)?;
    let tokens = fields.texts("tokens")?;
    let tokens = tokens.ok_or_else(|| fields.missing("tokens", "name the deliveries"))?;
    let (mut nack, mut length) = (Nack::default(), Span::ZERO);
    if shape.name == NACK.name {
        let error = fields.text("error")?;
        if let Some(error) = error {
            if error.len() > LONGEST_ERROR {
                let detail = format!("error has {} bytes: at most 4096 fit", error.len());
                return Err(Problem::new(Code::BadValue, detail).field("error"));
            }
            nack = Nack::because(error);
        }
        if let Some(delay) = fields.span("in")? {
            nack = nack.after(delay.into());
        }
    }
    if shape.name == EXTEND.name {
        length = lease(&mut fields)?;
    }
    Ok(Said { tokens, nack, lease: length })
}

/// Reads the new time of the test clock.
pub(crate) fn clock(text: &str) -> Result<Moment, Problem> {
    let mut fields = Fields::read(text, &CLOCK)?;
    let now = fields.moment("now")?;
    now.ok_or_else(|| fields.missing("now", "say what the clock reads"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> (Code, String) {
        let problem = timer(text, 8).unwrap_err();
        (problem.code, problem.field.unwrap_or_default())
    }

    #[test]
    fn a_timer_has_one_beginning() {
        use Code::{BadValue, ExclusiveFields, MissingField, PayloadTooLarge};
        for (text, code, field) in [
            ("{}", MissingField, "in"),
            (r#"{"in":"1s","at":"2026-11-16T18:30:00Z"}"#, ExclusiveFields, "at"),
            (r#"{"in":"1s","every":"1s"}"#, ExclusiveFields, "every"),
            (r#"{"in":"1s","cron":"* * * * *"}"#, ExclusiveFields, "cron"),
            (r#"{"at":"2026-11-16T18:30:00Z","cron":"* * * * *"}"#, ExclusiveFields, "cron"),
            (r#"{"every":"1s","cron":"* * * * *"}"#, ExclusiveFields, "cron"),
            (r#"{"every":"999ms"}"#, BadValue, "every"),
            (r#"{"cron":"* * * *"}"#, BadValue, "cron"),
            (r#"{"cron":"* * * * *","zone":"Mars/Base"}"#, BadValue, "zone"),
            (r#"{"in":"1s","zone":"UTC"}"#, BadValue, "zone"),
            (r#"{"every":"1s","zone":"UTC"}"#, BadValue, "zone"),
            (r#"{"in":"1s","missed":"once"}"#, BadValue, "missed"),
            (r#"{"in":"1s","times":1}"#, BadValue, "times"),
            (r#"{"in":"1s","until":"2026-11-16T18:30:00Z"}"#, BadValue, "until"),
            (r#"{"every":"1s","times":0}"#, BadValue, "times"),
            (r#"{"every":"1s","missed":"never"}"#, BadValue, "missed"),
            (r#"{"in":"1s","key":"~1"}"#, BadValue, "key"),
            (r#"{"in":"1s","key":""}"#, BadValue, "key"),
            (r#"{"in":"1s","key":".."}"#, BadValue, "key"),
            (r#"{"in":"1s","key":"a\u0000"}"#, BadValue, "key"),
            (r#"{"in":"1s","payload":"1234567"}"#, PayloadTooLarge, "payload"),
            (r#"{"in":"1s","payload_base64":"MTIzNDU2Nzg5"}"#, PayloadTooLarge, "payload_base64"),
            (r#"{"in":"1s","payload_base64":"MQ"}"#, BadValue, "payload_base64"),
            (r#"{"in":"1s","payload":1,"payload_base64":""}"#, ExclusiveFields, "payload_base64"),
            (r#"{"in":"1s","retry":{"attempts":0}}"#, BadValue, "retry.attempts"),
            (r#"{"in":"1s","retry":{"factor":0.5}}"#, BadValue, "retry.factor"),
            (r#"{"in":"1s","retry":{"jitter":2}}"#, BadValue, "retry.jitter"),
        ] {
            assert_eq!(wrong(text), (code, field.to_owned()), "{text}");
        }
        for text in [
            r#"{"in":"0s"}"#,
            r#"{"at":"2026-11-16T18:30:00+01:00","key":"a/ä"}"#,
            r#"{"every":"1s","at":"2026-11-16T18:30:00Z","missed":"all","times":1}"#,
            r#"{"cron":"*/5 * * * * *","zone":"Europe/Berlin","until":"2099-01-01T00:00:00Z"}"#,
            r#"{"in":"1s","payload":"123456","retry":{},"expires":"1s","remember":"0s"}"#,
        ] {
            assert!(timer(text, 8).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_list_names_the_timer_that_is_wrong() {
        let read = |text: &str| one_or_many(text, 8);
        let (list, many) = read(r#" { "timers" : [{"in":"1s"},{"in":"2s"}]}"#).unwrap();
        assert_eq!((list.len(), many), (2, true));
        for (text, index) in [
            (r#"{"timers":[{"in":"1s"},{"on":1}]}"#, Some(1)),
            (r#"{"timers":[{"in":"1s"},7]}"#, Some(1)),
            (r#"{"timers":[]}"#, None),
            (r#"{"timers":{}}"#, None),
            (r#"{"timers":[],"in":"1s"}"#, None),
            (r#"{"timers":[],"timers":[]}"#, None),
        ] {
            assert_eq!(read(text).unwrap_err().index, index, "{text}");
        }
    }

    #[test]
    fn a_part_of_a_retry_leaves_the_rest() {
        let draft = timer(r#"{"in":"1s","retry":{"attempts":3,"first":"5s"}}"#, 8).unwrap();
        let base = Retry { factor: 3.0, ..Retry::default() };
        let expected = Retry { attempts: 3, first: Span::from_secs(5), ..base };
        assert_eq!(draft.retry.unwrap().over(base), expected);
    }
}
