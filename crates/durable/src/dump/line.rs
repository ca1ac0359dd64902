//! A line: a timer as the HTTP interface shows it, a queue with its settings, or the name of the store.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use crate::bucket::{Bucket, Level};
use crate::record::{Fate, Generation, Place, Record, Spec};
use crate::store::Settings;
use crate::values::{
    Key, Missed, Moment, Payload, QueueName, Recurrence, Retry, Rhythm, Secret, Span, State,
    Webhook,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

const MISSED: [(&str, Missed); 3] =
    [("skip", Missed::Skip), ("once", Missed::Once), ("all", Missed::All)];

/// The content of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// The name of the store that was dumped.
    Store(String),
    /// A queue and its settings.
    Queue(QueueName, Settings),
    /// A timer.
    Timer(Timer),
    /// A row that could not be read: where, and why.
    Unreadable(String),
}

impl Line {
    /// Parses a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: &str) -> Result<Self, String> {
        let fields: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(line).map_err(|error| format!("no JSON object: {error}"))?;
        let mut fields = Fields(fields);
        let line = if let Some(name) = fields.may("store")? {
            Line::Store(name)
        } else if let Some(what) = fields.may("unreadable")? {
            Line::Unreadable(what)
        } else if let Some(settings) = fields.may("settings")? {
            let queue = checked(QueueName::new(&fields.must::<String>("queue")?))?;
            Line::Queue(queue, Fields(settings).settings()?)
        } else {
            return Timer::read(fields).map(Line::Timer);
        };
        fields.end("a line").map(|()| line)
    }
}

/// Writes the line with the name of the store.
pub(super) fn write_store(name: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, r#"{{"store":"{name}"}}"#)
}

/// Writes the line of a queue.
pub(super) fn write_queue(
    name: &QueueName,
    settings: &Settings,
    out: &mut impl Write,
) -> io::Result<()> {
    let Settings { paused, retry: often, remember, dead_keep, rate, concurrency, webhook: to } =
        settings;
    let number = |most: &Option<u32>| or_null(most.map(|most| most.to_string()));
    let (rate, concurrency) = (number(rate), number(concurrency));
    write!(out, r#"{{"queue":"{name}","settings":{{"paused":{paused},"retry":{},"#, retry(often))?;
    write!(out, r#""remember":"{remember}","dead_keep":"{dead_keep}","rate":{rate},"#)?;
    let to = or_null(to.as_deref().map(webhook));
    writeln!(out, r#""concurrency":{concurrency},"webhook":{to}}}}}"#)
}

/// Writes the line of an unreadable row.
pub(super) fn write_unreadable(what: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, r#"{{"unreadable":{}}}"#, text(what))
}

/// A timer and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Timer {
    pub(super) state: State,
    pub(super) record: Record,
}

impl Timer {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Timer { state, record } = self;
        let spec = &*record.spec;
        let name = state.name();
        write!(
            out,
            r#"{{"queue":"{}","key":{},"generation":{},"state":"{name}","due":"{}","next_attempt":"{}","#,
            spec.queue,
            text(spec.key.as_str()),
            spec.generation.0,
            record.due,
            record.next_attempt
        )?;
        let (occurrence, attempt) = (record.occurrence, record.attempt);
        write!(
            out,
            r#""occurrence":{occurrence},"attempt":{attempt},"created":"{}","#,
            spec.created
        )?;
        // The regular next occurrence, which an extra run has postponed.
        if let Some(behind) = record.behind {
            write!(out, r#""behind":"{behind}","#)?;
        }
        write_payload(&spec.payload, out)?;
        write_recurrence(spec.recurrence.as_ref(), out)?;
        write!(
            out,
            r#""expires":{},"remember":"{}","webhook":{},"retry":{},"#,
            or_null(spec.expires.map(|span| text(&span.to_string()))),
            spec.remember,
            or_null(spec.webhook.as_deref().map(webhook)),
            retry(&spec.retry)
        )?;
        writeln!(out, r#""last_error":{}}}"#, or_null(record.last_error.as_deref().map(text)))
    }

    fn read(mut fields: Fields) -> Result<Self, String> {
        let generation = Generation(fields.must("generation")?);
        if generation.0 >= 1 << 53 {
            return Err(format!("generation is {}: it must be below 2^53", generation.0));
        }
        let queue = checked(QueueName::new(&fields.must::<String>("queue")?))?;
        let key = checked(Key::new(&fields.must::<String>("key")?))?;
        let state = fields
            .one_of("state", &State::ALL.map(|state| (state.name(), state)))?
            .ok_or("state is missing")?;
        let due = fields.parsed("due")?.ok_or("due is missing")?;
        let next_attempt = fields.parsed("next_attempt")?.unwrap_or(due);
        let created = fields.parsed("created")?.unwrap_or(due);
        let behind = fields.parsed("behind")?;
        let (occurrence, attempt) = (fields.must("occurrence")?, fields.must("attempt")?);
        let payload = fields.payload()?;
        let recurrence = fields.recurrence()?;
        let remember = fields.parsed("remember")?.unwrap_or(Span::ZERO);
        let retry = fields.retry()?;
        let last_error = fields.may::<String>("last_error")?.map(Arc::from);
        let expires = fields.parsed("expires")?;
        let webhook = fields.webhook()?.map(Arc::new);
        fields.end("a timer")?;
        let spec = Spec {
            generation,
            queue,
            key,
            created,
            payload,
            recurrence,
            remember,
            retry,
            expires,
            webhook,
        };
        let record = Record {
            spec: Arc::new(spec),
            due,
            next_attempt,
            behind,
            occurrence,
            attempt,
            // A dump does not say how many attempts failed: assumes that all finished ones did.
            failed: attempt.saturating_sub(u32::from(state == State::Delivering)),
            fate: fate(state, occurrence, attempt),
            lease: None,
            last_error,
        };
        Ok(Timer { state, record })
    }

    /// Its place in a store loaded at `now`. A timer that was out is pending again.
    pub fn placed(self, now: Moment) -> (Place, Record) {
        let Timer { state, record } = self;
        let next = record.next_attempt;
        let place = match state {
            State::Dead => Place::Dead(now),
            State::Done | State::Cancelled => Place::Remembered(now + record.spec.remember),
            _ if next <= now => Place::Waiting(record.spec.lane(), next),
            _ => Place::Bucket(Bucket::of(Level::of(next, now), next)),
        };
        (place, record)
    }
}

fn fate(state: State, occurrence: u64, attempt: u32) -> Fate {
    match state {
        State::Done => Fate::Acked { occurrence, attempt },
        State::Cancelled => Fate::Cancelled,
        State::Dead => Fate::GivenUp,
        State::Delivering => Fate::Lapsed,
        _ if attempt > 0 => Fate::Nacked,
        _ => Fate::Open,
    }
}

/// JSON unchanged, on one line; bytes in base64.
fn write_payload(payload: &Payload, out: &mut impl Write) -> io::Result<()> {
    // `Payload::json` does not check its text, and a line must be valid JSON.
    let json = payload.text().filter(|json| serde_json::from_str::<&RawValue>(json).is_ok());
    match json {
        // JSON allows a raw line break only between tokens, where a space is equivalent.
        Some(json) => write!(out, r#""payload":{},"#, json.replace(['\n', '\r'], " ")),
        None => write!(out, r#""payload_base64":"{}","#, BASE64.encode(&**payload)),
    }
}

fn write_recurrence(recurrence: Option<&Recurrence>, out: &mut impl Write) -> io::Result<()> {
    let (mut every, mut cron, mut zone) = (None, None, None);
    match recurrence.map(|recurrence| &recurrence.rhythm) {
        Some(Rhythm::Every(period)) => every = Some(format!("\"{period}\"")),
        Some(Rhythm::Cron { expression, zone: of, .. }) => {
            (cron, zone) = (Some(text(expression)), Some(text(of)));
        }
        None => {}
    }
    let missed = recurrence.and_then(|recurrence| {
        MISSED.iter().find(|(_, missed)| *missed == recurrence.missed).map(|(name, _)| text(name))
    });
    let until =
        recurrence.and_then(|recurrence| recurrence.until).map(|until| format!("\"{until}\""));
    let times = recurrence.and_then(|recurrence| recurrence.times).map(|times| times.to_string());
    let fields = [("every", every), ("cron", cron), ("zone", zone), ("missed", missed)];
    for (name, value) in fields.into_iter().chain([("until", until), ("times", times)]) {
        write!(out, r#""{name}":{},"#, or_null(value))?;
    }
    Ok(())
}

/// A webhook as JSON. Includes the values of the headers, because a dump is complete.
fn webhook(webhook: &Webhook) -> String {
    let Webhook { url, headers, timeout } = webhook;
    let header =
        |(name, value): &(String, Secret)| format!("{}:{}", text(name), text(value.reveal()));
    let headers: Vec<String> = headers.iter().map(header).collect();
    let (url, headers) = (text(url), headers.join(","));
    format!(r#"{{"url":{url},"headers":{{{headers}}},"timeout":"{timeout}"}}"#)
}

fn retry(retry: &Retry) -> String {
    let Retry { attempts, first, factor, longest, jitter } = retry;
    format!(
        r#"{{"attempts":{attempts},"first":"{first}","factor":{factor:?},"longest":"{longest}","jitter":{jitter:?}}}"#
    )
}

fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn or_null(json: Option<String>) -> String {
    json.unwrap_or_else(|| "null".into())
}

fn checked<T>(value: Result<T, impl ToString>) -> Result<T, String> {
    value.map_err(|wrong| wrong.to_string())
}

/// The fields of a line that are not yet read.
struct Fields(BTreeMap<String, Box<RawValue>>);

impl Fields {
    /// A field; `None` if it is missing or null.
    fn may<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        let Some(raw) = self.0.remove(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map_err(|error| format!("{name} is {}: {error}", raw.get()))
    }

    fn must<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, String> {
        self.may(name)?.ok_or_else(|| format!("{name} is missing"))
    }

    /// A field that is parsed from text.
    fn parsed<T: FromStr<Err: ToString>>(&mut self, name: &str) -> Result<Option<T>, String> {
        let parse = |text: String| {
            text.parse::<T>().map_err(|wrong| format!("{name}: {}", wrong.to_string()))
        };
        self.may::<String>(name)?.map(parse).transpose()
    }

    /// A field that must be one of the given names.
    fn one_of<T: Copy>(&mut self, name: &str, all: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some(text) = self.may::<String>(name)? else { return Ok(None) };
        let found = all.iter().find(|(of, _)| *of == text).map(|(_, value)| *value);
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let wrong = || format!("{name} is {text:?}: it must be one of {}", names.join(", "));
        found.map(Some).ok_or_else(wrong)
    }

    fn payload(&mut self) -> Result<Payload, String> {
        let json = self.0.remove("payload");
        match (json, self.may::<String>("payload_base64")?) {
            (Some(json), None) => Ok(Payload::json(json.get())),
            (None, Some(text)) => {
                let bytes = BASE64.decode(text).map_err(|error| format!("payload_base64: {error}"));
                bytes.map(Payload::bytes)
            }
            (None, None) => Ok(Payload::default()),
            (Some(_), Some(_)) => Err("payload and payload_base64 exclude each other".into()),
        }
    }

    fn recurrence(&mut self) -> Result<Option<Recurrence>, String> {
        let every = self.parsed::<Span>("every")?;
        let (cron, zone) = (self.may::<String>("cron")?, self.may::<String>("zone")?);
        let missed = self.one_of("missed", &MISSED)?;
        let (until, times) = (self.parsed("until")?, self.may("times")?);
        let rhythm = match (every, cron) {
            (Some(period), None) => checked(Rhythm::every(period))?,
            (None, Some(cron)) => checked(Rhythm::cron(&cron, zone.as_deref().unwrap_or("UTC")))?,
            (Some(_), Some(_)) => return Err("every and cron exclude each other".into()),
            (None, None) => return Ok(None),
        };
        Ok(Some(Recurrence { rhythm, missed: missed.unwrap_or_default(), until, times }))
    }

    fn webhook(&mut self) -> Result<Option<Webhook>, String> {
        let Some(fields) = self.may::<BTreeMap<String, Box<RawValue>>>("webhook")? else {
            return Ok(None);
        };
        let mut fields = Fields(fields);
        let mut webhook = checked(Webhook::new(fields.must::<String>("url")?))?;
        let headers = fields.may::<BTreeMap<String, String>>("headers")?.unwrap_or_default();
        webhook.headers =
            headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
        webhook.timeout = fields.parsed("timeout")?.unwrap_or(webhook.timeout);
        fields.end("a webhook")?;
        checked(webhook.checked()).map(Some)
    }

    fn retry(&mut self) -> Result<Retry, String> {
        let default = Retry::default();
        let Some(fields) = self.may::<BTreeMap<String, Box<RawValue>>>("retry")? else {
            return Ok(default);
        };
        let mut fields = Fields(fields);
        let retry = Retry {
            attempts: fields.may("attempts")?.unwrap_or(default.attempts),
            first: fields.parsed("first")?.unwrap_or(default.first),
            factor: fields.may("factor")?.unwrap_or(default.factor),
            longest: fields.parsed("longest")?.unwrap_or(default.longest),
            jitter: fields.may("jitter")?.unwrap_or(default.jitter),
        };
        checked(retry.checked())
    }

    fn settings(mut self) -> Result<Settings, String> {
        let default = Settings::default();
        let settings = Settings {
            paused: self.may("paused")?.unwrap_or(default.paused),
            retry: self.retry()?,
            remember: self.parsed("remember")?.unwrap_or(default.remember),
            dead_keep: self.parsed("dead_keep")?.unwrap_or(default.dead_keep),
            rate: self.may("rate")?,
            concurrency: self.may("concurrency")?,
            webhook: self.webhook()?.map(Arc::new),
        };
        self.end("the settings of a queue").map(|()| settings)
    }

    /// Fails if a field is left unread.
    fn end(&self, of: &str) -> Result<(), String> {
        match self.0.keys().next() {
            Some(field) => Err(format!("{field} is no field of {of}")),
            None => Ok(()),
        }
    }
}
