//! Workers: run a handler for due timers, with bounded parallelism.
//!
//! A worker requests as many deliveries as it has free places, and hands each to a pool of threads. The pool belongs to
//! a timer engine, so that under a virtual clock time does not pass while a handler runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tourbillon::{CancelOnDrop, Timer};

use super::delivery::{Delivery, Nack};
use super::error::Error;
use super::queue::Queue;
use crate::runtime::OpenError;
use crate::shard::{Request, RequestId, Verdict};
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::values::Span;

/// A lease is extended after 1/`EXTEND_AFTER` of its length.
const EXTEND_AFTER: u32 = 2;
/// The pause after [`Error::Full`].
const PAUSE: Duration = Duration::from_millis(100);

/// Runs a handler for the due timers of a queue. Made by [`Queue::worker`].
///
/// Dropping it calls [`shutdown`](Worker::shutdown) with a limit of 5 s.
pub struct Worker {
    shared: Arc<Shared>,
}

type Handler = dyn Fn(&Delivery) -> Result<(), Nack> + Send + Sync;

struct Shared {
    queue: Queue,
    pool: Timer,
    handler: Box<Handler>,
    /// The longest time for which a lease is extended.
    most: Duration,
    state: Mutex<State>,
    /// Notifies a shutdown that no handler is running.
    quiet: Condvar,
}

struct State {
    places: usize,
    /// Handlers that run, or are about to.
    running: usize,
    /// Whether a receive is pending, its sequence number, and its id once that is known.
    taking: bool,
    takes: u64,
    receive: Option<RequestId>,
    stopping: bool,
}

impl Queue {
    /// Runs `handler` for every due timer of the queue that has no webhook, on up to `parallel` threads of the worker.
    ///
    /// `Ok` acks; an error or a panic nacks with its text. The lease is extended while the handler runs, for at most
    /// an hour; after that the timer may be handed to another worker.
    ///
    /// # Errors
    /// A thread could not be started.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::VirtualClock;
    /// use tourbillon_durable::{Durable, Nack, NewTimer};
    ///
    /// let clock = VirtualClock::new();
    /// let durable = Durable::builder().clock(&clock).memory()?;
    /// let hooks = durable.queue("hooks")?;
    /// let (seen, attempts) = std::sync::mpsc::channel();
    /// let worker = hooks.worker(4, move |hook| {
    ///     seen.send(hook.attempt()).unwrap();
    ///     if hook.attempt() < 3 { Err(Nack::because("503")) } else { Ok(()) }
    /// })?;
    /// hooks.schedule(NewTimer::after(Duration::from_secs(60))).wait()?;
    /// clock.advance(Duration::from_secs(120))?;
    /// assert_eq!(attempts.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
    /// assert!(worker.shutdown(Duration::from_secs(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn worker(
        &self,
        parallel: usize,
        handler: impl Fn(&Delivery) -> Result<(), Nack> + Send + Sync + 'static,
    ) -> Result<Worker, OpenError> {
        self.worker_within(parallel, Duration::from_secs(3600), handler)
    }

    /// As [`worker`](Queue::worker), extending leases for at most `most`.
    ///
    /// # Errors
    /// As [`worker`](Queue::worker).
    pub fn worker_within(
        &self,
        parallel: usize,
        most: Duration,
        handler: impl Fn(&Delivery) -> Result<(), Nack> + Send + Sync + 'static,
    ) -> Result<Worker, OpenError> {
        let places = parallel.max(1);
        let builder = Timer::builder().pool(places).shards(1).name("tourbillon-worker");
        let builder = match self.runtime.clock() {
            Some(clock) => builder.clock(clock),
            None => builder,
        };
        let failed = |error: &dyn std::fmt::Display| {
            OpenError::Thread(std::io::Error::other(error.to_string()))
        };
        let pool = builder.build().map_err(|error| failed(&error))?;
        pool.start().map_err(|error| failed(&error))?;
        let state =
            State { places, running: 0, taking: false, takes: 0, receive: None, stopping: false };
        let shared = Arc::new(Shared {
            queue: self.clone(),
            pool,
            handler: Box::new(handler),
            most,
            state: Mutex::new(state),
            quiet: Condvar::new(),
        });
        shared.take();
        Ok(Worker { shared })
    }
}

impl Worker {
    /// Stops taking deliveries, and waits for running handlers, at most `limit` of real time.
    ///
    /// Returns whether all have ended. The leases of the remaining ones are no longer extended.
    pub fn shutdown(self, limit: Duration) -> bool {
        self.shared.stop(limit)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.stop(Duration::from_secs(5));
    }
}

impl Shared {
    /// Requests as many deliveries as there are free places, unless a receive is pending.
    fn take(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        let free = state.places - state.running;
        if state.taking || state.stopping || free == 0 {
            return;
        }
        state.taking = true;
        state.takes += 1;
        let takes = state.takes;
        drop(state);
        let shared = self.clone();
        let reply = Box::new(move |answer| shared.taken(shared.queue.received(answer)));
        let id = self.queue.take(free, Span::MAX, reply);
        let mut state = lock(&self.state);
        // The answer may arrive before the id is known.
        if state.taking && state.takes == takes {
            state.receive = Some(id);
        }
        let stopping = state.stopping;
        drop(state);
        if stopping {
            self.leave();
        }
    }

    /// Handles the answer to a receive, on the runtime's thread.
    fn taken(self: &Arc<Self>, received: Result<Vec<Delivery>, Error>) {
        let mut state = lock(&self.state);
        (state.taking, state.receive) = (false, None);
        let stopping = state.stopping;
        let received = match received {
            Ok(_) if stopping => return,
            Ok(received) => received,
            Err(Error::Full) => {
                drop(state);
                let shared = Arc::downgrade(self);
                let again = move |_: &tourbillon::Context<'_>| {
                    shared.upgrade().iter().for_each(Shared::take);
                };
                drop(self.queue.runtime.timer().arm(PAUSE, again));
                return;
            }
            Err(_) => return,
        };
        state.running += received.len();
        drop(state);
        for delivery in received {
            let shared = self.clone();
            let delivery = delivery.reached();
            // If the pool refuses a job, it is dropped here, which nacks its delivery.
            let job = move |_: &tourbillon::Context<'_>| shared.run(delivery);
            if self.pool.arm(Duration::ZERO, job).is_err() {
                self.ran();
            }
        }
        self.take();
    }

    /// Runs the handler for one delivery, on a thread of the pool.
    fn run(self: &Arc<Self>, delivery: Delivery) {
        let extending = self.extend(&delivery);
        let handled = catch_unwind(AssertUnwindSafe(|| (self.handler)(&delivery)));
        drop(extending);
        // Nobody waits for these receipts. If the store never gets an answer, the timer is handed out again.
        match handled {
            Ok(Ok(())) => drop(delivery.ack()),
            Ok(Err(nack)) => drop(delivery.nack(nack)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                let text = format!("the handler panicked: {}", text.unwrap_or("no message"));
                drop(delivery.nack(Nack::because(text)));
                // The payload's own drop may panic.
                std::mem::forget(panic);
            }
        }
        self.ran();
        self.take();
    }

    fn ran(&self) {
        let mut state = lock(&self.state);
        state.running -= 1;
        if state.running == 0 {
            self.quiet.notify_all();
        }
    }

    /// Extends the lease periodically, until the limit has passed, the worker stops, or this is dropped.
    fn extend(self: &Arc<Self>, delivery: &Delivery) -> Option<CancelOnDrop> {
        let (shared, token) = (Arc::downgrade(self), delivery.token().clone());
        let lease = self.queue.lease;
        let pause = Duration::from(lease) / EXTEND_AFTER;
        let mut left = self.most;
        let extend = move |context: &tourbillon::Context<'_>| {
            let Some(shared) = shared.upgrade() else { return };
            left = left.saturating_sub(pause);
            if left.is_zero() || lock(&shared.state).stopping {
                return;
            }
            drop(shared.queue.settle(token.clone(), Verdict::Extend(lease), |_| ()));
            context.again(pause);
        };
        let extending = self.queue.runtime.timer().schedule_repeating(pause, extend);
        Some(extending.ok()?.cancel_on_drop())
    }

    fn stop(self: &Arc<Self>, limit: Duration) -> bool {
        lock(&self.state).stopping = true;
        self.leave();
        let end = Instant::now().checked_add(limit);
        let mut state = lock(&self.state);
        while state.running > 0 {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            state = wait(&self.quiet, state, left);
        }
        true
    }

    /// Withdraws the pending receive.
    fn leave(&self) {
        let receive = lock(&self.state).receive.take();
        if let Some(id) = receive {
            let leave = Request::Leave(Some(self.queue.name.clone()), id);
            self.queue.runtime.post(leave, Box::new(|_| ()));
        }
    }
}
