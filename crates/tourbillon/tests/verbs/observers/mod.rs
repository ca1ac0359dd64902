//! What is told of a timer in each state of its life: before, while and after it runs, moved, cancelled and handed
//! back.
//!
//! All are asked: the handle and a clone of it, the key, the lists and counts of the engine; by the thread that armed
//! the timer, by another one, which has another shard, by the callback itself, and after a shrink. The answers follow
//! from the state, the deadline and the counts that a test expects, so none is left out.

mod contexts;
mod ends;
mod engines;
mod handles;
mod memory;
mod results;
mod threads;
mod values;

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tourbillon::{
    Attempt, Backoff, Builder, Context, Counts, Cron, Driver, Key, Repeat, State, Timeout, Timer,
    Unfired, VirtualClock,
};

use crate::common::{HOUR, PLACES, SECOND, case, panic_quietly, running_on};

/// A clock that is not at its beginning.
fn clock_at_an_hour() -> VirtualClock {
    let clock = VirtualClock::new();
    clock.advance(HOUR).unwrap();
    clock
}

/// The time of an instant, since the beginning of the clock.
fn since(clock: &VirtualClock, at: Instant) -> Duration {
    at - (clock.now() - clock.elapsed())
}

/// What an engine has counted: armed, fired, cancelled, handed back, panicked. What is pending follows.
type Sums = [u64; 5];

fn sums(counts: Counts) -> Sums {
    let Counts { armed, fired, cancelled, handed_back, panicked, .. } = counts;
    [armed, fired, cancelled, handed_back, panicked]
}

/// Everything that is told of the only timer of an engine. Deadlines are times since the beginning of the clock.
#[derive(Debug, PartialEq)]
struct Told {
    state: State,
    is_pending: bool,
    has_started: bool,
    deadline: Option<Duration>,
    remaining: Option<Duration>,
    wall_deadline: Option<Duration>,
    key: Key,
    debug: String,
    by_key: (bool, Option<Duration>),
    listed: Vec<(Key, Duration)>,
    counts: Sums,
    pending: (u64, usize, bool),
    /// How many timers are in each slot that is shown.
    filed: Vec<usize>,
    /// How many were late, and how late at most.
    late: (u64, Duration),
    engine: String,
}

impl Told {
    /// What is told.
    fn of(timer: &Timer, clock: &VirtualClock, handle: &Timeout) -> Self {
        let (key, counts, lateness) = (handle.key(), timer.counts(), timer.lateness());
        let listed = timer.pending().into_iter();
        let wall_begin = clock.wall_now() - clock.elapsed();
        Told {
            state: handle.state(),
            is_pending: handle.is_pending(),
            has_started: handle.has_started(),
            deadline: handle.deadline().map(|at| since(clock, at)),
            remaining: handle.remaining(),
            wall_deadline: handle.wall_deadline().map(|at| at.duration_since(wall_begin).unwrap()),
            key,
            debug: format!("{handle:?}"),
            by_key: (timer.is_pending(key), timer.deadline(key).map(|at| since(clock, at))),
            listed: listed.map(|one| (one.key, since(clock, one.deadline))).collect(),
            counts: sums(counts),
            pending: (counts.pending, timer.len(), timer.is_empty()),
            filed: timer.snapshot().slots().map(|slot| slot.timers).collect(),
            late: (lateness.count(), lateness.max()),
            engine: format!("{timer:?}"),
        }
    }

    /// What is to be told of a timer that is due then if it is pending, by the wall clock if `wall`.
    fn expected(
        (key, now, wall): (Key, Duration, bool),
        state: State,
        due: Duration,
        counts: Sums,
    ) -> Self {
        let due = (state == State::Pending).then_some(due);
        let [armed, fired, cancelled, handed_back, panicked] = counts;
        let pending = u64::from(due.is_some());
        Told {
            state,
            is_pending: due.is_some(),
            has_started: matches!(state, State::Running | State::Fired),
            deadline: due,
            remaining: due.map(|due| due.saturating_sub(now)),
            wall_deadline: due.filter(|_| wall),
            key,
            debug: format!("Timeout {{ key: {key:?}, state: {state:?} }}"),
            by_key: (due.is_some(), due),
            listed: due.map(|due| (key, due)).into_iter().collect(),
            counts,
            pending: (pending, pending as usize, due.is_none()),
            filed: due.map(|_| 1).into_iter().collect(),
            late: (fired, Duration::ZERO),
            engine: format!(
                "Timer {{ counts: Counts {{ armed: {armed}, fired: {fired}, cancelled: {cancelled}, handed_back: \
                 {handed_back}, pending: {pending}, panicked: {panicked} }}, .. }}"
            ),
        }
    }
}

/// What a verb runs: with a context, if the verb has one.
type Run = Box<dyn FnMut(Option<&Context<'_>>) + Send>;

/// A verb that gives a handle.
struct Verb {
    name: &'static str,
    /// The delay of the first run.
    first: Duration,
    /// The time from a run to the next one, if it repeats.
    period: Option<Duration>,
    /// Whether it waits for the wall clock.
    wall: bool,
    schedule: fn(&Timer, Run) -> Timeout,
}

const fn once(name: &'static str, schedule: fn(&Timer, Run) -> Timeout) -> Verb {
    Verb { name, first: SECOND, period: None, wall: false, schedule }
}

const fn repeating(name: &'static str, schedule: fn(&Timer, Run) -> Timeout) -> Verb {
    Verb { period: Some(SECOND), ..once(name, schedule) }
}

impl Verb {
    const fn by_the_wall(self) -> Verb {
        Verb { wall: true, ..self }
    }

    const fn every(self, period: Duration) -> Verb {
        Verb { first: period, period: Some(period), ..self }
    }

    /// Its first run is due at once.
    const fn at_once(self) -> Verb {
        Verb { first: Duration::ZERO, ..self }
    }
}

const VERBS: &[Verb] = &[
    once("schedule", |timer, mut run| timer.schedule(SECOND, move |it| run(Some(it))).unwrap()),
    once("schedule_at", |timer, mut run| {
        timer.schedule_at(timer.now() + SECOND, move |it| run(Some(it))).unwrap()
    }),
    once("schedule_wall", |timer, mut run| {
        timer.schedule_wall(timer.wall_now() + SECOND, move |it| run(Some(it))).unwrap()
    })
    .by_the_wall(),
    once("compute", |timer, mut run| {
        timer.compute(SECOND, move |it| run(Some(it))).unwrap().timeout().clone()
    }),
    repeating("schedule_repeating", |timer, run| {
        timer.schedule_repeating(SECOND, again(run)).unwrap()
    }),
    repeating("schedule_repeating_at", |timer, run| {
        timer.schedule_repeating_at(timer.now() + SECOND, again(run)).unwrap()
    }),
    repeating("repeat, every", |timer, mut run| {
        timer.repeat(Repeat::every(SECOND), move |it| run(Some(it))).unwrap()
    }),
    repeating("repeat, after each", |timer, mut run| {
        timer.repeat(Repeat::after_each(SECOND), move |it| run(Some(it))).unwrap()
    }),
    repeating("schedule_wall_every", |timer, mut run| {
        let first = timer.wall_now() + SECOND;
        timer.schedule_wall_every(first, SECOND, move |it| run(Some(it))).unwrap()
    })
    .by_the_wall(),
    repeating("schedule_cron", |timer, mut run| {
        let cron = Cron::parse("* * * * *", "UTC").unwrap();
        timer.schedule_cron(&cron, move |it| run(Some(it))).unwrap()
    })
    .by_the_wall()
    .every(SECOND.saturating_mul(60)),
    repeating("retry", |timer, run| {
        timer.retry(Backoff::new(SECOND).factor(1.0), fails(run)).unwrap().timeout()
    })
    .at_once(),
    repeating("retry_then", |timer, run| {
        let backoff = Backoff::new(SECOND).factor(1.0);
        timer.retry_then(backoff, fails(run), |_| ()).ok().unwrap()
    })
    .at_once(),
];

fn again(mut run: Run) -> impl FnMut(&Context<'_>) + Send + 'static {
    move |context| {
        run(Some(context));
        context.again(SECOND);
    }
}

fn fails(mut run: Run) -> impl FnMut(&Attempt) -> Result<(), ()> + Send + 'static {
    move |_| {
        run(None);
        Err(())
    }
}

/// The places where callbacks run, and on how many shards; the last is the thread that turns a driver.
const STAGES: [(&str, usize); 4] =
    [(PLACES[0], 1), (PLACES[1], 4), (PLACES[2], 1), ("caller's driver", 4)];

/// How a run ends.
enum Ends {
    Returns,
    Panics,
}

/// What a run finds: what is told by the handle that was given, and by the one that the run has of itself.
type Inside = Vec<Told>;

/// An engine with a single timer, whose runs begin and end as the test wants.
struct Stage {
    verb: &'static Verb,
    timer: Timer,
    clock: VirtualClock,
    driver: Option<Arc<Mutex<Driver>>>,
    handle: Timeout,
    begun: Receiver<Inside>,
    end: Sender<Ends>,
    /// Where the callback finds its handle.
    known: Arc<Mutex<Option<Timeout>>>,
    /// When it is due next, since the beginning of the clock.
    due: Duration,
    /// Whether it waits for the wall clock.
    wall: bool,
}

fn build(builder: Builder, place: &str) -> (Timer, Option<Arc<Mutex<Driver>>>) {
    if place != "caller's driver" {
        return (builder.build().unwrap(), None);
    }
    let (timer, driver) = builder.build_driven().unwrap();
    (timer, Some(Arc::new(Mutex::new(driver))))
}

impl Stage {
    fn new(verb: &'static Verb, place: &str, shards: usize) -> Self {
        let clock = clock_at_an_hour();
        let builder = if PLACES.contains(&place) { running_on(place) } else { Timer::builder() };
        // Both kinds of wheels: one ring on a single shard, levels on several.
        let builder = if shards == 1 { builder.hashed(512) } else { builder };
        let (timer, driver) = build(builder.shards(shards).clock(&clock), place);
        let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel());
        let known: Arc<Mutex<Option<Timeout>>> = Arc::default();
        let (own, time, engine) = (known.clone(), clock.clone(), timer.clone());
        let run: Run = Box::new(move |context| {
            let handle = own.lock().unwrap().clone();
            let of_the_run = context.and_then(Context::timeout);
            let handles = handle.iter().chain(&of_the_run);
            let inside = handles.map(|handle| Told::of(&engine, &time, handle)).collect();
            drop((handle, of_the_run));
            let _ = begins.send(inside);
            if let Ok(Ends::Panics) = ends.recv() {
                panic_quietly();
            }
        });
        let handle = (verb.schedule)(&timer, run);
        *known.lock().unwrap() = Some(handle.clone());
        let (due, wall) = (clock.elapsed() + verb.first, verb.wall);
        Stage { verb, timer, clock, driver, handle, begun, end, known, due, wall }
    }

    fn repeats(&self) -> bool {
        self.verb.period.is_some()
    }

    fn expected(&self, state: State, counts: Sums) -> Told {
        let about = (self.handle.key(), self.clock.elapsed(), self.wall);
        Told::expected(about, state, self.due, counts)
    }

    /// Everyone who can be asked from outside says so.
    #[track_caller]
    fn tells(&self, when: &str, state: State, counts: Sums) {
        let expected = self.expected(state, counts);
        let Stage { timer, clock, handle, .. } = self;
        let told = || Told::of(timer, clock, handle);
        assert_eq!(told(), expected, "{when}");
        assert_eq!(Told::of(timer, clock, &handle.clone()), expected, "{when}, a clone");
        let other = thread::scope(|scope| scope.spawn(told).join().unwrap());
        assert_eq!(other, expected, "{when}, to another thread");
        self.timer.shrink();
        assert_eq!(told(), expected, "{when}, after a shrink");
        assert_eq!(self.timer.check(), Ok(()), "{when}");
    }

    /// Time passes until it runs. The thread on which time passes returns when the run has ended.
    #[track_caller]
    fn run(&mut self, counts: Sums) -> JoinHandle<()> {
        let (clock, driver) = (self.clock.clone(), self.driver.clone());
        let left = self.due - clock.elapsed();
        let time = thread::spawn(move || {
            clock.advance(left).unwrap();
            driver.iter().for_each(|driver| _ = driver.lock().unwrap().turn());
        });
        let inside = self.begun.recv().expect("it runs");
        assert!(!inside.is_empty());
        let expected = self.expected(State::Running, counts);
        inside.iter().for_each(|inside| assert_eq!(*inside, expected, "inside the run"));
        self.tells("while it runs", State::Running, counts);
        time
    }

    /// The run ends so.
    fn end(&mut self, time: JoinHandle<()>, ends: Ends) {
        self.end.send(ends).unwrap();
        time.join().unwrap();
        self.wall = self.verb.wall;
        self.due += self.verb.period.unwrap_or_default();
    }

    /// What was handed back is this timer.
    #[track_caller]
    fn is_handed_back(&self, unfired: &[Unfired]) {
        let [unfired] = unfired else { panic!("{} were handed back", unfired.len()) };
        let key = self.handle.key();
        assert_eq!((unfired.key(), since(&self.clock, unfired.deadline())), (key, self.due));
        assert_eq!(format!("{unfired:?}"), format!("Unfired {{ key: {key:?}, .. }}"));
        assert!(unfired.is_of(&self.handle) && unfired.is_of(&self.handle.clone()));
        // The first timer of another engine, which is made alike.
        let twin = Stage::new(self.verb, PLACES[0], 1);
        assert!(!unfired.is_of(&twin.handle));
    }
}

/// The callback keeps its engine, which keeps the callback until it ends.
impl Drop for Stage {
    fn drop(&mut self) {
        *self.known.lock().unwrap() = None;
        self.handle.cancel();
    }
}

/// What a timer goes through.
type Way = (&'static str, fn(&mut Stage));

/// Every verb goes through all of it, in every place, on one shard or on several.
fn on_every_stage(ways: &'static [Way]) {
    for (place, shards) in STAGES {
        for verb in VERBS {
            for (name, way) in ways {
                let case_name = format!("{}, {name}, {place}", verb.name);
                case(case_name, move || way(&mut Stage::new(verb, place, shards)));
            }
        }
    }
}
