//! Pushing: the hook for delivery agents, which post timers to their webhooks.

use std::sync::Arc;
use std::time::Duration;

use super::Durable;
use super::receive::{Receive, fill};
use crate::runtime::Slot;
use crate::shard::Request;

impl Durable {
    /// Takes up to `max` due timers with a webhook, round-robin over all queues, longest due first in each.
    ///
    /// If none is due, waits for one, at most `wait`. Resolves empty when the wait has passed.
    ///
    /// This is for a delivery agent: a part of the process that posts each delivery to its webhook and settles it
    /// according to the response. This crate makes no connections itself. Timers with a webhook are handed out only by
    /// this method, never by [`Queue::receive`](super::Queue::receive); this method hands out no other timers.
    ///
    /// The lease of a delivery is the timeout of its webhook plus `margin`; a delivery not settled by then is a failed
    /// attempt. Deliveries in progress when the process ends are due at once when the store is opened again: their
    /// attempt does not count as failed, and the next one has a higher number.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon_durable::{Durable, Nack, NewTimer, Webhook};
    ///
    /// let durable = Durable::memory()?;
    /// let hook = Webhook::new("https://example.com/orders")?;
    /// let timer = NewTimer::after(Duration::ZERO).payload("17").webhook(hook)?;
    /// durable.queue("orders")?.schedule(timer).wait()?;
    ///
    /// let post = |url: &str, payload: &[u8]| (url.len() + payload.len()) as u16 + 172;
    /// for delivery in durable.push(10, Duration::from_secs(20), Duration::from_secs(5)).wait()? {
    ///     let Some(webhook) = delivery.webhook() else { continue };
    ///     match post(&webhook.url, delivery.payload()) {
    ///         200..=299 => drop(delivery.ack().wait()?),
    ///         410 => drop(delivery.give_up("410 Gone").wait()?),
    ///         status => drop(delivery.nack(Nack::because(status.to_string())).wait()?),
    ///     }
    /// }
    /// # assert_eq!(durable.queue("orders")?.count().wait()?, Some(Default::default()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push(&self, max: usize, wait: Duration, margin: Duration) -> Receive {
        let (slot, margin) = (Arc::new(Slot::new()), margin.into());
        let request = Request::Push { max, wait: wait.into(), margin };
        let id = self.runtime.post(request, fill(&self.runtime, margin, &slot));
        Receive { runtime: self.runtime.clone(), from: None, id, slot }
    }
}
