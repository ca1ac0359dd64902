//! Watching: events of timers, and the condition of the store.

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

/// A subscription: a stream, or one item at a time with [`next_within`](Watch::next_within).
///
/// It ends when the durable timers are closed. It never blocks the timers: a reader that falls more than 1024 items
/// behind loses the oldest ones and gets their number.
#[must_use = "what nobody reads is lost"]
pub struct Watch<T> {
    reader: Arc<Reader<T>>,
}

impl<T> Watch<T> {
    /// Waits for the next item, at most `limit` of real time. `None` if the time has passed or no item follows.
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
    /// Subscribes to the events of all timers, each sent once it is durable.
    ///
    /// Meant for observers: it is lossy, and costs nothing without a subscriber.
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

    /// Subscribes to what an operator should know: a clock far off, damage, store failures. Begins with the last 100
    /// notices.
    pub fn notices(&self) -> Watch<Notice> {
        Watch { reader: self.runtime.condition.notices.listen(Box::new(|_| true)) }
    }

    /// The damage found since the start. Other timers are not affected.
    pub fn damage(&self) -> Vec<Damage> {
        self.runtime.condition.damage()
    }

    /// Whether the store accepts writes, or why not.
    pub fn health(&self) -> Health {
        self.runtime.condition.health()
    }
}

impl Queue {
    /// Subscribes to the events of this queue's timers, as [`Durable::events`].
    pub fn events(&self) -> Watch<Event> {
        let name = self.name.clone();
        Watch { reader: self.runtime.condition.events.listen(Box::new(move |e| e.queue == name)) }
    }
}
