//! Closures of each kind, armed by each verb, ended in each possible way, on each kind of engine.

use std::hint::black_box;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use tourbillon::{
    BootClock, Builder, Context, Cron, Driver, Key, Repeat, ScheduleError, Timeout, Timer,
    VirtualClock,
};

use crate::common::{HOUR, SECOND, one_thread, panic_quietly};
use crate::{
    Case, LIMIT, ROUNDS, Round, all_places, cases as named, give_back, take_all_places, until,
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    Schedule,
    Arm,
    ScheduleRepeating,
    Repeat,
    ScheduleWall,
    ScheduleWallEvery,
    ScheduleCron,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Stored in the wheel.
    Small,
    /// Boxed, with something to drop.
    Large,
    /// Boxed, with nothing to drop but the box.
    PlainData,
}

pub(crate) const VERBS: [Verb; 7] = [
    Verb::Schedule,
    Verb::Arm,
    Verb::ScheduleRepeating,
    Verb::Repeat,
    Verb::ScheduleWall,
    Verb::ScheduleWallEvery,
    Verb::ScheduleCron,
];
pub(crate) const KINDS: [Kind; 3] = [Kind::Small, Kind::Large, Kind::PlainData];

/// What the closure does when it runs.
type Does = fn(&Context<'_>);

/// How the timer is referred to.
pub(crate) enum Handle {
    Timeout(Timeout),
    Key(Key),
}

impl Handle {
    fn cancel(&self, timer: &Timer) -> bool {
        match self {
            Handle::Timeout(timeout) => timeout.cancel(),
            Handle::Key(key) => timer.cancel(*key),
        }
    }

    fn reschedule(&self, timer: &Timer, after: Duration) {
        match self {
            Handle::Timeout(timeout) => timeout.reschedule(after).unwrap(),
            Handle::Key(key) => timer.reschedule(*key, after).unwrap(),
        }
    }
}

/// Arms a closure of this kind, to run after this long.
pub(crate) fn arm(
    timer: &Timer,
    verb: Verb,
    kind: Kind,
    after: Duration,
    does: Does,
) -> Result<Handle, ()> {
    match kind {
        Kind::Small => {
            let held = Arc::new(7);
            by(timer, verb, after, move |context| {
                black_box(&held);
                does(context);
            })
        }
        Kind::Large => {
            let held = (Arc::new(7), [7_u8; 2048]);
            by(timer, verb, after, move |context| {
                black_box(&held);
                does(context);
            })
        }
        Kind::PlainData => {
            let held = [7_u8; 2048];
            by(timer, verb, after, move |context| {
                black_box(&held);
                does(context);
            })
        }
    }
}

fn by<F>(timer: &Timer, verb: Verb, after: Duration, callback: F) -> Result<Handle, ()>
where
    F: FnMut(&Context<'_>) + Send + 'static,
{
    let refused = |error: ScheduleError<F>| drop(error.into_inner());
    let timeout = match verb {
        Verb::Arm => return timer.arm(after, callback).map(Handle::Key).map_err(refused),
        Verb::Schedule => timer.schedule(after, callback),
        Verb::ScheduleRepeating => timer.schedule_repeating(after, callback),
        Verb::Repeat => timer.repeat(Repeat::every(HOUR).first(after), callback),
        Verb::ScheduleWall => timer.schedule_wall(timer.wall_now() + after, callback),
        Verb::ScheduleWallEvery => {
            timer.schedule_wall_every(timer.wall_now() + after, HOUR, callback)
        }
        // Ignores `after`: it runs every second of the wall clock.
        Verb::ScheduleCron => {
            thread_local! {
                static CRON: Cron = Cron::parse("* * * * * *", "UTC").unwrap();
            }
            CRON.with(|cron| timer.schedule_cron(cron, callback))
        }
    };
    timeout.map(Handle::Timeout).map_err(refused)
}

/// An engine, and how its time passes.
pub(crate) struct Place {
    pub(crate) timer: Timer,
    clock: Option<VirtualClock>,
    driver: Option<Driver>,
    rounds: usize,
}

const PLACES: [(&str, usize); 5] =
    [("pool", 6), ("executor", 6), ("system", 4), ("boot", 2), ("loop", 6)];

pub(crate) fn place(name: &str) -> Place {
    let clock = VirtualClock::new();
    // A pool of one thread, which does not grow when a round finds its thread busy; and short ticks: with the system's
    // clocks a round takes as long as its ticks.
    let builder = || Timer::builder().limit(LIMIT).tick(Duration::from_micros(50));
    let on = |builder: Builder| builder.build().unwrap();
    let (timer, clock, driver) = match name {
        "driver" => (on(builder().clock(&clock).on_driver()), Some(clock), None),
        "pool" => (on(builder().clock(&clock).pool(1)), Some(clock), None),
        "executor" => (on(builder().clock(&clock).executor(one_thread())), Some(clock), None),
        "system" => (on(builder().pool(1)), None, None),
        "boot" => (on(builder().clock(BootClock).pool(1)), None, None),
        "loop" => {
            let (timer, mut driver) = builder().clock(&clock).build_driven().unwrap();
            driver.wake_fd().unwrap();
            (timer, Some(clock), Some(driver))
        }
        _ => unreachable!("{name}"),
    };
    Place { timer, clock, driver, rounds: 0 }
}

impl Place {
    /// A delay that will pass.
    fn soon(&self) -> Duration {
        if self.clock.is_some() { SECOND } else { Duration::ZERO }
    }

    fn fired(&self) -> u64 {
        self.timer.counts().fired
    }

    /// Makes due timers run, until more have fired than before the timer was armed.
    fn pass(&mut self, before: u64) {
        if let Some(clock) = &self.clock {
            clock.advance(SECOND).unwrap();
        }
        if let Some(driver) = &mut self.driver {
            driver.turn();
        }
        until(|| self.fired() > before);
    }

    /// The timer has run or was cancelled. If it would run again, it is cancelled; then nothing of it is left.
    fn over(&self, handle: &Handle) {
        until(|| handle.cancel(&self.timer) || self.timer.is_empty());
        until(|| self.timer.is_empty());
    }
}

/// Where a callback waits to be cancelled from outside: 0 is empty, 1 is running, 2 is released.
static GATE: AtomicU8 = AtomicU8::new(0);

fn waits_at_the_gate(_: &Context<'_>) {
    GATE.store(1, SeqCst);
    while GATE.load(SeqCst) != 2 {
        thread::yield_now();
    }
    GATE.store(0, SeqCst);
}

fn cancels_itself(context: &Context<'_>) {
    match context.timeout() {
        Some(timeout) => drop(timeout.cancel()),
        None => drop(context.timer().cancel(context.key())),
    }
}

/// One timer after another, each with another end.
fn all_ends(place: &mut Place, verb: Verb, kind: Kind) {
    let timer = place.timer.clone();
    let (soon, nothing): (_, Does) = (place.soon(), |_| ());
    let cron = matches!(verb, Verb::ScheduleCron);
    let by_wall_second = cron && place.clock.is_none();
    let arm = |after, does| arm(&timer, verb, kind, after, does).unwrap();

    assert!(arm(HOUR, nothing).cancel(&timer), "cancelled");
    let moved = arm(HOUR, nothing);
    moved.reschedule(&timer, HOUR * 2);
    assert!(moved.cancel(&timer), "moved and cancelled");
    if let Handle::Timeout(timeout) = arm(HOUR, nothing) {
        drop(timeout.clone().cancel_on_drop());
        assert!(!timeout.is_pending(), "cancelled by a drop");
        timer.is_empty().then_some(()).expect("it is gone");
    } else {
        timer.pending().iter().for_each(|one| assert!(timer.cancel(one.key)));
    }
    let (before, moved) = (place.fired(), arm(HOUR, nothing));
    moved.reschedule(&timer, soon);
    place.pass(before);
    place.over(&moved);
    // Refused: the closure is returned, and dropped.
    let keys = take_all_places(&timer);
    assert!(self::arm(&timer, verb, kind, HOUR, nothing).is_err());
    give_back(&timer, keys);
    // On the system's clock, a cron timer runs when the next second begins: too late for these rounds.
    if !by_wall_second {
        for does in [nothing, cancels_itself, |_| panic_quietly()] {
            let (before, fires) = (place.fired(), arm(soon, does));
            place.pass(before);
            place.over(&fires);
        }
        let (before, dropped) = (place.fired(), arm(soon, cancels_itself));
        drop(dropped);
        place.pass(before);
        until(|| timer.is_empty());
        place.rounds += 1;
        // It starts a thread, and takes as long as all the others.
        if place.rounds % 4 == 0 {
            cancelled_from_outside(place, verb, kind);
        }
    }
    until(|| timer.is_empty());
    all_places(&timer);
}

fn cancelled_from_outside(place: &mut Place, verb: Verb, kind: Kind) {
    let timer = place.timer.clone();
    let before = place.fired();
    let running = arm(&timer, verb, kind, place.soon(), waits_at_the_gate).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| place.pass(before));
        until(|| GATE.load(SeqCst) == 1);
        running.cancel(&timer);
        GATE.store(2, SeqCst);
    });
    until(|| GATE.load(SeqCst) == 0);
    until(|| timer.is_empty());
}

fn everywhere(number: usize) -> Round {
    let mut place = place(PLACES[number].0);
    Box::new(move || {
        for verb in VERBS {
            KINDS.into_iter().for_each(|kind| all_ends(&mut place, verb, kind));
        }
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let names: Vec<String> = VERBS
        .iter()
        .flat_map(|verb| {
            KINDS.iter().map(move |kind| format!("{verb:?} of a closure that is {kind:?}"))
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut all = named(&names, ROUNDS, |number| {
        let mut place = place("driver");
        let (verb, kind) = (VERBS[number / KINDS.len()], KINDS[number % KINDS.len()]);
        Box::new(move || all_ends(&mut place, verb, kind)) as Round
    });
    // A round of these is eighteen rounds of the others, and with the system's clocks each waits for its ticks.
    for (number, (place, rounds)) in PLACES.into_iter().enumerate() {
        let name = format!("every verb and closure, on the {place}");
        all.push(Case { name, make: everywhere, number, rounds });
    }
    all.extend(named(&["threads that arm and end"], ROUNDS, |_| {
        let place = place("pool");
        Box::new(move || {
            let meet = Barrier::new(2);
            thread::scope(|scope| {
                for kind in [Kind::Small, Kind::PlainData] {
                    let (timer, meet) = (&place.timer, &meet);
                    scope.spawn(move || {
                        let armed = arm(timer, Verb::Schedule, kind, HOUR, |_| ()).unwrap();
                        meet.wait();
                        assert!(armed.cancel(timer));
                    });
                }
            });
            all_places(&place.timer);
        })
    }));
    all
}
