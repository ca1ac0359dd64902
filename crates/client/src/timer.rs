//! A timer: to be scheduled, and as the server shows it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::time;

/// A timer to schedule. Unset fields have the queue's defaults.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewTimer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    #[serde(rename = "in", with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    after: Option<Duration>,
    #[serde(with = "time::at_or_null", skip_serializing_if = "Option::is_none")]
    at: Option<SystemTime>,
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    every: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    #[serde(with = "time::at_or_null", skip_serializing_if = "Option::is_none")]
    until: Option<SystemTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<String>,
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    expires: Option<Duration>,
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    remember: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<Option<Webhook>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Retry>,
}

impl NewTimer {
    /// Due once, after this delay.
    pub fn after(delay: Duration) -> Self {
        NewTimer { after: Some(delay), ..NewTimer::default() }
    }

    /// Due once, at this moment; immediately if it has passed.
    pub fn at(moment: SystemTime) -> Self {
        NewTimer { at: Some(moment), ..NewTimer::default() }
    }

    /// Due once per period of at least 1 s; first after one period, or at [`NewTimer::first`].
    pub fn every(period: Duration) -> Self {
        NewTimer { every: Some(period), ..NewTimer::default() }
    }

    /// Due according to a cron expression of five fields, or six with seconds, in UTC or in [`NewTimer::zone`].
    pub fn cron(expression: impl Into<String>) -> Self {
        NewTimer { cron: Some(expression.into()), ..NewTimer::default() }
    }

    /// When a timer with a period is due first.
    pub fn first(mut self, moment: SystemTime) -> Self {
        self.at = Some(moment);
        self
    }

    /// The time zone of a cron expression, as `Europe/Berlin`.
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// Sets the key, unique in the queue. Without one the server assigns one, and a lost call is not retried.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the payload, as JSON.
    ///
    /// # Errors
    /// [`Error::Argument`]: it cannot be written as JSON.
    pub fn payload(mut self, payload: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let raw = serde_json::value::to_raw_value(payload);
        self.payload = Some(raw.map_err(|wrong| Error::Argument(format!("the payload: {wrong}")))?);
        Ok(self)
    }

    /// As [`payload`](NewTimer::payload), from JSON text, which is sent unchanged.
    ///
    /// # Errors
    /// [`Error::Argument`]: it is not JSON.
    pub fn payload_json(mut self, json: impl Into<String>) -> Result<Self, Error> {
        let raw = RawValue::from_string(json.into());
        let raw = raw.map_err(|wrong| Error::Argument(format!("the payload is not JSON: {wrong}")));
        self.payload = Some(raw?);
        Ok(self)
    }

    /// As [`payload`](NewTimer::payload), from bytes that are not JSON.
    pub fn payload_bytes(mut self, bytes: &[u8]) -> Self {
        self.payload_base64 = Some(BASE64.encode(bytes));
        self
    }

    /// No occurrence is due after this moment.
    pub fn until(mut self, moment: SystemTime) -> Self {
        self.until = Some(moment);
        self
    }

    /// The maximum number of occurrences.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// What to do about occurrences that were missed: `skip`, `once` or `all`.
    pub fn missed(mut self, missed: impl Into<String>) -> Self {
        self.missed = Some(missed.into());
        self
    }

    /// No attempt starts later than this after the timer was due.
    pub fn expires(mut self, length: Duration) -> Self {
        self.expires = Some(length);
        self
    }

    /// How long the key stays taken after the timer is done or cancelled.
    pub fn remember(mut self, length: Duration) -> Self {
        self.remember = Some(length);
        self
    }

    /// How long the key stays taken, as far as the client knows: the queue's default may differ.
    pub(crate) fn remembered(&self) -> Duration {
        self.remember.unwrap_or(Duration::from_secs(600))
    }

    /// Where it is posted; `None` overrides the queue's webhook.
    pub fn webhook(mut self, webhook: Option<Webhook>) -> Self {
        self.webhook = Some(webhook);
        self
    }

    /// Sets its attempts and backoff.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }
}

/// The attempts of an occurrence, and the backoff between them. `None` means the queue's default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Retry {
    /// The maximum number of attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The delay after the first failed attempt.
    #[serde(default, with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    pub first: Option<Duration>,
    /// The factor from each delay to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The longest delay, before jitter.
    #[serde(default, with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    pub longest: Option<Duration>,
    /// The random part added to a delay, as a fraction of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
}

/// Where a timer is posted when it is due.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Webhook {
    /// The address: an http or https URL.
    pub url: String,
    /// Headers to send. The server never shows their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How long a post may take.
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// A webhook as the server shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookView {
    /// Where it is posted.
    pub url: String,
    /// The names of its own headers.
    pub headers: Vec<String>,
    /// How long a post may take.
    #[serde(with = "time::span")]
    pub timeout: Duration,
}

/// A timer as the server shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Timer {
    /// Its queue.
    pub queue: String,
    /// Its key, unique in the queue.
    pub key: String,
    /// Identifies this timer permanently.
    pub generation: u64,
    /// `scheduled`, `due`, `delivering`, `dead`, `done` or `cancelled`.
    pub state: String,
    /// The due moment of the occurrence.
    #[serde(with = "time::at")]
    pub due: SystemTime,
    /// The earliest moment of the next hand-out.
    #[serde(with = "time::at")]
    pub next_attempt: SystemTime,
    /// The number of the occurrence, from 1.
    pub occurrence: u64,
    /// Hand-outs of this occurrence so far.
    pub attempt: u64,
    /// When it was scheduled.
    #[serde(with = "time::at")]
    pub created: SystemTime,
    /// Its period.
    #[serde(default, with = "time::span_or_null")]
    pub every: Option<Duration>,
    /// Its cron expression.
    pub cron: Option<String>,
    /// The time zone of the cron expression.
    pub zone: Option<String>,
    /// What to do about occurrences that were missed: `skip`, `once` or `all`.
    pub missed: Option<String>,
    /// No occurrence is due after this moment.
    #[serde(default, with = "time::at_or_null")]
    pub until: Option<SystemTime>,
    /// The maximum number of occurrences.
    pub times: Option<u64>,
    /// No attempt starts later than this after `due`.
    #[serde(default, with = "time::span_or_null")]
    pub expires: Option<Duration>,
    /// Where it is posted.
    pub webhook: Option<WebhookView>,
    /// How long the key stays taken afterwards.
    #[serde(with = "time::span")]
    pub remember: Duration,
    /// Its attempts and backoff.
    pub retry: Retry,
    /// The text of the last failure.
    pub last_error: Option<String>,
    /// The timer that it replaced, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Replaced>,
    payload: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "bytes", serialize_with = "write_bytes")]
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<Vec<u8>>,
}

impl Timer {
    /// Its payload. A list includes payloads only on request.
    pub fn payload(&self) -> Payload<'_> {
        Payload::of(self.payload.as_deref(), self.payload_base64.as_deref())
    }
}

/// A timer that was replaced.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Replaced {
    /// Its generation.
    pub generation: u64,
    /// Its state when it was replaced. If `delivering`, its holder may still be at work.
    pub state: String,
}

/// The payload of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Nothing, or `null`.
    None,
    /// JSON, as it was sent.
    Json(&'a str),
    /// Bytes that are not JSON.
    Bytes(&'a [u8]),
}

impl<'a> Payload<'a> {
    pub(crate) fn of(json: Option<&'a RawValue>, bytes: Option<&'a [u8]>) -> Self {
        match (json, bytes) {
            (_, Some(bytes)) => Payload::Bytes(bytes),
            (Some(json), None) => Payload::Json(json.get()),
            (None, None) => Payload::None,
        }
    }

    /// Deserializes JSON. A missing payload reads as `null`.
    ///
    /// # Errors
    /// [`Error::Unreadable`]: it is not JSON, or not of this type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let json = match self {
            Payload::None => "null",
            Payload::Json(json) => json,
            Payload::Bytes(_) => return Err(Error::Unreadable("the payload is not JSON".into())),
        };
        serde_json::from_str(json)
            .map_err(|wrong| Error::Unreadable(format!("the payload: {wrong}")))
    }
}

/// Bytes in base64, or null.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| BASE64.decode(text).map_err(D::Error::custom)).transpose()
}

pub(crate) fn write_bytes<S: Serializer>(
    bytes: &Option<Vec<u8>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    bytes.as_ref().map(|bytes| BASE64.encode(bytes)).serialize(to)
}
