//! The same calls for threads: each blocks until the answer arrives.
//!
//! ```no_run
//! use std::time::Duration;
//! use tourbillon_client::NewTimer;
//! use tourbillon_client::blocking::Client;
//!
//! # fn main() -> Result<(), tourbillon_client::Error> {
//! let mails = Client::new("http://localhost:7420")?.queue("mails");
//! let made = mails.schedule(&NewTimer::after(Duration::from_secs(5)).key("welcome"))?;
//! assert_eq!(made.state, "scheduled");
//! # Ok(())
//! # }
//! ```
//!
//! Calls panic on a thread of an async runtime. Use [`crate::Client`] there.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::runtime::{Builder, Runtime};

use crate::answers::{
    Bucket, Cancelled, CancelledKeys, Delivery, Many, Page, QueueStats, Queues, Revived, Scheduled,
    Settled,
};
use crate::error::Error;
use crate::events::Event;
use crate::queue::{Condition, Conflict, List, QueueChange, Receive};
use crate::timer::{NewTimer, Timer};

/// As [`crate::Client`], for threads.
#[derive(Clone, Debug)]
pub struct Client {
    client: crate::Client,
    runtime: Arc<Runtime>,
}

impl Client {
    /// A client of the server at that address, as `http://localhost:7420`.
    ///
    /// # Errors
    /// [`Error::Argument`]: it is not the address of a server.
    pub fn new(address: impl Into<String>) -> Result<Self, Error> {
        Client::of(crate::Client::new(address)?)
    }

    /// From a client that was built with settings.
    ///
    /// # Errors
    /// [`Error::Argument`]: the runtime that it needs cannot be started.
    pub fn of(client: crate::Client) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Argument(error.to_string()))?;
        Ok(Client { client, runtime: Arc::new(runtime) })
    }

    /// A queue by its name. Sends no request.
    pub fn queue(&self, name: &str) -> Queue {
        Queue { queue: self.client.queue(name), runtime: Arc::clone(&self.runtime) }
    }

    /// As [`crate::Client::queues`].
    ///
    /// # Errors
    /// Those of the async method.
    pub fn queues(&self) -> Result<Queues, Error> {
        self.runtime.block_on(self.client.queues())
    }

    /// As [`crate::Client::ready`].
    ///
    /// # Errors
    /// Those of the async method.
    pub fn ready(&self) -> Result<(), Error> {
        self.runtime.block_on(self.client.ready())
    }

    /// As [`crate::Client::events`], as an iterator that blocks.
    ///
    /// # Errors
    /// Those of the async method.
    pub fn events(&self, queue: Option<&str>) -> Result<Events, Error> {
        let events = self.runtime.block_on(self.client.events(queue))?;
        Ok(Events { events, runtime: Arc::clone(&self.runtime) })
    }

    /// As [`crate::Client::now`].
    pub fn now(&self) -> SystemTime {
        self.client.now()
    }

    /// The address of the server.
    pub fn address(&self) -> &str {
        self.client.address()
    }
}

/// Events of timers, as they happen.
#[derive(Debug)]
pub struct Events {
    events: crate::Events,
    runtime: Arc<Runtime>,
}

impl Iterator for Events {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.runtime.block_on(self.events.next())
    }
}

/// As [`crate::Queue`], for threads.
#[derive(Clone, Debug)]
pub struct Queue {
    queue: crate::Queue,
    runtime: Arc<Runtime>,
}

macro_rules! calls {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Queue {$(
            #[doc = concat!("As [`Queue::", stringify!($name), "`](crate::Queue::", stringify!($name), ").")]
            ///
            /// # Errors
            /// Those of the async method.
            pub fn $name(&self, $($argument: $type),*) -> Result<$answer, Error> {
                self.runtime.block_on(self.queue.$name($($argument),*))
            }
        )*}
    };
}

calls! {
    schedule(timer: &NewTimer) -> Timer;
    schedule_or(timer: &NewTimer, conflict: Conflict) -> Timer;
    schedule_many(timers: &[NewTimer], conflict: Conflict) -> Vec<Scheduled>;
    replace(key: &str, timer: &NewTimer, condition: Condition) -> Timer;
    get(key: &str) -> Timer;
    move_to(key: &str, moment: SystemTime, condition: Condition) -> Timer;
    move_after(key: &str, delay: Duration, condition: Condition) -> Timer;
    cancel(key: &str, condition: Condition) -> Cancelled;
    cancel_keys(keys: &[&str]) -> CancelledKeys;
    cancel_prefix(prefix: &str) -> Many;
    run(key: &str) -> Timer;
    redrive(prefix: Option<&str>) -> Revived;
    list(list: &List) -> Page;
    receive(receive: &Receive) -> Vec<Delivery>;
    ack(tokens: &[&str]) -> Settled;
    nack(tokens: &[&str], delay: Option<Duration>, error: Option<&str>) -> Settled;
    extend(tokens: &[&str], lease: Duration) -> Settled;
    stats() -> QueueStats;
    set(change: &QueueChange) -> QueueStats;
    delete(force: bool) -> ();
    forecast(from: SystemTime, to: SystemTime, buckets: u32) -> Vec<Bucket>;
}
