//! Random sequences of calls, compared with a plain model: a list of operations that is searched linearly.

use std::collections::BTreeSet;

use crate::common::{Log, MS};
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::Watched;

struct Known {
    name: usize,
    keys: BTreeSet<u64>,
    flag: Flag,
    due: u32,
}

/// A handle, and how its operation ended: `None` while it waits, `Some(None)` if no end was reported.
type Handle = (Watched<Op>, Option<Option<End>>);

/// What must have ended, in this order where the order is defined.
#[derive(Default)]
struct Model {
    now: u32,
    waiting: Vec<Known>,
    /// All operations ever, indexed by name.
    handles: Vec<Handle>,
}

impl Model {
    /// Removes one operation, if it is waiting.
    fn take_one(&mut self, name: usize) -> Option<Known> {
        self.take(|op| op.name == name).pop()
    }

    fn ended(&mut self, ends: &[(usize, End)]) {
        ends.iter().for_each(|&(name, end)| self.handles[name].1 = Some(Some(end)));
    }

    /// Compares what the handle of an operation reports.
    fn look(&self, name: usize) {
        let (handle, ended) = &self.handles[name];
        let completed = *ended == Some(Some(End::Completed));
        assert_eq!((handle.is_over(), handle.is_completed()), (ended.is_some(), completed));
    }

    /// Removes the operations that match, in insertion order.
    fn take(&mut self, such: impl Fn(&Known) -> bool) -> Vec<Known> {
        let (taken, rest) = std::mem::take(&mut self.waiting).into_iter().partition(such);
        self.waiting = rest;
        taken
    }
}

#[test]
fn a_random_life_is_that_of_the_model() {
    for seed in 0..60 {
        life(seed);
    }
}

fn life(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (purgatory, timer, clock) = purgatory();
    let (log, mut model, mut names) = (Log::new(), Model::default(), 0);
    // A few keys give crowds, many keys give keys with one operation.
    let keys = if seed % 2 == 0 { 4 } else { 200 };
    for step in 0..2_000 {
        let key = rng.u64(0..keys);
        match rng.u32(0..100) {
            0..50 => {
                let own: BTreeSet<u64> = (0..rng.usize(1..6)).map(|_| rng.u64(0..keys)).collect();
                let (flag, after) = (Flag::new(), rng.u32(1..300));
                let op = Op::flagged(names, &flag, &log);
                let handle = purgatory.watch(op, own.clone(), MS * after).unwrap();
                model.handles.push((handle, None));
                let due = model.now + after;
                model.waiting.push(Known { name: names, keys: own, flag, due });
                names += 1;
            }
            50..56 if names > 0 => {
                let name = if rng.bool() { rng.usize(0..names) } else { names - 1 };
                let there = model.take_one(name).is_some();
                let handle = &model.handles[name].0;
                if rng.bool() {
                    assert_eq!(handle.complete(), there, "seed {seed}, step {step}");
                    assert_eq!(log.len(), usize::from(there));
                    model.ended(&log.take());
                } else {
                    // Its condition may be met: no thread has tried it.
                    let back = handle.cancel().map(|op| op.name);
                    assert_eq!(back, there.then_some(name), "seed {seed}, step {step}");
                    model.handles[name].1 = model.handles[name].1.or(Some(None));
                }
            }
            50..70 => {
                let ready = rng.u32(0..4);
                model.waiting.iter().filter(|_| rng.u32(0..4) < ready).for_each(|op| op.flag.set());
            }
            70..90 => {
                let expected = model.take(|op| op.keys.contains(&key) && op.flag.is_set());
                assert_eq!(purgatory.check(&key), expected.len(), "seed {seed}, step {step}");
                let expected: Vec<_> =
                    expected.iter().map(|op| (op.name, End::Completed)).collect();
                assert_eq!(log.take(), expected, "seed {seed}, step {step}");
                model.ended(&expected);
            }
            90..93 => {
                let expected = model.take(|op| op.keys.contains(&key));
                let back: Vec<usize> =
                    purgatory.cancel_key(&key).iter().map(|op| op.name).collect();
                let expected: Vec<usize> = expected.iter().map(|op| op.name).collect();
                assert_eq!(back, expected, "seed {seed}, step {step}");
                back.into_iter().for_each(|name| model.handles[name].1 = Some(None));
            }
            _ => {
                let by = rng.u32(1..40);
                clock.advance(MS * by).unwrap();
                model.now += by;
                let now = model.now;
                let mut expected: Vec<_> = model
                    .take(|op| op.due <= now)
                    .iter()
                    .map(|op| {
                        (op.name, if op.flag.is_set() { End::Completed } else { End::Expired })
                    })
                    .collect();
                let mut ended = log.take();
                ended.sort_by_key(|end| end.0);
                expected.sort_by_key(|end| end.0);
                assert_eq!(ended, expected, "seed {seed}, step {step}");
                model.ended(&ended);
            }
        }
        if names > 0 {
            model.look(rng.usize(0..names));
        }
        let watched: usize = model.waiting.iter().map(|op| op.keys.len()).sum();
        assert_eq!(purgatory.watched(), watched, "seed {seed}, step {step}");
        assert_eq!(purgatory.delayed(), model.waiting.len(), "seed {seed}, step {step}");
        assert_eq!(timer.len(), model.waiting.len(), "seed {seed}, step {step}");
    }
    let stopped: Vec<usize> = purgatory.stop().iter().map(|op| op.name).collect();
    assert_eq!(stopped.len(), model.waiting.len());
    stopped.into_iter().for_each(|name| model.handles[name].1 = Some(None));
    (0..names).for_each(|name| model.look(name));
    assert!(
        model.handles.iter().all(|(handle, _)| !handle.complete() && handle.cancel().is_none())
    );
    is_empty(&purgatory, &timer);
}
