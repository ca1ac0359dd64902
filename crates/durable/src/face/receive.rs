//! Receiving: a single call, or a stream.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;

use super::delivery::Delivery;
use super::error::Error;
use super::queue::Queue;
use crate::runtime::{Failure, Reply, Runtime, Slot};
use crate::shard::{self, Answer, Request, RequestId};
use crate::values::{QueueName, Span};

/// A pending receive.
///
/// Block on it with [`wait`](Receive::wait), or await it on any runtime.
///
/// # Cancel safety
/// Dropping it loses nothing: timers handed out meanwhile are due again at once, and no attempt is used up.
#[must_use = "deliveries that nobody waits for are given back"]
pub struct Receive {
    pub(super) runtime: Arc<Runtime>,
    /// The queue; `None` for a push.
    pub(super) from: Option<QueueName>,
    pub(super) id: RequestId,
    pub(super) slot: Arc<Slot<Result<Vec<Delivery>, Error>>>,
}

impl Queue {
    /// Takes up to `max` due timers without a webhook, longest due first.
    ///
    /// If none is due, waits until one is, for at most `wait` by the clock of the timers. Resolves empty when the wait
    /// has passed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon_durable::{Durable, NewTimer};
    ///
    /// let durable = Durable::memory()?;
    /// let jobs = durable.queue("jobs")?;
    /// jobs.schedule(NewTimer::after(Duration::from_millis(5)).payload("work")).wait()?;
    /// for job in jobs.receive(10, Duration::from_secs(20)).wait()? {
    ///     assert_eq!(job.payload(), b"work");
    ///     job.ack().wait()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn receive(&self, max: usize, wait: Duration) -> Receive {
        let slot = Arc::new(Slot::new());
        let id = self.take(max, wait.into(), fill(&self.runtime, self.lease, &slot));
        Receive { runtime: self.runtime.clone(), from: Some(self.name.clone()), id, slot }
    }

    /// An endless stream of due timers.
    ///
    /// It buffers at most `ahead` deliveries, at least one. Their leases run while they are buffered.
    pub fn deliveries(&self, ahead: usize) -> Deliveries {
        Deliveries { queue: self.clone(), ahead, under_way: None, ready: VecDeque::new() }
    }

    pub(super) fn take(&self, max: usize, wait: Span, reply: Reply) -> RequestId {
        let (queue, lease) = (self.name.clone(), self.lease);
        self.runtime.post(Request::Receive { queue, max, wait, lease }, reply)
    }

    /// The deliveries of an answer.
    pub(super) fn received(&self, answer: Result<Answer, Failure>) -> Result<Vec<Delivery>, Error> {
        received(&self.runtime, self.lease, answer)
    }
}

fn received(
    runtime: &Arc<Runtime>,
    lease: Span,
    answer: Result<Answer, Failure>,
) -> Result<Vec<Delivery>, Error> {
    match answer? {
        Answer::Deliveries(deliveries) => {
            let queue =
                |name: &QueueName| Queue { lease, ..Queue::new(runtime.clone(), name.clone()) };
            let one = |delivery: shard::Delivery| Delivery::new(queue(&delivery.queue), delivery);
            Ok(deliveries.into_iter().map(one).collect())
        }
        other => unreachable!("a receive was answered with {other:?}"),
    }
}

/// Returns a reply that does not keep the store open; the waiting caller keeps it open.
pub(super) fn fill(
    runtime: &Arc<Runtime>,
    lease: Span,
    slot: &Arc<Slot<Result<Vec<Delivery>, Error>>>,
) -> Reply {
    let (runtime, slot) = (Arc::downgrade(runtime), slot.clone());
    Box::new(move |answer| {
        let received = match runtime.upgrade() {
            Some(runtime) => received(&runtime, lease, answer),
            None => Err(Error::Stopped),
        };
        // If the caller has gone, the deliveries are dropped unread, which releases them.
        drop(slot.fill(received));
    })
}

impl Receive {
    /// Blocks until the deliveries arrive or the wait has passed.
    ///
    /// # Errors
    /// [`Error::Stopped`], or [`Error::Full`].
    pub fn wait(self) -> Result<Vec<Delivery>, Error> {
        let received = self.slot.wait(None);
        reached(received.expect("every request is answered, and the answer was not taken before"))
    }
}

fn reached(received: Result<Vec<Delivery>, Error>) -> Result<Vec<Delivery>, Error> {
    received.map(|deliveries| deliveries.into_iter().map(Delivery::reached).collect())
}

impl Future for Receive {
    type Output = Result<Vec<Delivery>, Error>;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.slot.poll(context).map(reached)
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        let (unread, open) = self.slot.close();
        if unread.is_none() && open {
            let leave = Request::Leave(self.from.clone(), self.id);
            self.runtime.post(leave, Box::new(|_| ()));
        }
    }
}

/// A stream of deliveries, made by [`Queue::deliveries`]. It ends when the durable timers are closed.
///
/// # Cancel safety
/// Dropping it releases what it holds; no attempt is used up.
#[must_use = "a stream does nothing until it is polled"]
pub struct Deliveries {
    queue: Queue,
    ahead: usize,
    under_way: Option<Receive>,
    ready: VecDeque<Delivery>,
}

impl Stream for Deliveries {
    type Item = Delivery;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Delivery>> {
        loop {
            if let Some(delivery) = self.ready.pop_front() {
                return Poll::Ready(Some(delivery.reached()));
            }
            let (queue, ahead) = (self.queue.clone(), self.ahead);
            let receive = self.under_way.get_or_insert_with(|| queue.receive(ahead, Duration::MAX));
            let Poll::Ready(received) = receive.slot.poll(context) else { return Poll::Pending };
            self.under_way = None;
            match received {
                Ok(deliveries) => self.ready.extend(deliveries),
                Err(_) => return Poll::Ready(None),
            }
        }
    }
}
