//! The world of one shard: its runtime, its disk, its two clocks.
//!
//! The runtime has the production design, divided into steps, so that a crash or a failure can happen between any two.
//! Effects queue in order. Commits are written in groups, then synced. A load runs after the commits before it, and
//! perhaps after later ones. Answers arrive in any later turn. After a failed write, sync or read the store is
//! poisoned: pending requests are answered `unknown`, the shard is dropped and the store is opened again.

use std::collections::{BTreeMap, VecDeque};

use tourbillon_durable::bucket::Level;
use tourbillon_durable::memory::{MemoryStore, Survival};
use tourbillon_durable::record::{Lane, Place};
use tourbillon_durable::shard::{
    Answer, CommitId, Effect, Handover, Input, Limits, LoadId, Opened, Request, RequestId, Shard,
};
use tourbillon_durable::store::{Op, Query, Store};
use tourbillon_durable::values::{Moment, Steady};

use crate::ledger::{Broken, Ledger};
use crate::random::Random;

/// Counts of what a run has covered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of transitions of each kind. A kind that never occurs is not tested.
    pub ways: BTreeMap<&'static str, u64>,
    /// Milliseconds of the steady clock.
    pub simulated: u64,
    /// Ends of the process.
    pub crashes: u64,
    /// Failed writes, syncs and reads.
    pub failures: u64,
    /// Settings of the wall clock.
    pub jumps: u64,
    /// Timers made.
    pub timers: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// Turns of the shard.
    pub turns: u64,
}

impl Tally {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Tally) {
        for (way, count) in &other.ways {
            *self.ways.entry(way).or_default() += count;
        }
        self.simulated += other.simulated;
        self.crashes += other.crashes;
        self.failures += other.failures;
        self.jumps += other.jumps;
        self.timers += other.timers;
        self.deliveries += other.deliveries;
        self.turns += other.turns;
    }
}

/// The kind of transition of a change.
fn way(op: &Op) -> Option<&'static str> {
    use Place::{Bucket, Dead, Out, Remembered, Waiting};
    Some(match op {
        Op::Put { from: Some(Bucket(from)), to: Bucket(to), .. } if to.level() < from.level() => {
            match to.level() {
                Level::Second | Level::Minute => "split for want of room",
                _ => "split because near",
            }
        }
        Op::Put { from: Some(Bucket(_)), to: Waiting(..), .. } => "drained",
        Op::Put { from: Some(Waiting(..)), to: Bucket(_), .. } => "receded or moved",
        Op::Put { from: Some(Bucket(_)), to: Out(_), .. } => "handed out from the window",
        Op::Put { from: Some(Waiting(Lane::Push, _)), to: Out(_), .. } => "pushed from waiting",
        Op::Put { from: Some(Waiting(..)), to: Out(_), .. } => "handed out from waiting",
        Op::Put { from: Some(Out(_)), to: Waiting(..), .. } => "lapsed or released",
        Op::Put { from: Some(Out(_)), to: Bucket(_), .. } => "backed off or recurred",
        Op::Put { from: Some(Out(_)), to: Out(_), .. } => "extended",
        Op::Put { to: Dead(_), .. } => "given up",
        Op::Put { from: Some(Dead(_)), .. } => "revived or cancelled dead",
        Op::Put { to: Remembered(_), .. } => "remembered",
        Op::Remove { from: Remembered(_) | Dead(_), .. } => "forgotten or replaced",
        Op::Drop(_) => "buckets dropped",
        Op::Clear(_) => "queues cleared",
        Op::Forget(_) => "deleted queues forgotten",
        _ => return None,
    })
}

/// Work for the disk.
enum Work {
    Commit(CommitId, Vec<Op>),
    Load(LoadId, Query),
}

/// One shard and its whole environment.
pub struct World {
    /// The source of every decision.
    pub random: Random,
    /// The promises made to clients.
    pub ledger: Ledger,
    /// Counts of what was covered.
    pub tally: Tally,
    /// The wall clock.
    pub wall: u64,
    /// The steady clock.
    pub steady: u64,
    /// Whether failures and crashes happen.
    pub faults: bool,
    /// Prints every request, answer and commit.
    pub trace: bool,
    limits: Limits,
    shard: Shard,
    store: MemoryStore,
    epoch: u64,
    work: VecDeque<Work>,
    /// Commits written and not yet synced.
    written: Vec<CommitId>,
    inputs: Vec<Input>,
    /// Requests that the shard received while it opens.
    held: Vec<RequestId>,
    next_request: u64,
    /// The way in which the next shard is opened.
    opened: Opened,
    wake: (Option<Moment>, Option<Steady>),
}

impl World {
    /// An empty store and its first shard.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let large = random.one_in(3);
        let limits = match large {
            true => Limits { page: random.pick(&[1, 3, 1000]), ..Limits::default() },
            false => Limits {
                window: random.pick(&[3, 10, 40]),
                waiting: random.pick(&[1, 4, 20]),
                out: random.pick(&[2, 8, 1000]),
                page: random.pick(&[1, 2, 3, 7]),
                window_bytes: random.pick(&[2000, 10_000, 1 << 20]),
                waiting_bytes: random.pick(&[2000, 10_000, 1 << 20]),
                out_bytes: random.pick(&[4000, 1 << 20]),
                timers: u64::MAX,
            },
        };
        // A day in 2026, with an odd number of milliseconds, or the first hours of 1970.
        let wall = if random.one_in(8) {
            random.below(10_000_000)
        } else {
            1_794_000_000_123 + random.below(1 << 33)
        };
        let steady = random.below(1 << 20);
        let mut store = MemoryStore::new();
        let head = store.open().expect("a store in memory opens");
        let epoch = head.epoch;
        let now = (Moment::from_millis(wall), Steady::from_millis(steady));
        let shard = Shard::open(head, limits, Opened::Started, now);
        let mut ledger = Ledger::new(limits);
        ledger.started(wall, steady);
        World {
            random,
            ledger,
            tally: Tally::default(),
            wall,
            steady,
            faults: true,
            trace: false,
            limits,
            shard,
            store,
            epoch,
            work: VecDeque::new(),
            written: Vec::new(),
            inputs: Vec::new(),
            held: Vec::new(),
            next_request: 0,
            opened: Opened::Started,
            // A new shard needs a turn.
            wake: (Some(Moment::ZERO), None),
        }
    }

    /// The limits of its shard.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sends a request of a client.
    pub fn ask(&mut self, request: Request) -> RequestId {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        self.tell(|| format!("ask {} {request:?}", id.0));
        self.ledger.asked(id, request.clone(), self.wall);
        self.inputs.push(Input::Request(id, request));
        id
    }

    /// Takes a turn with some of the waiting inputs, in order.
    pub fn turn(&mut self) -> Result<(), Broken> {
        let count = if self.random.one_in(3) {
            1 + self.random.below(3) as usize
        } else {
            self.inputs.len()
        };
        let inputs: Vec<Input> = self.inputs.drain(..count.min(self.inputs.len())).collect();
        self.tell(|| format!("turn {inputs:?}"));
        self.held.extend(inputs.iter().filter_map(|input| match input {
            Input::Request(id, _) => Some(*id),
            _ => None,
        }));
        self.ledger.turn(self.wall, self.steady, !self.shard.is_opening());
        self.tally.turns += 1;
        let turn = self.shard.turn(
            Moment::from_millis(self.wall),
            Steady::from_millis(self.steady),
            inputs,
        );
        // Requests that arrive while the shard opens are taken once it is open.
        if !self.shard.is_opening() {
            for id in self.held.drain(..) {
                self.ledger.taken(id, self.wall, self.steady);
            }
        }
        self.wake = (turn.wall, turn.steady);
        turn.effects.iter().for_each(|effect| self.tell(|| format!("  {effect:?}")));
        self.tell(|| format!("  wake {:?}, holds {:?}", self.wake, self.shard.resident()));
        for effect in turn.effects {
            match effect {
                Effect::Commit(id, ops) => {
                    ops.iter()
                        .filter_map(way)
                        .for_each(|way| *self.tally.ways.entry(way).or_default() += 1);
                    self.ledger.emitted(&ops, self.wall, self.steady)?;
                    if planted!("ack-before-the-sync", true, false) {
                        self.inputs.push(Input::Committed(id));
                    }
                    self.work.push_back(Work::Commit(id, ops));
                }
                Effect::Load(id, query) => self.work.push_back(Work::Load(id, query)),
                Effect::Answer(id, answer) => self.answer(id, answer)?,
            }
        }
        self.ledger.resident(self.shard.resident())
    }

    fn tell(&self, what: impl Fn() -> String) {
        if self.trace {
            eprintln!("{} {} {}", self.wall, self.steady, what());
        }
    }

    fn answer(&mut self, id: RequestId, answer: Answer) -> Result<(), Broken> {
        if answer.tells_agents() {
            self.opened = Opened::Recovered;
        }
        match &answer {
            Answer::Scheduled(receipts) => self.tally.timers += receipts.len() as u64,
            Answer::Deliveries(deliveries) => self.tally.deliveries += deliveries.len() as u64,
            _ => {}
        }
        self.ledger.answered(id, answer)
    }

    /// The disk performs one operation.
    pub fn disk(&mut self) -> Result<(), Broken> {
        if !self.written.is_empty() {
            return self.sync();
        }
        let load = self.work.iter().position(|work| matches!(work, Work::Load(..)));
        let commit = self.work.iter().position(|work| matches!(work, Work::Commit(..)));
        match (load, commit) {
            (Some(load), commit)
                if commit.is_none_or(|commit| load < commit) && !self.random.one_in(4) =>
            {
                self.load(load)
            }
            (_, Some(_)) => self.write(),
            (Some(load), None) => self.load(load),
            (None, None) => Ok(()),
        }
    }

    /// Whether the disk has work.
    pub fn is_busy(&self) -> bool {
        !self.work.is_empty() || !self.written.is_empty()
    }

    /// Writes a group of commits. The loads between them run later.
    fn write(&mut self) -> Result<(), Broken> {
        let mut group = 1 + self.random.below(4);
        let mut nth = 0;
        while group > 0 && nth < self.work.len() {
            if let Work::Commit(..) = self.work[nth] {
                let Some(Work::Commit(id, ops)) = self.work.remove(nth) else { break };
                if self.fails() {
                    return self.failed();
                }
                self.store.write(self.epoch, &ops).expect("the store is not poisoned");
                self.written.push(id);
                group -= 1;
            } else {
                nth += 1;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Broken> {
        if self.fails() {
            return self.failed();
        }
        self.store.sync().expect("the store is not poisoned");
        self.inputs.extend(self.written.drain(..).map(Input::Committed));
        Ok(())
    }

    fn load(&mut self, nth: usize) -> Result<(), Broken> {
        let Some(Work::Load(id, query)) = self.work.remove(nth) else { return Ok(()) };
        if self.fails() {
            return self.failed();
        }
        let loaded = self.store.load(&query).expect("the store is not poisoned");
        // Answers of the disk may overtake requests and each other, as between threads.
        let at = self.random.below(self.inputs.len() as u64 + 1) as usize;
        self.inputs.insert(at, Input::Loaded(id, loaded));
        Ok(())
    }

    fn fails(&mut self) -> bool {
        self.faults && self.random.one_in(150)
    }

    /// ENOSPC or EIO: poisons the store. The same process opens it again.
    fn failed(&mut self) -> Result<(), Broken> {
        self.tally.failures += 1;
        if planted!("poisoned-store-goes-on", true, false) {
            // The planted fault: the failure is only logged, and every commit is reported as done.
            self.inputs.extend(self.written.drain(..).map(Input::Committed));
            return Ok(());
        }
        self.store.poison();
        self.reopen(Some(self.shard.hand_over()))
    }

    /// Ends the process and starts the next one, possibly after the machine was down for a while.
    pub fn crash(&mut self) -> Result<(), Broken> {
        self.tally.crashes += 1;
        let down = if self.random.one_in(2) { 0 } else { self.random.length() };
        self.wall = (self.wall + down).min(Moment::MAX.millis());
        if self.random.one_in(4) {
            self.set_clock();
        }
        // A new process has a new steady clock and new agents.
        self.opened = Opened::Started;
        self.steady = self.random.below(1 << 30);
        self.reopen(None)
    }

    /// Opens the store again, in a new process unless a shard of this process has handed over.
    fn reopen(&mut self, before: Option<Handover>) -> Result<(), Broken> {
        let random = &mut self.random;
        self.store.crash(|| {
            random.pick(&[Survival::Whole, Survival::Whole, Survival::Torn, Survival::Lost])
        });
        self.work.clear();
        self.written.clear();
        self.inputs.clear();
        self.held.clear();
        let head = self.store.open().expect("a store in memory opens");
        self.epoch = head.epoch;
        self.tell(|| format!("opened anew with {head:?}"));
        let rows: Vec<_> =
            self.store.rows().map(|(place, record)| (place, record.clone())).collect();
        let how = (self.opened, before.is_some());
        self.ledger.reopened(&head.queues, &rows, how, (self.wall, self.steady))?;
        let now = (Moment::from_millis(self.wall), Steady::from_millis(self.steady));
        self.shard = Shard::open(head, self.limits, self.opened, now);
        before.into_iter().for_each(|before| self.shard.take_over(before));
        self.turn()?;
        // No time passes until the rows that are out are loaded. So each lease continues with the rest of its time.
        while self.shard.is_opening() {
            if self.faults && self.random.one_in(40) {
                return self.crash();
            }
            self.disk()?;
            self.turn()?;
        }
        // Processes the leases that ended while the process was down.
        self.turn()
    }

    /// Sets the wall clock.
    pub fn set_clock(&mut self) {
        self.tally.jumps += 1;
        let by = self.random.length();
        self.wall = match self.random.below(3) {
            0 => (self.wall + by).min(Moment::MAX.millis() / 2),
            _ => self.wall.saturating_sub(by),
        };
        // A runtime that watches the clock takes a turn when it is set.
        self.wake.0 = Some(Moment::ZERO);
    }

    /// Lets time pass. The runtime takes a turn whenever the shard requested one.
    pub fn pass(&mut self, span: u64) -> Result<(), Broken> {
        let mut left = span;
        for _ in 0..40 {
            let until =
                |at: Option<u64>, now: u64| at.map_or(u64::MAX, |at| at.saturating_sub(now));
            let wall = until(self.wake.0.map(Moment::millis), self.wall);
            let steady = until(self.wake.1.map(Steady::millis), self.steady);
            let step = left.min(wall).min(steady);
            self.wall += step;
            self.steady += step;
            self.tally.simulated += step;
            left -= step;
            if left == 0 && !self.is_due() {
                break;
            }
            self.turn()?;
            if self.random.one_in(2) {
                self.disk()?;
            }
        }
        Ok(())
    }

    /// Whether the runtime has a reason for a turn.
    fn is_due(&self) -> bool {
        let (wall, steady) = (Moment::from_millis(self.wall), Steady::from_millis(self.steady));
        self.wake.0.is_some_and(|at| at <= wall) || self.wake.1.is_some_and(|at| at <= steady)
    }

    /// Runs until nothing is left to do at this moment. Then the ledger checks everything.
    pub fn settle(&mut self) -> Result<(), Broken> {
        for _ in 0..100_000 {
            if !self.inputs.is_empty() || self.is_due() {
                self.turn()?;
            } else if self.is_busy() {
                self.disk()?;
            } else {
                return self.ledger.settled(self.store.rows(), (self.wall, self.steady));
            }
        }
        Err(Broken::new(
            "silence is free",
            format!("the shard is busy for ever at {} / {}", self.wall, self.steady),
        ))
    }
}
