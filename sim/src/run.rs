//! Runs: one seed, many seeds, and shortening a failing run.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tourbillon_durable::shard::{Change, Request, Verdict};
use tourbillon_durable::store::Settings;
use tourbillon_durable::values::{Moment, Span};

use crate::clients::{Clients, edges, filter, queues};
use crate::ledger::{Broken, promise};
use crate::world::{Tally, World};

/// The number of steps before a run is completed.
pub const STEPS: u64 = 400;

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The steps that it took.
    pub steps: u64,
    /// The broken promise.
    pub broken: Broken,
}

/// Runs a seed for `steps` steps, then completes the run: all timers end.
pub fn run(seed: u64, steps: u64) -> (Tally, Option<Failure>) {
    run_world(World::new(seed), seed, steps)
}

/// As [`run`], printing every step to standard error.
pub fn trace(seed: u64, steps: u64) {
    let mut world = World::new(seed);
    world.trace = true;
    run_world(world, seed, steps);
}

fn run_world(mut world: World, seed: u64, steps: u64) -> (Tally, Option<Failure>) {
    let mut taken = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut clients = Clients::default();
        while taken < steps {
            taken += 1;
            step(&mut world, &mut clients)?;
        }
        finish(&mut world)
    }));
    let broken = match outcome {
        Ok(outcome) => outcome.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Some(Broken::new("nothing panics", text.unwrap_or_default()))
        }
    };
    (world.tally, broken.map(|broken| Failure { seed, steps: taken, broken }))
}

/// Shortens a failure to fewer steps of its seed, followed by the completion of the run.
pub fn shrink(failure: Failure) -> Failure {
    let (mut low, mut best) = (0, failure);
    // Bisection does not always find the shortest prefix: a longer one may pass where a shorter one fails.
    while low < best.steps {
        let middle = low + (best.steps - low) / 2;
        match run(best.seed, middle).1 {
            Some(shorter) => best = Failure { steps: middle.min(shorter.steps), ..shorter },
            None => low = middle + 1,
        }
    }
    best
}

fn step(world: &mut World, clients: &mut Clients) -> Result<(), Broken> {
    match world.random.below(100) {
        0..=29 => {
            clients.ask(world);
            Ok(())
        }
        30..=49 => world.turn(),
        50..=76 => world.disk(),
        77..=86 => {
            let span = span(world);
            world.pass(span)
        }
        87..=89 => {
            world.set_clock();
            Ok(())
        }
        90 | 91 => world.crash(),
        92..=94 => many(world),
        _ => look(world),
    }
}

/// A span in which nothing happens. Often it ends when a timer is due, or one millisecond earlier.
fn span(world: &mut World) -> u64 {
    let wall = world.wall;
    let coming = world.ledger.living().into_iter().map(|living| living.3);
    let mut coming: Vec<u64> =
        coming.filter(|&next| next > wall && next < wall + 200_000_000).collect();
    coming.sort_unstable();
    match world.random.below(3) {
        0 => world.random.length(),
        _ if coming.is_empty() => world.random.below(5000),
        _ => {
            let nth = world.random.below(coming.len().min(3) as u64) as usize;
            coming[nth] - wall - world.random.below(2)
        }
    }
}

/// Runs until the shard is idle, then checks the counts and forecasts of every queue.
fn look(world: &mut World) -> Result<(), Broken> {
    world.settle()?;
    world.ledger.quiet = true;
    world.ask(Request::Queues);
    for queue in queues() {
        world.ask(Request::Queue(queue.clone()));
        world.ask(Request::Stats(queue.clone()));
        let edges = edges(&mut world.random, world.wall);
        world.ask(Request::Forecast { queue, edges });
    }
    let looked = world.settle();
    world.ledger.quiet = false;
    looked
}

/// One bulk operation on an otherwise idle shard.
///
/// Lists a queue page by page, cancels by prefix, redrives dead timers, or clears or deletes the queue.
fn many(world: &mut World) -> Result<(), Broken> {
    world.settle()?;
    let queue = queues()[world.random.below(2) as usize].clone();
    let opened = world.ledger.opened;
    let prefix = world.random.pick(&["k", "k1", "k9", "~", ""]).to_owned();
    match world.random.below(8) {
        2 if world.ledger.is_sure(&queue) => {
            let force = world.random.one_in(2);
            let delete = Request::Delete { queue: queue.clone(), force };
            let request = if world.random.one_in(2) { delete } else { Request::Clear(queue) };
            world.ledger.quiet = true;
            world.ask(request);
            world.ledger.quiet = false;
            return world.settle();
        }
        0 if world.ledger.is_sure(&queue) => {
            world.ask(Request::CancelPrefix { queue, prefix });
            return world.settle();
        }
        1 if world.ledger.is_sure(&queue) => {
            let prefix = world.random.one_in(2).then_some(prefix);
            world.ask(Request::Redrive { queue, prefix });
            return world.settle();
        }
        _ => {}
    }
    let (filter, mut after) = (filter(&mut world.random, world.wall), None);
    let limit = world.random.pick(&[1, 2, 3, 100]);
    for _ in 0..1000 {
        let page = Request::List { queue: queue.clone(), filter: filter.clone(), after, limit };
        world.ask(page);
        world.settle()?;
        // A disk failure during the list has lost a page.
        if world.ledger.opened != opened {
            return Ok(());
        }
        after = world.ledger.cursor();
        if after.is_none() {
            return world.ledger.listed(&queue, &filter);
        }
    }
    Err(Broken::new(promise::TRUE, format!("a list of {queue} does not end")))
}

/// Completes a run: no more faults, and every timer is delivered and acknowledged until none is left.
fn finish(world: &mut World) -> Result<(), Broken> {
    world.faults = false;
    for queue in queues() {
        let Settings { paused, retry, remember, dead_keep, rate, concurrency, webhook } =
            Settings::default();
        let change = Change {
            paused: Some(paused),
            retry: Some(retry.into()),
            remember: Some(remember),
            dead_keep: Some(dead_keep),
            rate: Some(rate),
            concurrency: Some(concurrency),
            webhook: Some(webhook),
        };
        world.ask(Request::Set { queue, change });
    }
    world.settle()?;
    for (queue, key, recurring, next) in world.ledger.living() {
        // Recurring timers, and those near the end of time, are cancelled: the simulation never reaches it.
        if recurring || next > Moment::MAX.millis() - 86_400_000 {
            world.ask(Request::Cancel { queue, keys: vec![key], only: None });
        }
    }
    look(world)?;
    for round in 0..400 {
        let living = world.ledger.living();
        let Some(next) = living.iter().map(|living| living.3).min() else { return look(world) };
        for queue in queues() {
            let (wait, lease) = (Span::ZERO, Span::from_secs(30));
            world.ask(Request::Receive { queue, max: 1000, wait, lease });
        }
        world.ask(Request::Push { max: 1000, wait: Span::ZERO, margin: Span::from_secs(5) });
        world.settle()?;
        let held = world.ledger.held();
        for queue in queues() {
            let tokens =
                held.iter().filter(|held| held.0 == queue).map(|held| held.1.clone()).collect();
            world.ask(Request::Settle { queue, tokens, verdict: Verdict::Ack });
        }
        look(world)?;
        // Advances to the next timer, or past the leases of takers that are gone, which may be long.
        let patience = 2000 * (1 + round * round);
        world.pass(next.saturating_sub(world.wall).clamp(patience, Moment::MAX.millis()))?;
    }
    let left = world.ledger.living();
    Err(Broken::new(promise::ONCE, format!("never delivered: {left:?}")))
}
