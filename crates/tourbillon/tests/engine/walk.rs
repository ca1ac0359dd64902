//! Random calls compared with a model of a few lines: any order of the verbs, by handles and by keys, outside callbacks
//! and inside, up to the stop.

use std::collections::VecDeque;

use fastrand::Rng;
use tourbillon::{Context, Key, Repeat, State, Timeout, Timer, VirtualClock};

use crate::common::{Log, MS, accounted, case, panic_quietly};

/// What a run does. The last run of a timer may do any of them except the first.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Again(u32),
    End,
    Panic,
    CancelByKey,
    CancelByHandle,
}

struct Known {
    key: Key,
    handle: Option<Timeout>,
    due: u32,
    state: State,
    /// Whether a run can cancel it.
    repeats: bool,
    acts: VecDeque<Act>,
}

struct World {
    timer: Timer,
    clock: VirtualClock,
    random: Rng,
    /// When each of them has run.
    log: Log<(u32, usize)>,
    known: Vec<Known>,
    now: u32,
}

impl World {
    fn some(&mut self) -> u32 {
        let most = [2, 20, 300, 100_000][self.random.usize(0..4)];
        self.random.u32(0..most)
    }

    fn ends(&mut self) -> Act {
        [Act::End, Act::Panic, Act::CancelByKey, Act::CancelByHandle][self.random.usize(0..4)]
    }

    /// Arms a timer of this kind.
    fn add(&mut self, kind: u32) {
        let (after, period, repeats) = (self.some(), 1 + self.some(), kind > 1);
        let mut acts = VecDeque::new();
        if repeats {
            // A timer with a fixed period has the same pause each time.
            let runs = self.random.u32(0..5);
            let pauses = (0..runs).map(|_| if kind == 2 { 1 + self.some() } else { period });
            acts.extend(pauses.map(Act::Again).collect::<Vec<_>>());
        }
        acts.push_back(match self.ends() {
            // A timer with a fixed period has no last run, and one that was armed by key has no handle.
            Act::End if kind == 3 => Act::CancelByKey,
            Act::CancelByHandle if kind == 0 => Act::CancelByKey,
            end => end,
        });
        let (log, clock, id) = (self.log.clone(), self.clock.clone(), self.known.len());
        let mut own = acts.clone();
        let run = move |context: &Context<'_>| {
            log.add((clock.elapsed().as_millis() as u32, id));
            match own.pop_front().expect("one more run") {
                Act::Again(after) if kind == 2 => assert!(context.again(MS * after)),
                Act::Again(_) | Act::End => {}
                Act::Panic => panic_quietly(),
                Act::CancelByKey => {
                    assert_eq!(context.again(MS), repeats);
                    assert_eq!(context.timer().cancel(context.key()), repeats);
                }
                Act::CancelByHandle => {
                    assert_eq!(context.timeout().unwrap().cancel(), repeats);
                    assert!(!context.timer().cancel(context.key()), "once");
                }
            }
        };
        let after = MS * after;
        let (key, handle) = match kind {
            0 => (self.timer.arm(after, run_once(run)).unwrap(), None),
            1 => with_key(self.timer.schedule(after, run_once(run)).unwrap()),
            2 => with_key(self.timer.schedule_repeating(after, run).unwrap()),
            _ => {
                let repeat = Repeat::every(MS * period).first(after);
                with_key(self.timer.repeat(repeat, run).unwrap())
            }
        };
        let due = self.now + after.as_millis() as u32;
        self.known.push(Known { key, handle, due, state: State::Pending, repeats, acts });
    }

    fn cancel(&mut self, by_key: bool, which: usize) {
        let known = &mut self.known[which];
        let was_pending = known.state == State::Pending;
        let cancelled = match &known.handle {
            Some(handle) if !by_key => handle.cancel(),
            _ => self.timer.cancel(known.key),
        };
        assert_eq!(cancelled, was_pending);
        if was_pending {
            known.state = State::Cancelled;
        }
    }

    fn reschedule(&mut self, by_key: bool, which: usize) {
        let after = self.some();
        let known = &mut self.known[which];
        let moved = match &known.handle {
            Some(handle) if !by_key => handle.reschedule(MS * after).is_ok(),
            _ => self.timer.reschedule(known.key, MS * after).is_ok(),
        };
        assert_eq!(moved, known.state == State::Pending);
        if moved {
            known.due = self.now + after;
        }
    }

    fn advance(&mut self) {
        let end = self.now + self.some();
        let mut expected = Vec::new();
        loop {
            let pending = self.known.iter_mut().enumerate();
            let pending = pending.filter(|(_, known)| known.state == State::Pending);
            let Some((id, known)) = pending.min_by_key(|(_, known)| known.due) else { break };
            if known.due > end {
                break;
            }
            expected.push((known.due, id));
            match known.acts.pop_front().expect("it would have ended") {
                Act::Again(after) => known.due += after,
                Act::CancelByKey | Act::CancelByHandle if known.repeats => {
                    known.state = State::Cancelled;
                }
                _ => known.state = State::Fired,
            }
        }
        self.clock.advance(MS * (end - self.now)).unwrap();
        self.now = end;
        let mut ran = self.log.take();
        ran.sort_unstable();
        expected.sort_unstable();
        assert_eq!(ran, expected);
    }

    /// Compares all queries about one timer.
    fn look(&self, which: usize) {
        let Known { key, handle, due, state, .. } = &self.known[which];
        let begin = self.clock.now() - self.clock.elapsed();
        let deadline = (*state == State::Pending).then(|| begin + MS * *due);
        assert_eq!(self.timer.deadline(*key), deadline);
        assert_eq!(self.timer.is_pending(*key), deadline.is_some());
        if let Some(handle) = handle {
            assert_eq!((handle.state(), handle.deadline()), (*state, deadline));
            let left = deadline.map(|at| at.saturating_duration_since(self.clock.now()));
            assert_eq!(handle.remaining(), left);
            assert!(handle.has_started() || *state != State::Fired);
            assert_eq!(handle.key(), *key);
        }
    }

    fn step(&mut self) {
        let by_key = self.random.bool();
        let which = self.random.usize(0..self.known.len().max(1));
        match self.random.u32(0..100) {
            0..30 => {
                let kind = self.random.u32(0..4);
                self.add(kind);
            }
            _ if self.known.is_empty() => {}
            30..45 => self.cancel(by_key, which),
            45..60 => self.reschedule(by_key, which),
            60..65 => self.known[which].handle = None,
            65..70 => {
                let handle = self.known[which].handle.clone();
                self.known[which].handle = handle;
            }
            _ => self.advance(),
        }
        if !self.known.is_empty() {
            let which = self.random.usize(0..self.known.len());
            self.look(which);
        }
        let pending = |known: &&Known| known.state == State::Pending;
        assert_eq!(self.timer.len(), self.known.iter().filter(pending).count());
    }
}

fn with_key(handle: Timeout) -> (Key, Option<Timeout>) {
    (handle.key(), Some(handle))
}

fn run_once(
    mut run: impl FnMut(&Context<'_>) + Send + 'static,
) -> impl FnOnce(&Context<'_>) + Send {
    move |context| run(context)
}

#[test]
fn a_random_life_of_a_timer_is_that_of_the_model() {
    for seed in 0..40 {
        for shards in [1, 3] {
            case(format!("seed {seed}, shards: {shards}"), move || {
                let clock = VirtualClock::new();
                let builder = Timer::builder().clock(&clock).shards(shards).on_driver();
                let (timer, random) = (builder.build().unwrap(), Rng::with_seed(seed));
                let (log, known) = (Log::new(), Vec::new());
                let mut world = World { timer, clock, random, log, known, now: 0 };
                (0..600).for_each(|_| world.step());
                accounted(&world.timer);
                let mut unfired: Vec<Key> =
                    world.timer.stop().iter().map(tourbillon::Unfired::key).collect();
                for known in world.known.iter_mut().filter(|it| it.state == State::Pending) {
                    let place = unfired.iter().position(|key| *key == known.key);
                    unfired.swap_remove(place.expect("it is handed back"));
                    known.state = State::HandedBack;
                }
                assert!(unfired.is_empty(), "and nothing else");
                (0..world.known.len()).for_each(|which| world.look(which));
                accounted(&world.timer);
            });
        }
    }
}
