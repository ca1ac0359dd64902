//! Watching: what happens to timers, and what a person should know of the store.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;

use super::Durable;
use super::queue::Queue;
use crate::runtime::{Health, Heard, Notice, Reader};
use crate::store::Damage;
use crate::values::Event;

/// What is told from now on: a stream, or one after the other with [`next_within`](Watch::next_within). It ends when
/// the durable timers are closed.
///
/// Nobody waits for it: one that is read slowly loses the oldest items beyond 1024, and says how many.
#[must_use = "what nobody reads is lost"]
pub struct Watch<T> {
    reader: Arc<Reader<T>>,
}

impl<T> Watch<T> {
    /// Waits for the next item, no longer than `limit` of real time. `None`: it has passed, or nothing follows.
    pub fn next_within(&mut self, limit: Duration) -> Option<Heard<T>> {
        self.reader.wait(Some(limit))
    }
}

impl<T> Stream for Watch<T> {
    type Item = Heard<T>;
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Heard<T>>> {
        self.reader.poll(context)
    }
}

impl Durable {
    /// What happens to timers from now on, as soon as it is durable. For people: it is lossy, and while nobody watches
    /// it costs nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon_durable::{Durable, Happened, Heard, NewTimer};
    ///
    /// let durable = Durable::memory()?;
    /// let mut events = durable.events();
    /// let jobs = durable.queue("jobs")?;
    /// jobs.schedule(NewTimer::after(Duration::from_secs(60)).key("a")?).wait()?;
    /// let Some(Heard::Item(event)) = events.next_within(Duration::from_secs(20)) else { panic!() };
    /// assert_eq!((event.happened, event.key.unwrap().as_str()), (Happened::Scheduled, "a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn events(&self) -> Watch<Event> {
        Watch { reader: self.runtime.condition.events.listen(Box::new(|_| true)) }
    }

    /// What a person should know: a clock that is far off, damage, failures of the store. The last 100 come first.
    pub fn notices(&self) -> Watch<Notice> {
        Watch { reader: self.runtime.condition.notices.listen(Box::new(|_| true)) }
    }

    /// What was found since the start that cannot be read. Other timers are not affected.
    pub fn damage(&self) -> Vec<Damage> {
        self.runtime.condition.damage()
    }

    /// Whether it takes writes, or why not.
    pub fn health(&self) -> Health {
        self.runtime.condition.health()
    }
}

impl Queue {
    /// What happens to the timers of this queue from now on, as [`Durable::events`].
    pub fn events(&self) -> Watch<Event> {
        let name = self.name.clone();
        Watch { reader: self.runtime.condition.events.listen(Box::new(move |e| e.queue == name)) }
    }
}
