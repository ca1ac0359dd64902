//! A slow reference runner: a plain list of timers, and a clock that walks every tick.
//!
//! It shares only the scenario with the real runner, and has no wheel: places follow the two formulas of the format.
//! Where the engine has a choice (the order within one tick, the order of cascades) it reads the engine's next line,
//! checks that the choice is allowed, and follows it. So it can predict every line.

use std::collections::HashSet;

use tourbillon_cli::scenario::{Check, Drive, Expect, Id, Kind, Scenario, Schedule, Step, When};

/// Walks a scenario beside the lines that the engine printed, and panics at the first wrong one. Returns the scenario
/// with every `expect` filled in with everything that must hold there.
pub(crate) fn follow(scenario: &Scenario, lines: &[String]) -> Scenario {
    let reschedules = uses(&scenario.steps, |step| matches!(step, Step::Reschedule(..)));
    let cancels = uses(&scenario.steps, |step| matches!(step, Step::Cancel(_)));
    let exact_cascades = scenario.drive != Drive::Due && !reschedules;
    let exact_wakes = match (scenario.drive, scenario.wheel.kind) {
        (Drive::Bucket, Kind::Hierarchical) => !reschedules && !cancels,
        _ => true,
    };
    let lines =
        lines.iter().filter(|line| exact_cascades || !line.contains(r#""event":"cascaded""#));
    let mut reference = Reference {
        scenario,
        lines: lines.cloned().collect(),
        next: 0,
        exact_cascades,
        clock: scenario.wheel.start,
        stopped: false,
        timers: Vec::new(),
        scheduled: 0,
        totals: [0; 4],
    };
    reference.steps(exact_wakes)
}

fn uses(steps: &[Step], what: fn(&Step) -> bool) -> bool {
    steps.iter().any(|step| {
        let inside = match step {
            Step::Schedule(schedule) => {
                schedule.then.as_ref().is_some_and(|then| uses(&then.steps, what))
            }
            _ => false,
        };
        what(step) || inside
    })
}

#[derive(Clone)]
struct Timer<'s> {
    id: Id,
    /// Wider than a clock: the next deadline of a repeating timer may lie past the end of time.
    due: u128,
    due_tick: u128,
    order: usize,
    schedule: &'s Schedule,
    place: Place,
    rounds: u128,
    moved: bool,
    /// Armed after the current pass began.
    new: bool,
}

#[derive(Clone, PartialEq)]
enum Place {
    Due,
    Slot { level: usize, slot: u128, begin: u128 },
}

struct Reference<'s> {
    scenario: &'s Scenario,
    lines: Vec<String>,
    next: usize,
    exact_cascades: bool,
    clock: u64,
    stopped: bool,
    timers: Vec<Timer<'s>>,
    scheduled: usize,
    /// Fired, cancelled, wakes, cascades.
    totals: [u64; 4],
}

impl<'s> Reference<'s> {
    fn steps(&mut self, exact_wakes: bool) -> Scenario {
        let mut filled = self.scenario.clone();
        let mut before = (self.totals, self.next);
        let mut advanced = false;
        for (i, step) in self.scenario.steps.iter().enumerate() {
            match step {
                Step::Expect(_) => {
                    let checks = self.checks(before, advanced, exact_wakes);
                    filled.steps[i] = Step::Expect(Box::new(Expect { checks }));
                    before = (self.totals, self.next);
                }
                Step::Advance(to) => {
                    advanced = true;
                    self.advance(*to);
                }
                step => self.act(step),
            }
        }
        let [fired, cancelled, wakes, cascades] = self.totals;
        let (at, pending) = (self.clock, self.timers.len());
        let done = format!(r#"{{"at":{at},"event":"done","pending":{pending},"fired":{fired}"#)
            + &format!(r#","cancelled":{cancelled},"wakes":{wakes},"cascades":{cascades}}}"#);
        let found = &self.lines[self.next];
        let without = |line: &str| {
            let end = if !exact_wakes { "\"wakes\"" } else { "\"cascades\"" };
            line[..line.find(end).unwrap()].to_owned()
        };
        if exact_wakes && self.exact_cascades {
            assert_eq!(&done, found);
        } else {
            assert_eq!(without(&done), without(found));
        }
        assert_eq!(self.next + 1, self.lines.len(), "more lines than expected");
        filled
    }

    /// Every check that must hold now.
    fn checks(&self, before: ([u64; 4], usize), advanced: bool, exact_wakes: bool) -> Vec<Check> {
        let since = |i: usize| self.totals[i] - before.0[i];
        let next =
            self.timers.iter().map(|timer| timer.due_tick).min().and_then(|tick| self.time(tick));
        let mut checks = vec![
            Check::Pending(self.timers.len() as u64),
            Check::NextDue(next.map(|time| time.max(self.clock))),
            Check::Fired(
                self.lines[before.1..self.next]
                    .iter()
                    .filter_map(|line| self.fired(line))
                    .collect(),
            ),
        ];
        if exact_wakes {
            checks.push(Check::Wakes(since(2)));
        }
        if self.exact_cascades {
            checks.push(Check::Cascades(since(3)));
        }
        let here = |timer: &&Timer<'_>| {
            matches!(timer.place, Place::Slot { .. }) && timer.due <= u64::MAX.into()
        };
        let settled = |timer: &&Timer<'_>| {
            let ring = self.scenario.wheel.kind == Kind::Hashed;
            ring || !timer.moved && (self.scenario.drive != Drive::Due || !advanced)
        };
        let place = |timer: &Timer<'_>| (timer.id, self.show(&timer.place));
        checks.push(Check::Place(
            self.timers.iter().filter(here).filter(settled).map(place).collect(),
        ));
        if self.scenario.wheel.kind == Kind::Hashed {
            let rounds = |timer: &Timer<'_>| (timer.id, u64::try_from(timer.rounds).unwrap());
            checks.push(Check::Rounds(self.timers.iter().filter(here).map(rounds).collect()));
        }
        checks
    }

    fn fired(&self, line: &str) -> Option<(Id, u64)> {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        (value["event"] == "fired").then(|| (self.id_of(&value), value["at"].as_u64().unwrap()))
    }

    fn id_of(&self, line: &serde_json::Value) -> Id {
        let name = line["id"].as_str().unwrap();
        Id(self.scenario.ids.iter().position(|id| id == name).unwrap() as u32)
    }

    fn line(&mut self, event: &str, rest: String) {
        let expected = format!(r#"{{"at":{},"event":"{event}"{rest}}}"#, self.clock);
        let found = self.lines.get(self.next).map_or("nothing", |line| line);
        assert_eq!(expected, found, "line {}", self.next);
        self.next += 1;
    }

    fn advance(&mut self, to: u64) {
        if !self.stopped && self.timers.iter().any(|timer| timer.due_tick <= self.tick()) {
            self.stop_here();
        }
        while !self.stopped && self.time(self.tick() + 1).is_some_and(|next| next <= to) {
            self.clock = self.time(self.tick() + 1).unwrap();
            if self.stops_here() {
                self.stop_here();
            }
        }
        self.clock = self.clock.max(to);
    }

    fn stops_here(&self) -> bool {
        let now = self.tick();
        let slots = u128::from(self.scenario.wheel.slots[0]);
        self.timers.iter().any(|timer| match (self.scenario.drive, self.scenario.wheel.kind) {
            (Drive::Due, _) => timer.due_tick == now,
            (Drive::Tick, _) => true,
            (Drive::Bucket, Kind::Hashed) => {
                timer.due <= u64::MAX.into() && timer.due_tick % slots == now % slots
            }
            (Drive::Bucket, Kind::Hierarchical) => {
                matches!(timer.place, Place::Slot { begin, .. } if begin == now)
            }
        }) || self.scenario.drive == Drive::Tick
    }

    fn stop_here(&mut self) {
        self.hand_down();
        let mut passes = 0;
        while !self.stopped && self.timers.iter().any(|timer| timer.due_tick <= self.tick()) {
            passes += 1;
            self.pass();
        }
        self.totals[2] += passes.max(1);
    }

    /// Cascades every slot of an upper level that begins now.
    fn hand_down(&mut self) {
        let now = self.tick();
        let mut expected = HashSet::new();
        for i in 0..self.timers.len() {
            let Place::Slot { level, begin, .. } = self.timers[i].place else { continue };
            if level == 1 || begin != now || self.scenario.wheel.kind == Kind::Hashed {
                continue;
            }
            let from = self.show(&self.timers[i].place);
            let (place, _) = self.place(self.timers[i].due_tick);
            if place != Place::Due {
                let (id, to) = (self.scenario.name_of(self.timers[i].id), self.show(&place));
                expected.insert(format!(
                    r#"{{"at":{},"event":"cascaded","id":"{id}","from":"{from}","to":"{to}"}}"#,
                    self.clock
                ));
            }
            self.timers[i].place = place;
        }
        if self.exact_cascades {
            let found: HashSet<_> =
                self.lines[self.next..].iter().take(expected.len()).cloned().collect();
            assert_eq!(expected, found, "line {}", self.next);
            self.next += expected.len();
            self.totals[3] += expected.len() as u64;
        }
    }

    fn pass(&mut self) {
        self.timers.iter_mut().for_each(|timer| timer.new = false);
        let budget = self.scenario.budget.map_or(u64::MAX, |budget| budget.get());
        for _ in 0..budget {
            let now = self.tick();
            let due = |timer: &&Timer<'_>| !timer.new && timer.due_tick <= now;
            let Some(first) = self.timers.iter().filter(due).map(|timer| timer.due_tick).min()
            else {
                break;
            };
            let line = self.lines.get(self.next).map_or("nothing", |line| line);
            let chosen = self.timers.iter().filter(due).position(|timer| {
                let name = self.scenario.name_of(timer.id);
                timer.due_tick == first
                    && line.contains(&format!(r#""event":"fired","id":"{name}","#))
            });
            let chosen = chosen.unwrap_or_else(|| {
                panic!("at {} a timer of tick {first} fires, not {line}", self.clock)
            });
            let id = self.timers.iter().filter(due).nth(chosen).unwrap().id;
            self.fire(id);
            if self.stopped {
                break;
            }
        }
    }

    fn fire(&mut self, id: Id) {
        let timer = self.take(id).unwrap();
        self.totals[0] += 1;
        self.line("fired", format!(r#","id":"{}","due":{}"#, self.scenario.name_of(id), timer.due));
        if let Some(period) = timer.schedule.every {
            self.arm(timer.schedule, timer.due + u128::from(period.get()), timer.order);
        }
        for step in timer.schedule.then.iter().flat_map(|then| &then.steps) {
            self.act(step);
        }
    }

    fn act(&mut self, step: &'s Step) {
        match step {
            Step::Schedule(schedule) => self.schedule(schedule),
            Step::Cancel(id) => {
                let ok = self.take(*id).is_some();
                self.totals[1] += u64::from(ok);
                self.line(
                    "cancelled",
                    format!(r#","id":"{}","ok":{ok}"#, self.scenario.name_of(*id)),
                );
            }
            Step::Reschedule(id, when) => self.reschedule(*id, *when),
            Step::Stop => {
                self.stopped = true;
                self.timers.sort_by_key(|timer| (timer.due, timer.order));
                let unfired: Vec<_> =
                    self.timers.iter().map(|timer| self.scenario.name_of(timer.id)).collect();
                let unfired = serde_json::to_string(&unfired).unwrap();
                self.timers.clear();
                self.line("stopped", format!(r#","unfired":{unfired}"#));
            }
            Step::Advance(_) | Step::Expect(_) => unreachable!(),
        }
    }

    fn schedule(&mut self, schedule: &'s Schedule) {
        let name = self.scenario.name_of(schedule.id);
        let limit = self.scenario.limit.map_or(usize::MAX, |limit| limit.get() as usize);
        if self.stopped || self.timers.len() >= limit {
            let reason = if self.stopped { "stopped" } else { "limit" };
            return self.line("rejected", format!(r#","id":"{name}","reason":"{reason}""#));
        }
        self.scheduled += 1;
        let due = self.due(schedule.when);
        self.arm(schedule, due, self.scheduled);
        let filed = self.filed();
        self.line("scheduled", format!(r#","id":"{name}",{filed}"#));
    }

    fn reschedule(&mut self, id: Id, when: When) {
        let name = self.scenario.name_of(id);
        let Some(timer) = self.take(id) else {
            return self.line("rescheduled", format!(r#","id":"{name}","ok":false"#));
        };
        let due = self.due(when);
        self.arm(timer.schedule, due, timer.order);
        self.timers.last_mut().unwrap().moved = true;
        let filed = self.filed();
        self.line("rescheduled", format!(r#","id":"{name}","ok":true,{filed}"#));
    }

    /// The fields of a line that tell where the last timer of the list was filed.
    fn filed(&self) -> String {
        let timer = self.timers.last().unwrap();
        let mut text = format!(r#""due":{}"#, timer.due);
        if timer.place != Place::Due {
            text += &format!(r#","place":"{}""#, self.show(&timer.place));
            if self.scenario.wheel.kind == Kind::Hashed {
                text += &format!(r#","rounds":{}"#, timer.rounds);
            }
        }
        text
    }

    fn arm(&mut self, schedule: &'s Schedule, due: u128, order: usize) {
        let due_tick =
            due.saturating_sub(self.scenario.wheel.start.into()).div_ceil(self.tick_units());
        let (place, rounds) = match due <= u64::MAX.into() {
            true => self.place(due_tick),
            // There are no slots past the end of time.
            false => (Place::Due, 0),
        };
        let id = schedule.id;
        self.timers.push(Timer {
            id,
            due,
            due_tick,
            order,
            schedule,
            place,
            rounds,
            moved: false,
            new: true,
        });
    }

    fn take(&mut self, id: Id) -> Option<Timer<'s>> {
        let index = self.timers.iter().position(|timer| timer.id == id)?;
        Some(self.timers.remove(index))
    }

    fn due(&self, when: When) -> u128 {
        match when {
            When::At(time) => time.into(),
            When::Delay(delay) => {
                (i128::from(self.clock) + delay).clamp(0, u64::MAX.into()) as u128
            }
        }
    }

    /// The formulas of the format: the lowest level whose span suffices, and the slot.
    fn place(&self, due_tick: u128) -> (Place, u128) {
        let Some(left) = due_tick.checked_sub(self.tick()).filter(|left| *left > 0) else {
            return (Place::Due, 0);
        };
        let slots = &self.scenario.wheel.slots;
        if self.scenario.wheel.kind == Kind::Hashed {
            let slots = u128::from(slots[0]);
            return (Place::Slot { level: 0, slot: due_tick % slots, begin: 0 }, left / slots);
        }
        let (mut level, mut below) = (1, 1);
        loop {
            let here = u128::from(*slots.get(level - 1).unwrap_or(slots.last().unwrap()));
            if left < below * here {
                let slot = due_tick / below % here;
                return (Place::Slot { level, slot, begin: due_tick / below * below }, 0);
            }
            below *= here;
            level += 1;
        }
    }

    fn show(&self, place: &Place) -> String {
        match (place, self.scenario.wheel.kind) {
            (Place::Due, _) => "due".into(),
            (Place::Slot { slot, .. }, Kind::Hashed) => format!("[{slot}]"),
            (Place::Slot { level, slot, .. }, Kind::Hierarchical) => format!("L{level}[{slot}]"),
        }
    }

    fn tick_units(&self) -> u128 {
        self.scenario.wheel.tick.get().into()
    }

    /// The current tick.
    fn tick(&self) -> u128 {
        u128::from(self.clock - self.scenario.wheel.start) / self.tick_units()
    }

    /// The moment of a tick, unless it lies past the end of time.
    fn time(&self, tick: u128) -> Option<u64> {
        u64::try_from(u128::from(self.scenario.wheel.start) + tick * self.tick_units()).ok()
    }
}
