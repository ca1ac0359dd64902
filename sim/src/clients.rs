//! Clients: random requests, biased to what may go wrong. There are few keys, so that requests collide.

use std::sync::Arc;

use tourbillon_durable::shard::{
    Change, Conflict, Filter, NewTimer, Request, RequestId, State, Token, Verdict, When,
};
use tourbillon_durable::values::{
    Generation, Key, Missed, Moment, Payload, QueueName, Recurrence, Retry, Rhythm, Secret, Span,
    Webhook,
};

use crate::ledger::CRONS;
use crate::random::Random;
use crate::world::World;

/// The simulated clients.
#[derive(Default)]
pub struct Clients {
    /// Polls that may still be in progress. Those of agents have no queue.
    polls: Vec<(Option<QueueName>, RequestId)>,
    payload: u64,
}

/// The queues. One name is a prefix of the other.
pub fn queues() -> [QueueName; 2] {
    ["q", "q.1"].map(|name| QueueName::new(name).expect("a name"))
}

impl Clients {
    /// Sends one random request.
    pub fn ask(&mut self, world: &mut World) {
        let queue = queues()[world.random.below(2) as usize].clone();
        let request = match world.random.below(25) {
            24 => match world.random.below(8) {
                0 => Request::Clear(queue),
                1 => Request::Delete { queue, force: world.random.one_in(2) },
                _ => Request::Stats(queue),
            },
            0..=7 => self.schedule(world, queue),
            8 | 9 => {
                let keys = some_keys(world, &queue);
                let only = world.random.one_in(4).then(|| some_generation(world, &queue, &keys[0]));
                Request::Cancel { queue, keys, only }
            }
            10 => {
                let (when, key) = (when(&mut world.random, world.wall), some_key(world, &queue));
                let only = world.random.one_in(4).then(|| some_generation(world, &queue, &key));
                Request::Move { key, queue, when, only }
            }
            11 => Request::Run { key: some_key(world, &queue), queue },
            12 => Request::Get { key: some_key(world, &queue), queue },
            13..=15 => return self.receive(world, Some(queue)),
            16 => return self.receive(world, None),
            17..=20 => settle(world, queue),
            21 => match self.polls.pop() {
                Some((queue, poll)) => Request::Leave(queue, poll),
                None => Request::Stats(queue),
            },
            22 => set(&mut world.random, queue),
            _ => Request::Forecast { edges: edges(&mut world.random, world.wall), queue },
        };
        world.ask(request);
    }

    fn receive(&mut self, world: &mut World, queue: Option<QueueName>) {
        let random = &mut world.random;
        let wait = Span::from_millis(random.pick(&[0, 0, 1000, 20_000, 60_000]));
        let lease = Span::from_millis(random.pick(&[1000, 1000, 30_000, 60_000, 43_200_000]));
        let max = random.pick(&[1, 1, 2, 10, 1000]);
        let margin = Span::from_millis(random.pick(&[0, 1000, 5000]));
        let id = world.ask(match queue.clone() {
            Some(queue) => Request::Receive { queue, max, wait, lease },
            None => Request::Push { max, wait, margin },
        });
        self.polls.push((queue, id));
    }

    fn schedule(&mut self, world: &mut World, queue: QueueName) -> Request {
        if world.random.one_in(8) {
            return self.schedule_only(world, queue);
        }
        let random = &mut world.random;
        let conflict =
            random.pick(&[Conflict::Refuse, Conflict::Refuse, Conflict::Keep, Conflict::Replace]);
        let count = if random.one_in(4) { 1 + random.below(12) } else { 1 };
        let mut timers: Vec<NewTimer> =
            (0..count).map(|_| self.timer(&mut world.random, world.wall)).collect();
        let mut seen = Vec::new();
        // A key that occurs twice makes the shard refuse the whole request, which tests little.
        timers.retain(|timer| {
            timer.key.as_ref().is_none_or(|key| {
                !seen.contains(key) && {
                    seen.push(key.clone());
                    true
                }
            })
        });
        Request::Schedule { queue, timers, conflict }
    }

    /// A timer for a known key, possibly an assigned one. Its request may have a condition.
    fn schedule_only(&mut self, world: &mut World, queue: QueueName) -> Request {
        let key = some_key(world, &queue);
        let only = Conflict::ReplaceOnly(some_generation(world, &queue, &key));
        let conflict = world.random.pick(&[only, only, Conflict::Replace, Conflict::Keep]);
        let timer = self.timer(&mut world.random, world.wall);
        Request::Schedule { queue, timers: vec![NewTimer { key: Some(key), ..timer }], conflict }
    }

    fn timer(&mut self, random: &mut Random, wall: u64) -> NewTimer {
        self.payload += 1;
        let recurrence = random.one_in(4).then(|| recurrence(random, wall));
        let when = match &recurrence {
            Some(_) if random.one_in(2) => When::Rhythm,
            _ => when(random, wall),
        };
        let key = (!random.one_in(3))
            .then(|| Key::chosen(&format!("k{}", random.below(10))).expect("a key"));
        let retry = random.one_in(2).then(|| Retry {
            attempts: random.pick(&[1, 1, 2, 3]),
            first: Span::from_millis(random.pick(&[0, 1, 1000, 60_000])),
            ..Retry::default()
        });
        // Recurring timers rarely have an expiry, because one that expires repeatedly takes many turns.
        let recurring = if recurrence.is_some() { 6 } else { 0 };
        let remember =
            random.one_in(2).then(|| Span::from_millis(random.pick(&[0, 1000, 60_000, 3_600_000])));
        NewTimer {
            key,
            when,
            payload: match random.one_in(2) {
                true => Payload::bytes(self.payload.to_le_bytes()),
                false => Payload::json(self.payload.to_string()),
            },
            recurrence,
            remember,
            retry,
            expires: (recurring < random.below(8) && random.one_in(5))
                .then(|| Span::from_millis(random.pick(&[0, 1000, 60_000, 3_600_000]))),
            webhook: random.one_in(2).then(|| random.one_in(2).then(|| webhook(random))),
        }
    }
}

/// A random webhook. Its URL and header distinguish it from others.
fn webhook(random: &mut Random) -> Arc<Webhook> {
    let number = random.below(1000).to_string();
    let mut webhook = Webhook::new(format!("https://example.com/{number}")).expect("an address");
    webhook.headers.push(("x-number".into(), Secret::new(number)));
    webhook.timeout = Span::from_millis(random.pick(&[1000, 10_000, 60_000]));
    Arc::new(webhook)
}

fn recurrence(random: &mut Random, wall: u64) -> Recurrence {
    let rhythm = if random.one_in(10) {
        Rhythm::cron(random.pick(&CRONS).0, "UTC").expect("an expression")
    } else {
        let period = random.pick(&[1000, 1500, 60_000, 3_600_000, 86_400_000]);
        Rhythm::every(Span::from_millis(period)).expect("a period")
    };
    Recurrence {
        rhythm,
        missed: random.pick(&[Missed::Skip, Missed::Once, Missed::All]),
        until: random.one_in(4).then(|| random.moment(wall)),
        times: random.one_in(4).then(|| 1 + random.below(4)),
    }
}

fn when(random: &mut Random, wall: u64) -> When {
    if random.one_in(2) {
        When::In(Span::from_millis(random.length()))
    } else {
        When::At(random.moment(wall))
    }
}

fn set(random: &mut Random, queue: QueueName) -> Request {
    let span = Span::from_millis;
    let change = Change {
        paused: random.one_in(2).then(|| random.one_in(3)),
        remember: random.one_in(2).then(|| span(random.pick(&[0, 10_000, 600_000]))),
        dead_keep: random.one_in(2).then(|| span(random.pick(&[0, 60_000, 2_592_000_000]))),
        rate: random.one_in(2).then(|| random.pick(&[None, None, Some(1), Some(3)])),
        concurrency: random.one_in(2).then(|| random.pick(&[None, None, Some(1), Some(3)])),
        retry: None,
        webhook: random.one_in(2).then(|| random.one_in(2).then(|| webhook(random))),
    };
    Request::Set { queue, change }
}

/// A random filter of a list.
pub fn filter(random: &mut Random, wall: u64) -> Filter {
    use State::{Cancelled, Dead, Delivering, Done, Due, Scheduled};
    let states = [Scheduled, Due, Delivering, Dead, Done, Cancelled];
    let mut filter = Filter {
        state: random.one_in(2).then(|| random.pick(&states)),
        prefix: random.one_in(3).then(|| random.pick(&["k", "k1", "k9", "~", ""]).to_owned()),
        ..Filter::default()
    };
    if random.one_in(2) {
        (filter.from, filter.to) = (random.moment(wall), random.moment(wall));
    }
    filter
}

/// Two to four ordered edges, from the past to the far future.
pub fn edges(random: &mut Random, wall: u64) -> Vec<Moment> {
    let count = 2 + random.below(3);
    let mut edges: Vec<Moment> = (0..count).map(|_| random.moment(wall)).collect();
    edges.sort();
    edges
}

/// A known key, or one that may be unknown.
fn some_key(world: &mut World, queue: &QueueName) -> Key {
    let known: Vec<Key> = world
        .ledger
        .keys()
        .into_iter()
        .filter(|name| name.0 == *queue)
        .map(|name| name.1)
        .collect();
    if known.is_empty() || world.random.one_in(6) {
        return Key::new(&format!("k{}", world.random.below(10))).expect("a key");
    }
    known[world.random.below(known.len() as u64) as usize].clone()
}

/// The generation of the timer under a key, or the next one.
fn some_generation(world: &mut World, queue: &QueueName, key: &Key) -> Generation {
    let known = world.ledger.generation(queue, key).unwrap_or_default();
    Generation(known.0 + u64::from(world.random.one_in(4)))
}

fn some_keys(world: &mut World, queue: &QueueName) -> Vec<Key> {
    let count = 1 + world.random.below(3);
    let mut keys: Vec<Key> = (0..count).map(|_| some_key(world, queue)).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Settles deliveries that clients hold. Sometimes uses a token that never existed.
fn settle(world: &mut World, queue: QueueName) -> Request {
    let held = world.ledger.held();
    let mut tokens: Vec<Token> =
        held.into_iter().filter(|(of, _)| *of == queue).map(|(_, token)| token).collect();
    let random = &mut world.random;
    tokens.retain(|_| random.one_in(2));
    if let Some(token) = tokens.first_mut().filter(|_| random.one_in(8)) {
        token.attempt += 1;
    }
    let verdict = match random.below(9) {
        0..=3 => Verdict::Ack,
        4 => Verdict::Nack(None, Some("no".into())),
        5 => Verdict::Nack(Some(Span::from_millis(random.length())), None),
        6 => Verdict::GiveUp(Some("gone".into())),
        7 => Verdict::Extend(Span::from_millis(random.pick(&[1000, 30_000, 3_600_000]))),
        _ => Verdict::Release(Span::from_millis(random.pick(&[0, 0, 1, 5000, 600_000]))),
    };
    Request::Settle { queue, tokens, verdict }
}
