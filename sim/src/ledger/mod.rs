//! The ledger: what the shard has promised to clients, and whether each promise holds.
//!
//! It sees what a client sees: requests, answers, both clocks. From the shard's commits it reads only hand-outs, ends
//! of leases and clears, because answers report these too late. It shares no code with the shard: it implements a
//! second time how a timer fails, recurs and lapses, in the simplest way.
//!
//! Answers arrive in the order of the shard's decisions, so each answer moves the ledger from one known state to the
//! next. After a crash the rows of the store decide the outcome of unanswered requests; everything else must be
//! unchanged (`reopen.rs`).

mod answers;
mod conditions;
mod deliveries;
mod discard;
mod entry;
mod exact;
mod many;
mod missed;
mod reopen;
mod settles;

use std::collections::BTreeMap;
use std::fmt;

use tourbillon_durable::record::{Place, Record};
use tourbillon_durable::shard::{
    Change, Cursor, Limits, Request, RequestId, Resident, Token, View,
};
use tourbillon_durable::store::{Op, Settings};
use tourbillon_durable::values::{Generation, Key, Moment, QueueName};

pub use entry::CRONS;
use entry::{Entry, Phase};
use missed::Events;

/// Maximum size of a row of the simulator's clients.
const LARGEST: u64 = 2000;

/// A broken promise.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The name of the promise.
    pub promise: &'static str,
    /// How it was broken.
    pub detail: String,
}

impl Broken {
    /// A broken promise.
    pub fn new(promise: &'static str, detail: impl Into<String>) -> Self {
        Broken { promise, detail: detail.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.detail)
    }
}

/// The promises, by the names under which they are reported.
pub mod promise {
    /// An acknowledged change survives.
    pub const DURABLE: &str = "acknowledged is durable";
    /// No timer is early by the wall clock, to the millisecond.
    pub const EARLY: &str = "never early";
    /// A due timer reaches a waiting taker.
    pub const ONCE: &str = "at least once";
    /// A cancelled or acknowledged timer is not handed out.
    pub const CANCEL: &str = "a cancel is definite";
    /// While a lease runs, its occurrence is not handed out again.
    pub const LEASE: &str = "one at a time";
    /// The identity of a delivery is never reused.
    pub const ATTEMPT: &str = "attempts never repeat";
    /// The next occurrence is computed from the due moment.
    pub const RHYTHM: &str = "rhythm goes by due";
    /// Counts are exact.
    pub const COUNTS: &str = "counts are exact";
    /// The forecast is exact on its grid.
    pub const FORECAST: &str = "the forecast is exact";
    /// Memory is bounded.
    pub const MEMORY: &str = "memory is bounded";
    /// A timer with a webhook reaches only agents; one without reaches only takers of its queue.
    pub const LANE: &str = "each lane has its own timers";
    /// A queue exceeds neither its rate nor its concurrency.
    pub const PACE: &str = "a queue keeps its pace";
    /// No attempt starts after its expiry. A timer that is not out by then is given up.
    pub const EXPIRES: &str = "what has expired is given up";
    /// Discarded rows are removed from the store.
    pub const ROOM: &str = "discarded rows are removed";
    /// Requests for one timer are linearizable, and their answers are true.
    pub const TRUE: &str = "answers are true";
}

type Name = (QueueName, Key);
/// A generation, an occurrence and an attempt.
type Handed = (u64, u64, u32);

/// An unanswered request, and the range of the wall clock since it was sent.
struct Asked {
    request: Request,
    low: u64,
    high: u64,
    /// The steady clock when the shard took it.
    taken: Option<u64>,
    /// Nothing else was in progress, so counts are exact.
    quiet: bool,
}

/// A lease, as the shard's commits show it.
#[derive(Clone, Copy, Debug)]
struct Lease {
    /// The wall clock at the hand-out.
    wall: u64,
    /// The end by the steady clock: a millisecond more than its length, because readings are rounded down.
    end: u64,
    /// The wall clock of the first turn after the end.
    lapsed: Option<u64>,
    /// Whether its taker has received the delivery.
    received: bool,
    /// Whether the process knows that no taker has received it. The next process does not.
    unreceived: bool,
}

/// The state of all promises.
pub struct Ledger {
    limits: Limits,
    entries: BTreeMap<Name, Entry>,
    asked: BTreeMap<RequestId, Asked>,
    leases: BTreeMap<Handed, Lease>,
    /// The ends of the leases that this process has granted or loaded, also of those that were extended or have ended:
    /// a commit that is lost brings them back. By the end that the row has, by the wall clock.
    ends: BTreeMap<(Handed, u64), u64>,
    /// The hand-out of a generation that is out.
    out: BTreeMap<u64, Handed>,
    settings: BTreeMap<QueueName, Settings>,
    /// For each queue, the hand-outs of the last second by the steady clock: those since its settings changed, and all.
    since_set: BTreeMap<QueueName, Vec<u64>>,
    paced: BTreeMap<QueueName, Vec<u64>>,
    /// The queues of the timers that are out.
    queue_of: BTreeMap<u64, QueueName>,
    /// The pages of a list, and where the last one ended.
    listed: Vec<View>,
    cursor: Option<Cursor>,
    /// Timers revived by a redrive and delivered before its answer.
    revived: u64,
    /// How often the store was reopened.
    pub opened: u64,
    /// Generations that must not be handed out again.
    ended: BTreeMap<u64, &'static str>,
    /// Deliveries of discarded timers.
    stale: Vec<(QueueName, Token)>,
    events: Events,
    wall: u64,
    steady: u64,
    /// Whether only polls are in progress, and no time passes. Answers are then exact.
    pub quiet: bool,
}

impl Ledger {
    /// An empty ledger.
    pub fn new(limits: Limits) -> Self {
        Ledger {
            limits,
            entries: BTreeMap::new(),
            asked: BTreeMap::new(),
            leases: BTreeMap::new(),
            ends: BTreeMap::new(),
            out: BTreeMap::new(),
            settings: BTreeMap::new(),
            since_set: BTreeMap::new(),
            paced: BTreeMap::new(),
            queue_of: BTreeMap::new(),
            listed: Vec::new(),
            cursor: None,
            revived: 0,
            opened: 0,
            ended: BTreeMap::new(),
            stale: Vec::new(),
            events: Events::default(),
            wall: 0,
            steady: 0,
            quiet: false,
        }
    }

    /// The first process starts.
    pub fn started(&mut self, wall: u64, steady: u64) {
        (self.wall, self.steady) = (wall, steady);
        self.events.set(wall);
    }

    /// A client has sent a request.
    pub fn asked(&mut self, id: RequestId, request: Request, wall: u64) {
        let quiet = self.quiet;
        self.asked.insert(id, Asked { request, low: wall, high: wall, taken: None, quiet });
    }

    /// The shard takes a request.
    pub fn taken(&mut self, id: RequestId, wall: u64, steady: u64) {
        let Some(asked) = self.asked.get_mut(&id) else { return };
        asked.taken = Some(steady);
        if let Request::Set { queue, change: Change { paused: Some(false), .. } } = &asked.request {
            self.events.resume(queue, wall);
        }
    }

    /// A turn begins. `open`: whether the shard is open, because before that no lease runs.
    pub fn turn(&mut self, wall: u64, steady: u64, open: bool) {
        let expected = self.wall + steady.saturating_sub(self.steady);
        (self.wall, self.steady) = (wall, steady);
        if expected.min(Moment::MAX.millis()).abs_diff(wall) > 10_000 {
            self.events.set(wall);
        }
        for asked in self.asked.values_mut() {
            asked.low = asked.low.min(wall);
            asked.high = asked.high.max(wall);
        }
        for handed in self.out.values() {
            let lease = self.leases.get_mut(handed).expect("what is out has a lease");
            if open && lease.end <= steady && lease.lapsed.is_none() {
                lease.lapsed = Some(wall);
            }
        }
        // A timer that no pending request concerns has lapsed by now. A pending request may have settled its timer
        // before the lapse.
        let unnamed = |(name, _): &(&Name, &Entry)| {
            !self.asked.values().any(|asked| {
                let gets = matches!(&asked.request, Request::Get { queue, key } if (queue, key) == (&name.0, &name.1));
                gets || names(&asked.request, &name.0, &name.1)
            })
        };
        let unnamed: Vec<Name> =
            self.entries.iter().filter(unnamed).map(|(name, _)| name.clone()).collect();
        unnamed.iter().for_each(|name| self.apply_lapse(name));
        let dead_keep: BTreeMap<QueueName, u64> = self
            .settings
            .iter()
            .map(|(queue, settings)| (queue.clone(), settings.dead_keep.millis()))
            .collect();
        for ((queue, _), entry) in &mut self.entries {
            entry.age(wall, dead_keep.get(queue).copied());
        }
    }

    /// The shard has emitted a commit: leases begin and end.
    pub fn emitted(&mut self, ops: &[Op], wall: u64, steady: u64) -> Result<(), Broken> {
        for op in ops {
            match op {
                Op::Put { from, to: Place::Out(_), record } => {
                    self.lease(*from, record, wall, steady)?;
                }
                Op::Put { from: Some(Place::Out(_)), record, .. }
                | Op::Remove { from: Place::Out(_), record } => {
                    self.lease_ends(record.generation().0, &record.spec.queue, &record.spec.key)?;
                }
                Op::Clear(queue) => self.cleared(queue)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn lease(
        &mut self,
        from: Option<Place>,
        record: &Record,
        wall: u64,
        steady: u64,
    ) -> Result<(), Broken> {
        let handed = (record.generation().0, record.occurrence, record.attempt);
        let length = record.lease.map_or(0, |lease| lease.length.millis());
        if !matches!(from, Some(Place::Out(_))) && self.leases.contains_key(&handed) {
            return Err(Broken::new(
                promise::ATTEMPT,
                format!("{handed:?} is handed out again at {wall}"),
            ));
        }
        self.out.insert(handed.0, handed);
        if !matches!(from, Some(Place::Out(_))) {
            self.is_not_missed(record)?;
            self.queue_of.insert(handed.0, record.spec.queue.clone());
            self.keeps_pace(&record.spec.queue, steady)?;
        }
        // An extended lease keeps the wall clock of its hand-out, which may be later than the current reading.
        let old = self.leases.get(&handed);
        let (received, wall) = old.map_or((false, wall), |lease| (lease.received, lease.wall));
        let unreceived = old.is_none_or(|lease| lease.unreceived);
        let end = steady + length + u64::from(length > 0);
        self.leases.insert(handed, Lease { wall, end, lapsed: None, received, unreceived });
        self.ends.extend(record.lease.map(|lease| ((handed, lease.until.millis()), end)));
        Ok(())
    }

    /// Checks the rate and concurrency after a hand-out of this queue.
    fn keeps_pace(&mut self, queue: &QueueName, steady: u64) -> Result<(), Broken> {
        for paced in [&mut self.paced, &mut self.since_set] {
            let paced = paced.entry(queue.clone()).or_default();
            paced.retain(|at| at + 1000 > steady);
            paced.push(steady);
        }
        let sets = |asked: &Asked| match &asked.request {
            Request::Set { queue: of, .. } | Request::Delete { queue: of, .. } => of == queue,
            _ => false,
        };
        let Some(settings) = self.settings.get(queue) else { return Ok(()) };
        if self.asked.values().any(sets) {
            return Ok(());
        }
        let handed = self.since_set[queue].len() as u64;
        let out = self.out_of(queue);
        let fine = settings.rate.is_none_or(|rate| handed <= rate.into())
            && settings.concurrency.is_none_or(|most| out <= most.into());
        let detail = || format!("{queue}: {handed} in a second, {out} out, {settings:?}");
        if fine { Ok(()) } else { Err(Broken::new(promise::PACE, detail())) }
    }

    fn out_of(&self, queue: &QueueName) -> u64 {
        self.out.keys().filter(|generation| self.queue_of.get(generation) == Some(queue)).count()
            as u64
    }

    /// Whether a queue may be unable to hand out now.
    fn is_slowed(&self, queue: &QueueName, steady: u64) -> bool {
        let Some(settings) = self.settings.get(queue) else { return false };
        let paced = self.paced.get(queue).into_iter().flatten();
        let handed = paced.filter(|&&at| at + 1000 > steady).count() as u64;
        settings.paused
            || settings.rate.is_some_and(|rate| handed >= rate.into())
            || settings.concurrency.is_some_and(|most| self.out_of(queue) >= most.into())
    }

    /// A lease must end at its time, or by a request for its timer.
    fn lease_ends(&mut self, generation: u64, queue: &QueueName, key: &Key) -> Result<(), Broken> {
        let Some(handed) = self.out.remove(&generation) else { return Ok(()) };
        let named = self.asked.values().any(|asked| names(&asked.request, queue, key));
        let lease = self.leases.get_mut(&handed).expect("what is out has a lease");
        if lease.end <= self.steady {
            lease.lapsed = lease.lapsed.or(Some(self.wall));
        }
        if lease.lapsed.is_none() && !named {
            let detail = format!("the lease of {handed:?} ended before its time");
            return Err(Broken::new(promise::LEASE, detail));
        }
        Ok(())
    }

    /// Checks what the shard holds in memory after a turn.
    pub fn resident(&self, resident: Resident) -> Result<(), Broken> {
        let (limits, queues) = (&self.limits, self.settings.len() + 2);
        let fine = resident.window <= limits.window
            && resident.window_bytes <= limits.window_bytes
            // Each lane may hold a page beyond the limit.
            && resident.waiting.count <= (limits.waiting + limits.page * queues * 2) as u64
            && resident.waiting.bytes <= limits.waiting_bytes + LARGEST * (queues as u64 * 2 + 1)
            && resident.out.count <= limits.out.max(1) as u64
            && resident.out.bytes <= limits.out_bytes + LARGEST;
        if fine {
            Ok(())
        } else {
            Err(Broken::new(promise::MEMORY, format!("{resident:?} with {limits:?}")))
        }
    }

    /// Nothing is left to do at this moment, so no timer may be due while a taker waits for it.
    pub fn settled<'a>(
        &mut self,
        rows: impl Iterator<Item = (Place, &'a Record)>,
        (wall, steady): (u64, u64),
    ) -> Result<(), Broken> {
        let names: Vec<Name> = self.entries.keys().cloned().collect();
        for name in &names {
            self.apply_lapse(name);
        }
        self.entries.values_mut().for_each(|entry| entry.unsure = None);
        let rows: Vec<_> = rows.collect();
        rows.iter().try_for_each(|(place, record)| self.is_reclaimed(*place, record))?;
        let is_out = |row: &&(Place, &Record)| matches!(row.0, Place::Out(_));
        let bytes: u64 = rows.iter().filter(is_out).map(|(_, record)| record.size()).sum();
        self.pin(rows.into_iter())?;
        let out = self.entries.values().filter(|entry| matches!(entry.phase, Phase::Out)).count();
        if out >= self.limits.out || bytes >= self.limits.out_bytes {
            return Ok(());
        }
        for asked in self.asked.values() {
            let (from, wait) = match &asked.request {
                Request::Receive { queue, wait, .. } => (Some(queue), wait),
                Request::Push { wait, .. } => (None, wait),
                _ => continue,
            };
            if asked.taken.is_some_and(|taken| taken + wait.millis() <= steady) {
                return Err(Broken::new(promise::TRUE, format!("a poll of {from:?} does not end")));
            }
            let due = |(name, entry): &(&Name, &Entry)| {
                let mine = match from {
                    Some(queue) => name.0 == *queue && entry.spec.webhook.is_none(),
                    None => entry.spec.webhook.is_some(),
                };
                mine && entry.is_due(self.punctual(wall)) && !self.is_slowed(&name.0, steady)
            };
            if let Some((name, entry)) = self.entries.iter().find(due) {
                return Err(Broken::new(
                    promise::ONCE,
                    format!("{name:?} is due at {wall} and somebody waits: {entry:?}"),
                ));
            }
        }
        Ok(())
    }

    /// Timers due by this moment must have been handed out. A shard whose window is full may be a second late.
    fn punctual(&self, wall: u64) -> u64 {
        if self.limits.window > 1000 { wall } else { (wall / 1000 * 1000).saturating_sub(1) }
    }

    /// The timers that are not settled, so that a run can be brought to its end.
    pub fn living(&self) -> Vec<(QueueName, Key, bool, u64)> {
        let living = self
            .entries
            .iter()
            .filter(|(_, entry)| matches!(entry.phase, Phase::Pending | Phase::Out));
        living
            .map(|(name, e)| (name.0.clone(), name.1.clone(), e.spec.recurrence.is_some(), e.next))
            .collect()
    }

    /// The deliveries that clients hold, in order. Their tokens are valid, or were valid once.
    pub fn held(&self) -> Vec<(QueueName, Token)> {
        let held = |(name, entry): (&Name, &Entry)| Some((name.0.clone(), entry.token.clone()?));
        self.entries.iter().filter_map(held).chain(self.stale.iter().cloned()).collect()
    }

    /// Every key that was used.
    pub fn keys(&self) -> Vec<Name> {
        self.entries.keys().cloned().collect()
    }

    /// The last timer known under a key.
    pub fn generation(&self, queue: &QueueName, key: &Key) -> Option<Generation> {
        self.entries.get(&(queue.clone(), key.clone())).map(|entry| entry.spec.generation)
    }

    /// If the lease of a timer has lapsed, records a failed attempt.
    fn apply_lapse(&mut self, name: &Name) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let lease = self.leases.get(&entry.handed());
        if let (Phase::Out, Some(Lease { lapsed: Some(wall), .. })) = (entry.phase, lease) {
            (entry.unsure, entry.closed) = (Some(entry.handed()), false);
            entry.fail(*wall, (*wall, *wall));
            // The lapse was discovered late. If the timer died, its retention may have ended meanwhile.
            if *wall != self.wall {
                entry.age(self.wall, Some(0));
            }
        }
    }
}

/// Whether a request may end the lease of a timer.
fn names(request: &Request, queue: &QueueName, key: &Key) -> bool {
    match request {
        Request::Schedule { queue: of, timers, .. } => {
            of == queue && timers.iter().any(|timer| timer.key.as_ref() == Some(key))
        }
        Request::Cancel { queue: of, keys, .. } => of == queue && keys.contains(key),
        Request::Move { queue: of, key: one, .. } | Request::Run { queue: of, key: one } => {
            of == queue && one == key
        }
        Request::CancelPrefix { queue: of, prefix } => {
            of == queue && key.as_str().starts_with(prefix)
        }
        Request::Redrive { queue: of, .. } | Request::Clear(of) => of == queue,
        Request::Delete { queue: of, .. } => of == queue,
        Request::Settle { queue: of, tokens, .. } => {
            of == queue && tokens.iter().any(|token| token.key == *key)
        }
        _ => false,
    }
}
