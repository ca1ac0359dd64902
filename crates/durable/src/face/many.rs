//! Bulk operations, and the settings of a queue.

use super::error::Error;
use super::queue::Queue;
use super::receipt::Receipt;
use crate::message::{Answer, Change, Request};
use crate::values::{Cursor, Filter, Many, Retry, ValueError, View, Webhook};

const LONGEST_PAGE: usize = 1000;

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The timers.
    pub timers: Vec<View>,
    /// The cursor of the next page; `None` after the last page.
    pub next: Option<Cursor>,
}

/// Bulk operations.
impl Queue {
    /// Lists timers, at most `limit` per page (clamped to 1 to 1000). Continue with the cursor of the previous page.
    ///
    /// A page may be short. A timer that does not change during the listing appears once; one that is moved may appear
    /// twice or not at all.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon_durable::{Conflict, Durable, Filter, NewTimer};
    ///
    /// let durable = Durable::memory()?;
    /// let jobs = durable.queue("jobs")?;
    /// let timer = |n: u64| NewTimer::after(Duration::from_secs(n)).key(format!("job-{n}"));
    /// jobs.schedule_all((60..90).map(timer).collect::<Result<_, _>>()?, Conflict::Refuse).wait()?;
    ///
    /// let (mut seen, mut cursor) = (0, None);
    /// loop {
    ///     let page = jobs.list(Filter::prefix("job-"), cursor, 7).wait()?;
    ///     seen += page.timers.len();
    ///     cursor = page.next;
    ///     if cursor.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(seen, 30);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> Receipt<Page> {
        if let Some(Err(error)) = filter.prefix.as_deref().map(checked) {
            return Receipt::ready(Err(error));
        }
        let (queue, limit) = (self.name.clone(), limit.clamp(1, LONGEST_PAGE));
        let request = Request::List { queue, filter, after, limit };
        self.request(request, |answer| match answer? {
            Answer::List(timers, next) => Ok(Page { timers, next }),
            other => unreachable!("a list was answered with {other:?}"),
        })
    }

    /// Cancels the timers whose keys start with `prefix`, at most 100 000 per call. Repeat while there are more.
    ///
    /// Done and cancelled timers are not counted.
    pub fn cancel_prefix(&self, prefix: &str) -> Receipt<Many> {
        match checked(prefix) {
            Ok(prefix) => self.many(Request::CancelPrefix { queue: self.name.clone(), prefix }),
            Err(error) => Receipt::ready(Err(error)),
        }
    }

    /// Cancels every timer of the queue in one commit. None is remembered afterwards, not even those done or cancelled
    /// before.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon_durable::{Conflict, Durable, NewTimer};
    ///
    /// let durable = Durable::memory()?;
    /// let jobs = durable.queue("jobs")?;
    /// let timers = (0..30).map(|_| NewTimer::after(Duration::from_secs(60))).collect();
    /// jobs.schedule_all(timers, Conflict::Refuse).wait()?;
    /// assert_eq!(jobs.clear().wait()?.done, 30);
    /// assert_eq!(jobs.count().wait()?, Some(Default::default()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&self) -> Receipt<Many> {
        self.many(Request::Clear(self.name.clone()))
    }

    /// Deletes the queue, its settings and all its timers.
    ///
    /// While timers are out it fails with [`Error::Delivering`], unless `force` is set; with `force`, their tokens
    /// become stale. Pending receives keep waiting, for timers scheduled afterwards.
    pub fn delete(&self, force: bool) -> Receipt<()> {
        let request = Request::Delete { queue: self.name.clone(), force };
        self.request(request, |answer| match answer? {
            Answer::Done => Ok(()),
            Answer::Delivering(count) => Err(Error::Delivering(count)),
            Answer::NoQueue => Err(Error::UnknownQueue),
            other => unreachable!("a delete was answered with {other:?}"),
        })
    }

    /// Makes dead timers due now: all, or those whose keys start with `prefix`; at most 10 000 per call.
    ///
    /// Repeat while there are more. The timers have all their attempts available again.
    pub fn redrive(&self, prefix: Option<&str>) -> Receipt<Many> {
        match prefix.map(checked).transpose() {
            Ok(prefix) => self.many(Request::Redrive { queue: self.name.clone(), prefix }),
            Err(error) => Receipt::ready(Err(error)),
        }
    }

    fn many(&self, request: Request) -> Receipt<Many> {
        self.request(request, |answer| match answer? {
            Answer::Many(many) => Ok(many),
            other => unreachable!("a request for many was answered with {other:?}"),
        })
    }
}

/// Settings.
impl Queue {
    /// Stops handing out until the queue is [resumed](Queue::resume). Scheduling and settling continue, and leases run.
    pub fn pause(&self) -> Receipt<()> {
        self.set(Change { paused: Some(true), ..Change::default() })
    }

    /// Resumes handing out.
    pub fn resume(&self) -> Receipt<()> {
        self.set(Change { paused: Some(false), ..Change::default() })
    }

    /// Changes settings; creates the queue if it does not exist.
    ///
    /// `retry`, `remember` and `webhook` are defaults of new timers; the other settings apply at once.
    ///
    /// ```
    /// use tourbillon_durable::{Change, Durable};
    ///
    /// let durable = Durable::memory()?;
    /// let mails = durable.queue("mails")?;
    /// mails.set(Change { rate: Some(Some(50)), concurrency: Some(Some(8)), ..Change::default() }).wait()?;
    /// assert_eq!(mails.settings().wait()?.unwrap().rate, Some(50));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(&self, change: Change) -> Receipt<()> {
        if let Err(error) = change.checked() {
            return Receipt::ready(Err(error.into()));
        }
        let request = Request::Set { queue: self.name.clone(), change };
        self.request(request, |answer| match answer? {
            Answer::Done => Ok(()),
            other => unreachable!("a setting was answered with {other:?}"),
        })
    }
}

fn checked(prefix: &str) -> Result<String, Error> {
    if prefix.is_empty() {
        return Err(ValueError::new("prefix", prefix, "at least one character").into());
    }
    Ok(prefix.to_owned())
}

impl Filter {
    /// Timers whose keys start with `prefix`.
    pub fn prefix(prefix: impl Into<String>) -> Self {
        Filter { prefix: Some(prefix.into()), ..Filter::default() }
    }
}

impl Change {
    fn checked(&self) -> Result<(), ValueError> {
        if let Some(retry) = self.retry {
            // The limits of each field are independent of the other fields.
            retry.over(Retry::default()).checked()?;
        }
        if let Some(Some(webhook)) = &self.webhook {
            Webhook::clone(webhook).checked()?;
        }
        for (field, most) in [("rate", self.rate), ("concurrency", self.concurrency)] {
            if most == Some(Some(0)) {
                return Err(ValueError::new(field, "0", "at least 1; pause the queue instead"));
            }
        }
        Ok(())
    }
}
