//! The broker: partitions with a log each, followers that fetch from it, and two purgatories on one timer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tourbillon::{Operation, Outcome, Purgatory, Timer, VirtualClock};

/// A partition of a topic, such as `orders-0`. Operations wait under it as their key.
pub(crate) type Partition = &'static str;

/// The broker's log of events, with their times.
#[derive(Clone)]
pub(crate) struct Journal {
    clock: VirtualClock,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Journal {
    pub(crate) fn new(clock: &VirtualClock) -> Self {
        Journal { clock: clock.clone(), lines: Arc::default() }
    }

    pub(crate) fn write(&self, line: impl AsRef<str>) {
        let at = self.clock.elapsed().as_millis();
        self.lines.lock().unwrap().push(format!("{at:>5} ms  {}", line.as_ref()));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

/// The log of one partition: its records, and the offset up to which each follower has fetched.
#[derive(Default)]
struct Log {
    /// The sizes of the records, in order.
    records: Vec<usize>,
    followers: BTreeMap<&'static str, usize>,
}

impl Log {
    /// The offset up to which every replica has the records.
    fn replicated(&self) -> usize {
        let leader = self.records.len();
        self.followers.values().copied().min().unwrap_or(leader).min(leader)
    }

    fn bytes_from(&self, offset: usize) -> usize {
        self.records.iter().skip(offset).sum()
    }
}

type Logs = Arc<Mutex<BTreeMap<Partition, Log>>>;

/// An operation that waits until all replicas of all its partitions have its record.
struct Produce {
    client: &'static str,
    /// The offset after the record, in each partition that still lacks a replica.
    missing: BTreeMap<Partition, usize>,
    logs: Logs,
    journal: Journal,
}

impl Operation for Produce {
    fn try_complete(&mut self) -> bool {
        let logs = self.logs.lock().unwrap();
        self.missing.retain(|partition, end| logs[partition].replicated() < *end);
        self.missing.is_empty()
    }

    fn on_complete(self) {
        self.journal.write(format!("{} is answered: on all replicas", self.client));
    }

    fn on_expire(self) {
        let missing: Vec<&str> = self.missing.into_keys().collect();
        let missing = missing.join(", ");
        self.journal.write(format!(
            "{} is answered: TIMED OUT, not on all replicas of {missing}",
            self.client
        ));
    }
}

/// An operation that waits until enough bytes are available from an offset on.
struct Fetch {
    client: &'static str,
    partition: Partition,
    offset: usize,
    least: usize,
    logs: Logs,
    journal: Journal,
}

impl Fetch {
    fn bytes(&self) -> usize {
        self.logs.lock().unwrap()[self.partition].bytes_from(self.offset)
    }
}

impl Operation for Fetch {
    fn try_complete(&mut self) -> bool {
        self.bytes() >= self.least
    }

    fn on_complete(self) {
        self.journal.write(format!(
            "{} is answered: {} bytes of {}",
            self.client,
            self.bytes(),
            self.partition
        ));
    }

    fn on_expire(self) {
        let (bytes, least) = (self.bytes(), self.least);
        self.journal.write(format!(
            "{} is answered: time is up, {bytes} bytes of the {least}",
            self.client
        ));
    }
}

pub(crate) struct Broker {
    logs: Logs,
    produces: Purgatory<Partition, Produce>,
    fetches: Purgatory<Partition, Fetch>,
    journal: Journal,
}

impl Broker {
    pub(crate) fn new(timer: &Timer, journal: &Journal) -> Self {
        Broker {
            logs: Arc::default(),
            produces: Purgatory::new(timer),
            fetches: Purgatory::new(timer),
            journal: journal.clone(),
        }
    }

    pub(crate) fn create(&self, partition: Partition, followers: &[&'static str]) {
        let followers = followers.iter().map(|&follower| (follower, 0)).collect();
        let log = Log { records: Vec::new(), followers };
        self.logs.lock().unwrap().insert(partition, log);
    }

    /// Writes a record of this many bytes to each partition, and answers when all replicas have it.
    pub(crate) fn produce(
        &self,
        client: &'static str,
        partitions: &[Partition],
        bytes: usize,
        timeout: Duration,
    ) {
        let mut missing = BTreeMap::new();
        for &partition in partitions {
            let mut logs = self.logs.lock().unwrap();
            let log = logs.get_mut(partition).expect("it was created");
            log.records.push(bytes);
            missing.insert(partition, log.records.len());
        }
        self.journal
            .write(format!("{client} produces {bytes} bytes to {}", partitions.join(" and ")));
        let (logs, journal) = (self.logs.clone(), self.journal.clone());
        let produce = Produce { client, missing, logs, journal };
        let keys = partitions.iter().copied();
        let outcome = self
            .produces
            .try_complete_else_watch(produce, keys, timeout)
            .expect("it is not stopped");
        if outcome == Outcome::Watched {
            self.journal.write(format!("{client} waits for the followers"));
        }
        // More bytes are available now.
        for &partition in partitions {
            self.fetches.check(partition);
        }
    }

    /// Answers when this many bytes are available from the offset on, or at the timeout, with the bytes that are
    /// available then.
    pub(crate) fn fetch(
        &self,
        client: &'static str,
        partition: Partition,
        offset: usize,
        least: usize,
        timeout: Duration,
    ) {
        self.journal.write(format!("{client} fetches from {partition}, at least {least} bytes"));
        let (logs, journal) = (self.logs.clone(), self.journal.clone());
        let fetch = Fetch { client, partition, offset, least, logs, journal };
        self.fetches
            .try_complete_else_watch(fetch, [partition], timeout)
            .expect("it is not stopped");
    }

    /// Records that a follower has fetched everything up to the end of the leader's log.
    pub(crate) fn replicate(&self, follower: &'static str, partition: Partition) {
        {
            let mut logs = self.logs.lock().unwrap();
            let log = logs.get_mut(partition).expect("it was created");
            let end = log.records.len();
            log.followers.insert(follower, end);
        }
        self.journal.write(format!("{follower} has fetched {partition}"));
        self.produces.check(partition);
    }

    /// Another broker becomes the partition's leader: requests that wait for the partition are answered with this fact.
    pub(crate) fn resign(&self, partition: Partition) {
        self.journal.write(format!("{partition} has a new leader elsewhere"));
        for produce in self.produces.cancel_key(partition) {
            self.journal.write(format!(
                "{} is answered: ask the new leader of {partition}",
                produce.client
            ));
        }
        for fetch in self.fetches.cancel_key(partition) {
            self.journal
                .write(format!("{} is answered: ask the new leader of {partition}", fetch.client));
        }
    }

    /// The number of waiting requests, in both purgatories.
    pub(crate) fn waiting(&self) -> usize {
        self.produces.delayed() + self.fetches.delayed()
    }
}
