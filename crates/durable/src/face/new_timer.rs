//! Describing a timer: when it is due, and what it carries.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::shard::{NewTimer, When};
use crate::values::{
    Key, Missed, Moment, Payload, Recurrence, Retry, Rhythm, Span, ValueError, Webhook,
};

/// Building a timer that is due after a delay, at a moment, or repeatedly.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tourbillon_durable::NewTimer;
/// use tourbillon_durable::values::Missed;
///
/// let once = NewTimer::after(Duration::from_secs(1800)).key("order-17")?.payload("17");
/// let then = NewTimer::at(SystemTime::now() + Duration::from_secs(60));
/// let nightly = NewTimer::cron("30 2 * * *", "Europe/Berlin")?.missed(Missed::Once).key("nightly")?;
/// let ten_times = NewTimer::every(Duration::from_secs(3600))?.times(10);
/// # Ok::<(), tourbillon_durable::values::ValueError>(())
/// ```
impl NewTimer {
    /// Due once, this long after it is scheduled.
    pub fn after(delay: Duration) -> Self {
        NewTimer::new(When::In(delay.into()), None)
    }

    /// Due once, at that moment. A past moment is due at once.
    pub fn at(moment: impl Into<Moment>) -> Self {
        NewTimer::new(When::At(moment.into()), None)
    }

    /// Due every `period`; the first time is one period after it is scheduled.
    ///
    /// # Errors
    /// The period is shorter than a second.
    pub fn every(period: Duration) -> Result<Self, ValueError> {
        Ok(NewTimer::new(When::Rhythm, Some(Rhythm::every(period.into())?)))
    }

    /// Due by a cron expression of five fields, or six with seconds, in a time zone such as `Europe/Berlin` or `UTC`.
    ///
    /// # Errors
    /// The expression or the zone is invalid, or no date ever matches.
    pub fn cron(expression: &str, zone: &str) -> Result<Self, ValueError> {
        Ok(NewTimer::new(When::Rhythm, Some(Rhythm::cron(expression, zone)?)))
    }

    fn new(when: When, rhythm: Option<Rhythm>) -> Self {
        let missed = Missed::default();
        let recurrence =
            rhythm.map(|rhythm| Recurrence { rhythm, missed, until: None, times: None });
        let payload = Payload::default();
        NewTimer {
            key: None,
            when,
            payload,
            recurrence,
            remember: None,
            retry: None,
            expires: None,
            webhook: None,
        }
    }

    /// Sets the key, unique in its queue. A timer without one gets an assigned key.
    ///
    /// # Errors
    /// It is empty, `.`, `..` or longer than 256 bytes, contains a control character, or starts with `~`.
    pub fn key(mut self, key: impl AsRef<str>) -> Result<Self, ValueError> {
        self.key = Some(Key::chosen(key.as_ref())?);
        Ok(self)
    }

    /// Sets the payload, at most 256 KiB.
    pub fn payload(mut self, payload: impl AsRef<[u8]>) -> Self {
        self.payload = Payload::bytes(payload);
        self
    }

    /// Sets its attempts and backoff.
    ///
    /// # Errors
    /// A field is out of its limits.
    pub fn retry(mut self, retry: Retry) -> Result<Self, ValueError> {
        self.retry = Some(retry.checked()?);
        Ok(self)
    }

    /// Sets how long its key stays taken after it is done or cancelled.
    pub fn remember(mut self, span: Duration) -> Self {
        self.remember = Some(span.into());
        self
    }

    /// Sets its expiry: no attempt starts later than this long after it is due. The occurrence is then given up.
    pub fn expires(mut self, span: Duration) -> Self {
        self.expires = Some(span.into());
        self
    }

    /// Sets its webhook, overriding its queue's. [`Durable::push`](crate::Durable::push) hands the timer out.
    ///
    /// # Errors
    /// The webhook is out of its limits.
    pub fn webhook(mut self, webhook: Webhook) -> Result<Self, ValueError> {
        self.webhook = Some(Some(Arc::new(webhook.checked()?)));
        Ok(self)
    }

    /// Removes its webhook, overriding its queue's.
    pub fn no_webhook(mut self) -> Self {
        self.webhook = Some(None);
        self
    }

    /// Sets the first moment of a recurring timer. No effect on other timers.
    pub fn first(mut self, moment: impl Into<Moment>) -> Self {
        if self.recurrence.is_some() {
            self.when = When::At(moment.into());
        }
        self
    }

    /// Sets what happens to the missed moments of a recurring timer. No effect on other timers.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.recurrence.iter_mut().for_each(|recurrence| recurrence.missed = missed);
        self
    }

    /// Sets the end of a recurring timer: it is not due after that moment. No effect on other timers.
    pub fn until(mut self, moment: impl Into<Moment>) -> Self {
        let until = Some(moment.into());
        self.recurrence.iter_mut().for_each(|recurrence| recurrence.until = until);
        self
    }

    /// Limits the occurrences of a recurring timer, at least 1. No effect on other timers.
    pub fn times(mut self, times: u64) -> Self {
        self.recurrence.iter_mut().for_each(|recurrence| recurrence.times = Some(times.max(1)));
        self
    }
}

impl From<Duration> for When {
    fn from(delay: Duration) -> Self {
        When::In(delay.into())
    }
}

impl From<Span> for When {
    fn from(delay: Span) -> Self {
        When::In(delay)
    }
}

impl From<SystemTime> for When {
    fn from(moment: SystemTime) -> Self {
        When::At(moment.into())
    }
}

impl From<Moment> for When {
    fn from(moment: Moment) -> Self {
        When::At(moment)
    }
}
