//! The row of a timer. Fields with their usual value take no bytes: flags mark the fields that are present.

use std::sync::Arc;

use super::bytes::{Reader, invalid, put_f64, put_moment_from, put_str, put_u64};
use super::{DecodeError, Row};
use crate::record::{Fate, Generation, Lease, Record, Spec};
use crate::values::{
    Content, Key, Missed, Moment, Payload, QueueName, Recurrence, Retry, Rhythm, Secret, Span,
    Webhook,
};

/// The key is the one assigned for this generation, so only the due moment in the key is stored.
const ASSIGNED: u64 = 1;
const RECURRENCE: u64 = 1 << 1;
/// The retry is not the default.
const RETRY: u64 = 1 << 2;
const REMEMBER: u64 = 1 << 3;
const BEHIND: u64 = 1 << 4;
const LEASE: u64 = 1 << 5;
const ERROR: u64 = 1 << 6;
/// The next attempt differs from the due moment.
const NEXT: u64 = 1 << 7;
/// It was handed out, or is past its first occurrence.
const PROGRESS: u64 = 1 << 8;
const EXPIRES: u64 = 1 << 9;
/// The payload is JSON.
const JSON: u64 = 1 << 10;
const WEBHOOK: u64 = 1 << 11;
const KNOWN: u64 = (1 << 12) - 1;

impl Row for Record {
    fn write(&self, out: &mut Vec<u8>) {
        let spec = &*self.spec;
        let assigned = spec.key.home(spec.generation.0);
        let progress = (self.occurrence, self.attempt, self.failed, self.fate);
        let flags = [
            (ASSIGNED, assigned.is_some()),
            (RECURRENCE, spec.recurrence.is_some()),
            (RETRY, spec.retry != Retry::default()),
            (REMEMBER, spec.remember != Span::ZERO),
            (BEHIND, self.behind.is_some()),
            (LEASE, self.lease.is_some()),
            (ERROR, self.last_error.is_some()),
            (NEXT, self.next_attempt != self.due),
            (PROGRESS, progress != (1, 0, 0, Fate::Open)),
            (EXPIRES, spec.expires.is_some()),
            (WEBHOOK, spec.webhook.is_some()),
            (JSON, spec.payload.content() == Content::Json),
        ];
        let flags = flags.into_iter().filter(|flag| flag.1).fold(0, |sum, flag| sum | flag.0);
        let has = |flag| flags & flag != 0;
        put_u64(out, flags);
        put_u64(out, spec.generation.0);
        put_str(out, spec.queue.as_str());
        match assigned {
            Some(due) => put_u64(out, due.millis()),
            None => put_str(out, spec.key.as_str()),
        }
        put_u64(out, spec.created.millis());
        put_moment_from(out, self.due, spec.created);
        if has(NEXT) {
            put_moment_from(out, self.next_attempt, self.due);
        }
        if let Some(behind) = self.behind {
            put_moment_from(out, behind, self.due);
        }
        if has(PROGRESS) {
            put_u64(out, self.occurrence);
            put_u64(out, self.attempt.into());
            put_u64(out, self.failed.into());
            write_fate(out, self.fate);
        }
        if let Some(lease) = self.lease {
            put_moment_from(out, lease.until, self.due);
            put_u64(out, lease.length.millis());
        }
        if let Some(error) = &self.last_error {
            put_str(out, error);
        }
        if has(REMEMBER) {
            put_u64(out, spec.remember.millis());
        }
        if has(RETRY) {
            spec.retry.write(out);
        }
        if let Some(recurrence) = &spec.recurrence {
            recurrence.write(out);
        }
        if let Some(expires) = spec.expires {
            put_u64(out, expires.millis());
        }
        if let Some(webhook) = &spec.webhook {
            webhook.write(out);
        }
        out.extend_from_slice(&spec.payload);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let Start { flags, generation, queue, key, created, due, next_attempt } =
            Start::read(bytes)?;
        let has = |flag| flags & flag != 0;
        let queue = QueueName::new(queue).map_err(|error| invalid("queue", error))?;
        let key = match key {
            Named::Assigned(due) => Key::assigned(generation.0, due.millis()),
            Named::Chosen(key) => Key::new(key).map_err(|error| invalid("key", error))?,
        };
        let behind = has(BEHIND).then(|| bytes.moment_from("next occurrence", due)).transpose()?;
        let (mut occurrence, mut attempt, mut failed, mut fate) = (1, 0, 0, Fate::Open);
        if has(PROGRESS) {
            occurrence = bytes.u64("occurrence")?;
            attempt = bytes.u32("attempt")?;
            failed = bytes.u32("failed attempts")?;
            fate = read_fate(bytes)?;
        }
        let lease = has(LEASE).then(|| {
            let until = bytes.moment_from("end of the lease", due)?;
            Ok(Lease { until, length: bytes.span("length of the lease")? })
        });
        let lease = lease.transpose()?;
        let last_error = has(ERROR).then(|| bytes.str("last error")).transpose()?.map(Arc::from);
        let remember = if has(REMEMBER) { bytes.span("remember")? } else { Span::ZERO };
        let retry = if has(RETRY) { Retry::read(bytes)? } else { Retry::default() };
        let recurrence = has(RECURRENCE).then(|| Recurrence::read(bytes)).transpose()?;
        let expires = has(EXPIRES).then(|| bytes.span("expires")).transpose()?;
        let webhook = has(WEBHOOK).then(|| Webhook::read(bytes)).transpose()?.map(Arc::new);
        let payload = match has(JSON) {
            true => Payload::json(
                std::str::from_utf8(bytes.rest()).map_err(|error| invalid("payload", error))?,
            ),
            false => Payload::bytes(bytes.rest()),
        };
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
        Ok(Record {
            spec: Arc::new(spec),
            due,
            next_attempt,
            behind,
            occurrence,
            attempt,
            failed,
            fate,
            lease,
            last_error,
        })
    }
}

/// The first fields of a row.
pub(super) struct Start<'a> {
    flags: u64,
    generation: Generation,
    pub(super) queue: &'a str,
    key: Named<'a>,
    created: Moment,
    due: Moment,
    pub(super) next_attempt: Moment,
}

/// A key as stored.
enum Named<'a> {
    /// An assigned key: only its due moment.
    Assigned(Moment),
    Chosen(&'a str),
}

impl<'a> Start<'a> {
    pub(super) fn read(bytes: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let flags = bytes.u64("flags")?;
        if flags & !KNOWN != 0 {
            return Err(invalid("flags", format!("{flags:#x}")));
        }
        let generation = Generation(bytes.u64("generation")?);
        let queue = bytes.str("queue")?;
        let key = match flags & ASSIGNED != 0 {
            true => Named::Assigned(bytes.moment("key")?),
            false => Named::Chosen(bytes.str("key")?),
        };
        let created = bytes.moment("moment of creation")?;
        let due = bytes.moment_from("due moment", created)?;
        let next_attempt = match flags & NEXT != 0 {
            true => bytes.moment_from("next attempt", due)?,
            false => due,
        };
        Ok(Start { flags, generation, queue, key, created, due, next_attempt })
    }
}

fn write_fate(out: &mut Vec<u8>, fate: Fate) {
    out.push(match fate {
        Fate::Open => 0,
        Fate::Acked { .. } => 1,
        Fate::Nacked => 2,
        Fate::Lapsed => 3,
        Fate::Released => 4,
        Fate::Moved => 5,
        Fate::GivenUp => 6,
        Fate::Cancelled => 7,
        Fate::CancelledOut => 8,
    });
    if let Fate::Acked { occurrence, attempt } = fate {
        put_u64(out, occurrence);
        put_u64(out, attempt.into());
    }
}

fn read_fate(bytes: &mut Reader<'_>) -> Result<Fate, DecodeError> {
    Ok(match bytes.byte("fate")? {
        0 => Fate::Open,
        1 => {
            let occurrence = bytes.u64("acknowledged occurrence")?;
            Fate::Acked { occurrence, attempt: bytes.u32("acknowledged attempt")? }
        }
        2 => Fate::Nacked,
        3 => Fate::Lapsed,
        4 => Fate::Released,
        5 => Fate::Moved,
        6 => Fate::GivenUp,
        7 => Fate::Cancelled,
        8 => Fate::CancelledOut,
        other => return Err(invalid("fate", other)),
    })
}

impl Row for Retry {
    fn write(&self, out: &mut Vec<u8>) {
        put_u64(out, self.attempts.into());
        put_u64(out, self.first.millis());
        put_f64(out, self.factor);
        put_u64(out, self.longest.millis());
        put_f64(out, self.jitter);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let attempts = bytes.u32("retry attempts")?;
        let first = bytes.span("first delay of the retry")?;
        let factor = bytes.f64("factor of the retry")?;
        let longest = bytes.span("longest delay of the retry")?;
        let jitter = bytes.f64("jitter of the retry")?;
        let retry = Retry { attempts, first, factor, longest, jitter };
        retry.checked().map_err(|error| invalid("retry", error))
    }
}

impl Row for Recurrence {
    fn write(&self, out: &mut Vec<u8>) {
        match &self.rhythm {
            Rhythm::Every(period) => {
                out.push(0);
                put_u64(out, period.millis());
            }
            Rhythm::Cron { expression, zone } => {
                out.push(1);
                put_str(out, expression);
                put_str(out, zone);
            }
        }
        out.push(match self.missed {
            Missed::Skip => 0,
            Missed::Once => 1,
            Missed::All => 2,
        });
        for number in [self.until.map(Moment::millis), self.times] {
            out.push(number.is_some().into());
            number.into_iter().for_each(|number| put_u64(out, number));
        }
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let rhythm = match bytes.byte("rhythm")? {
            0 => Rhythm::every(bytes.span("period")?).map_err(|error| invalid("period", error))?,
            // It was valid when it was made; the zone may have left the system's database since.
            1 => {
                let expression = bytes.str("cron expression")?.into();
                Rhythm::Cron { expression, zone: bytes.str("time zone")?.into() }
            }
            other => return Err(invalid("rhythm", other)),
        };
        let missed = match bytes.byte("missed")? {
            0 => Missed::Skip,
            1 => Missed::Once,
            2 => Missed::All,
            other => return Err(invalid("missed", other)),
        };
        let until = match bytes.byte("until")? {
            0 => None,
            1 => Some(bytes.moment("until")?),
            other => return Err(invalid("until", other)),
        };
        let times = match bytes.byte("times")? {
            0 => None,
            1 => Some(bytes.u64("times")?),
            other => return Err(invalid("times", other)),
        };
        Ok(Recurrence { rhythm, missed, until, times })
    }
}

impl Row for Webhook {
    fn write(&self, out: &mut Vec<u8>) {
        put_str(out, &self.url);
        put_u64(out, self.timeout.millis());
        put_u64(out, self.headers.len() as u64);
        for (name, value) in &self.headers {
            put_str(out, name);
            put_str(out, value.reveal());
        }
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let url = bytes.str("URL of the webhook")?.into();
        let timeout = bytes.span("timeout of the webhook")?;
        let mut headers = Vec::new();
        for _ in 0..bytes.u64("headers of the webhook")? {
            let name = bytes.str("name of a header")?.into();
            headers.push((name, Secret::new(bytes.str("value of a header")?)));
        }
        let webhook = Webhook { url, headers, timeout };
        webhook.checked().map_err(|error| invalid("webhook", error))
    }
}
