//! Random scenarios, small and at the edges: the real runner against the slow reference.
//!
//! Under each of the three drives, every line must be one that the reference allows at that point. A second run then
//! checks every expectation that the reference has filled in.

mod reference;

use std::num::NonZeroU64;

use fastrand::Rng;
use tourbillon_cli::replay::{JsonLines, Outcome, run};
use tourbillon_cli::scenario::{
    Callback, Drive, Expect, Id, Kind, Scenario, Schedule, Step, WheelSpec, When,
};

/// Covers every rule many times, in a few seconds at most without optimisation.
const SCENARIOS: u64 = 4_000;

#[test]
fn the_runner_agrees_with_the_reference() {
    let seeds = match std::env::var("TOURBILLON_SEED") {
        Ok(seed) => {
            let seed: u64 = seed.parse().expect("TOURBILLON_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..SCENARIOS,
    };
    for seed in seeds {
        let mut scenario = Generator::new(seed).scenario();
        for drive in Drive::ALL {
            scenario.drive = drive;
            let told = std::panic::catch_unwind(|| check(&scenario));
            assert!(told.is_ok(), "TOURBILLON_SEED={seed}, driven by {drive:?}:\n{scenario:?}");
        }
    }
}

fn check(scenario: &Scenario) {
    let (outcome, lines) = play(scenario);
    assert_eq!(outcome, Outcome::Passed);
    let filled = reference::follow(scenario, &lines);
    let (outcome, lines) = play(&filled);
    assert_eq!(outcome, Outcome::Passed, "{}", lines.last().unwrap());
}

fn play(scenario: &Scenario) -> (Outcome, Vec<String>) {
    let mut lines = JsonLines(Vec::new());
    let outcome = run(scenario, &mut lines).unwrap();
    (outcome, String::from_utf8(lines.0).unwrap().lines().map(str::to_owned).collect())
}

struct Generator {
    rng: Rng,
    wheel: WheelSpec,
    /// An estimate of the clock: the target of the latest advance.
    clock: u64,
    /// With a budget the engine chooses which timers of a tick share a pass. A callback that cancels or moves another
    /// timer would then have more than one correct outcome, so there are none.
    peaceful: bool,
    /// Repeating timers would fire forever after a move far into the past, or in a callback into the past at all, so
    /// there are no such moves.
    repeats: bool,
    names: u32,
}

impl Generator {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let kind = if rng.u8(..3) == 0 { Kind::Hashed } else { Kind::Hierarchical };
        let slots = match kind {
            Kind::Hashed => vec![rng.u32(1..=9)],
            Kind::Hierarchical => (0..rng.usize(1..=3)).map(|_| rng.u32(2..=6)).collect(),
        };
        let tick = NonZeroU64::new([1, 1, 1, 2, 3, 10][rng.usize(..6)]).unwrap();
        let start = match rng.u8(..6) {
            0 => u64::MAX - rng.u64(..400),
            1 => rng.u64(..1000),
            2 => (1 << 36) - rng.u64(..20),
            _ => 0,
        };
        let wheel = WheelSpec { kind, tick, slots, start };
        let peaceful = rng.u8(..4) == 0;
        let repeats = rng.bool();
        Generator { rng, clock: start, wheel, peaceful, repeats, names: 0 }
    }

    fn scenario(mut self) -> Scenario {
        let limit = (self.rng.u8(..4) == 0).then(|| self.small(6));
        let budget = self.peaceful.then(|| self.small(4));
        let count = self.rng.usize(3..25);
        let mut steps = Vec::new();
        for _ in 0..count {
            let step = match self.rng.u8(..30) {
                0..=8 => {
                    let to = self.moment();
                    self.clock = self.clock.max(to);
                    Step::Advance(to)
                }
                9..=11 => Step::Expect(Box::new(Expect { checks: Vec::new() })),
                12 if self.rng.u8(..4) == 0 => Step::Stop,
                _ => self.verb(0),
            };
            steps.push(step);
        }
        let last = self.clock.saturating_add(self.rng.u64(..300));
        steps.extend([Step::Advance(last), Step::Expect(Box::new(Expect { checks: Vec::new() }))]);
        let ids = (0..self.names).map(|i| format!("t{i}")).collect();
        let (name, wheel) = ("random".into(), self.wheel);
        Scenario { name, about: None, wheel, drive: Drive::Due, limit, budget, steps, ids }
    }

    /// A step that is also allowed in a callback.
    fn verb(&mut self, depth: usize) -> Step {
        let tame = depth > 0 && self.peaceful;
        match self.rng.u8(..10) {
            0..=1 if !tame => Step::Cancel(self.someone()),
            2 if !tame => {
                let when = match self.repeats {
                    // At the end of time a positive delay is clamped to the present.
                    true if depth > 0 && self.clock > u64::MAX / 2 => {
                        return Step::Cancel(self.someone());
                    }
                    true if depth > 0 => When::Delay(i128::from(self.span()) + 1),
                    true => self.recent(),
                    false => self.when(),
                };
                Step::Reschedule(self.someone(), when)
            }
            3 if !tame && depth > 0 && self.rng.u8(..6) == 0 => Step::Stop,
            _ => Step::Schedule(self.schedule(depth).into()),
        }
    }

    /// Names are never reused, so that no pending timer is scheduled again. For the same reason a timer whose callback
    /// schedules does not repeat.
    fn schedule(&mut self, depth: usize) -> Schedule {
        let id = Id(self.names);
        self.names += 1;
        let mut steps = Vec::new();
        if depth < 3 && self.rng.u8(..3) == 0 {
            let count = self.rng.usize(1..=3);
            steps.extend((0..count).map(|_| self.verb(depth + 1)));
        }
        let schedules = steps.iter().any(|step| matches!(step, Step::Schedule(_)));
        let repeats = self.repeats && depth == 0 && !schedules && self.rng.bool();
        let every = repeats.then(|| self.small(40));
        let when = if repeats { self.recent() } else { self.when() };
        let then =
            (!steps.is_empty()).then(|| Box::new(Callback { place: "somewhere".into(), steps }));
        Schedule { id, when, every, then }
    }

    /// A deadline that is not far in the past.
    fn recent(&mut self) -> When {
        match self.when() {
            When::At(time) => When::At(time.max(self.clock.saturating_sub(30))),
            When::Delay(delay) => When::Delay(delay.max(-30)),
        }
    }

    fn when(&mut self) -> When {
        if self.rng.bool() {
            return When::At(self.moment());
        }
        match self.rng.u8(..12) {
            0 => When::Delay(i128::from(u64::MAX)),
            1 => When::Delay(-i128::from(u64::MAX)),
            2 => When::Delay(0),
            3 => When::Delay(-i128::from(self.rng.u64(..30))),
            _ => When::Delay(self.span().into()),
        }
    }

    /// A moment that is near, or a span away, or in the past, or the end of time.
    fn moment(&mut self) -> u64 {
        match self.rng.u8(..12) {
            0 => self.clock.saturating_sub(self.rng.u64(..20)),
            1 => self.clock,
            _ => self.clock.saturating_add(self.span()),
        }
    }

    /// A length of time near the edges of the levels, small enough for the reference to walk.
    fn span(&mut self) -> u64 {
        let slots =
            |level: usize| u64::from(self.wheel.slots[level.min(self.wheel.slots.len() - 1)]);
        let level = self.rng.usize(..4);
        let ticks: u64 = (0..level).map(slots).product();
        let many = ticks.min(300) * self.rng.u64(1..=3);
        let near = (many + self.rng.u64(..5)).saturating_sub(2);
        near * self.wheel.tick.get() + self.rng.u64(..self.wheel.tick.get())
    }

    fn someone(&mut self) -> Id {
        self.names = self.names.max(1);
        Id(self.rng.u32(..self.names))
    }

    fn small(&mut self, most: u64) -> NonZeroU64 {
        NonZeroU64::new(self.rng.u64(1..=most)).unwrap()
    }
}
