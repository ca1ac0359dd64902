//! What an engine of values tells of one of them: armed, moved, delivered, cancelled and handed back. And what is told
//! of what is due while the handler, or the only thread, is at something else.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tourbillon::{Context, Driver, Engine, Fired, Key, State, Timer, VirtualClock};

use super::{Sums, clock_at_an_hour, since, sums};
use crate::common::{HOUR, SECOND, SINGLE, case};

/// Everything that is told of the only value of an engine. Deadlines are times since the beginning of the clock.
#[derive(Debug, PartialEq)]
struct Told {
    by_key: (bool, Option<Duration>),
    listed: Vec<(Key, Duration)>,
    counts: Sums,
    pending: (u64, usize, bool),
    /// How many values are in each slot that is shown.
    filed: Vec<usize>,
    late: (u64, Duration),
    is_stopped: bool,
    engine: String,
}

impl Told {
    fn of(engine: &Engine<u32>, clock: &VirtualClock, key: Key) -> Self {
        let (counts, lateness) = (engine.counts(), engine.lateness());
        let listed = engine.pending().into_iter();
        assert_eq!(engine.now(), clock.now());
        Told {
            by_key: (engine.is_pending(key), engine.deadline(key).map(|at| since(clock, at))),
            listed: listed.map(|one| (one.key, since(clock, one.deadline))).collect(),
            counts: sums(counts),
            pending: (counts.pending, engine.len(), engine.is_empty()),
            filed: engine.snapshot().slots().map(|slot| slot.timers).collect(),
            late: (lateness.count(), lateness.max()),
            is_stopped: engine.is_stopped(),
            engine: format!("{engine:?}"),
        }
    }

    fn expected(key: Key, due: Option<Duration>, counts: Sums, is_stopped: bool) -> Self {
        let [armed, fired, cancelled, handed_back, panicked] = counts;
        let pending = u64::from(due.is_some());
        Told {
            by_key: (due.is_some(), due),
            listed: due.map(|due| (key, due)).into_iter().collect(),
            counts,
            pending: (pending, pending as usize, due.is_none()),
            filed: due.map(|_| 1).into_iter().collect(),
            late: (fired, Duration::ZERO),
            is_stopped,
            engine: format!(
                "Engine {{ counts: Counts {{ armed: {armed}, fired: {fired}, cancelled: {cancelled}, handed_back: \
                 {handed_back}, pending: {pending}, panicked: {panicked} }}, .. }}"
            ),
        }
    }
}

/// An engine with a single value, which is due in a second and is delivered as the test wants.
struct Stage {
    engine: Engine<u32>,
    clock: VirtualClock,
    driver: Option<Arc<Mutex<Driver>>>,
    key: Key,
    due: Duration,
    /// The handler has been called with it.
    begun: Receiver<Fired<u32>>,
    /// The handler returns, or panics.
    end: Sender<bool>,
}

impl Stage {
    fn new(driven: bool, shards: usize) -> Self {
        let clock = clock_at_an_hour();
        let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel());
        let handler = move |mut batch: tourbillon::Batch<'_, u32>| {
            assert_eq!((batch.len(), batch.size_hint()), (1, (1, Some(1))));
            begins.send(batch.next().unwrap()).unwrap();
            assert_eq!((batch.len(), batch.next()), (0, None));
            if ends.recv() == Ok(true) {
                crate::common::panic_quietly();
            }
        };
        let builder = Timer::builder().shards(shards).clock(&clock);
        let (engine, driver) = if driven {
            let (engine, driver) = builder.deliver_driven(handler).unwrap();
            (engine, Some(Arc::new(Mutex::new(driver))))
        } else {
            (builder.deliver(handler).unwrap(), None)
        };
        let key = engine.schedule(SECOND, 7).unwrap();
        Stage { engine, key, due: clock.elapsed() + SECOND, clock, driver, begun, end }
    }

    #[track_caller]
    fn tells(&self, when: &str, is_pending: bool, counts: Sums) {
        let Stage { engine, clock, key, .. } = self;
        let due = is_pending.then_some(self.due);
        let expected = Told::expected(*key, due, counts, engine.is_stopped());
        let told = || Told::of(engine, clock, *key);
        assert_eq!(told(), expected, "{when}");
        let other = thread::scope(|scope| scope.spawn(told).join().unwrap());
        assert_eq!(other, expected, "{when}, to another thread");
        engine.shrink();
        assert_eq!(told(), expected, "{when}, after a shrink");
        assert_eq!(engine.check(), Ok(()), "{when}");
        // Another engine has a value of that number as well, and knows nothing of this one.
        let twin: Engine<u32> = Timer::builder().clock(clock).deliver(|_| ()).unwrap();
        twin.schedule(SECOND, 7).unwrap();
        assert_eq!(
            (twin.is_pending(*key), twin.deadline(*key), twin.cancel(*key)),
            (false, None, None)
        );
    }

    fn deliver(&self) -> JoinHandle<()> {
        let (clock, driver) = (self.clock.clone(), self.driver.clone());
        let left = self.due - clock.elapsed();
        let time = thread::spawn(move || {
            clock.advance(left).unwrap();
            driver.iter().for_each(|driver| _ = driver.lock().unwrap().turn());
        });
        let fired = self.begun.recv().unwrap();
        let told = (fired.key, fired.value, since(&self.clock, fired.deadline()));
        assert_eq!(told, (self.key, 7, self.due));
        time
    }

    #[track_caller]
    fn is_handed_back(&self, unfired: &[Fired<u32>]) {
        let told = unfired.iter().map(|it| (it.key, it.value, since(&self.clock, it.deadline())));
        assert_eq!(told.collect::<Vec<_>>(), [(self.key, 7, self.due)]);
    }
}

type Way = (&'static str, fn(&mut Stage));

const WAYS: [Way; 8] = [
    ("it is delivered", |stage| {
        stage.tells("as it is armed", true, [1, 0, 0, 0, 0]);
        stage.clock.advance(SECOND / 2).unwrap();
        stage.tells("halfway", true, [1, 0, 0, 0, 0]);
        let time = stage.deliver();
        stage.tells("in the handler", false, [1, 1, 0, 0, 0]);
        stage.end.send(false).unwrap();
        time.join().unwrap();
        stage.tells("delivered", false, [1, 1, 0, 0, 0]);
    }),
    ("its handler panics", |stage| {
        let time = stage.deliver();
        stage.end.send(true).unwrap();
        time.join().unwrap();
        stage.tells("delivered", false, [1, 1, 0, 0, 1]);
    }),
    ("it is moved", |stage| {
        for hours in [5, 2, 3] {
            stage.engine.reschedule(stage.key, HOUR * hours).unwrap();
            stage.due = stage.clock.elapsed() + HOUR * hours;
            stage.tells("as it is moved", true, [1, 0, 0, 0, 0]);
            stage.engine.reschedule_at(stage.key, stage.clock.now() + HOUR).unwrap();
            stage.due = stage.clock.elapsed() + HOUR;
            stage.tells("as it is moved to an instant", true, [1, 0, 0, 0, 0]);
        }
        let time = stage.deliver();
        assert!(stage.engine.reschedule(stage.key, HOUR).is_err());
        stage.tells("in the handler", false, [1, 1, 0, 0, 0]);
        stage.end.send(false).unwrap();
        time.join().unwrap();
    }),
    ("it is cancelled", |stage| {
        assert_eq!(stage.engine.cancel(stage.key), Some(7));
        stage.tells("cancelled", false, [1, 0, 1, 0, 0]);
        stage.clock.advance(HOUR).unwrap();
        assert_eq!(stage.engine.cancel(stage.key), None);
        stage.tells("an hour later", false, [1, 0, 1, 0, 0]);
        assert!(stage.engine.stop().is_empty());
        stage.tells("after a stop", false, [1, 0, 1, 0, 0]);
    }),
    ("it is cancelled in the handler", |stage| {
        let time = stage.deliver();
        assert_eq!(stage.engine.cancel(stage.key), None, "it was delivered");
        stage.tells("in the handler", false, [1, 1, 0, 0, 0]);
        stage.end.send(false).unwrap();
        time.join().unwrap();
    }),
    ("it is handed back", |stage| {
        let unfired = stage.engine.stop();
        stage.is_handed_back(&unfired);
        stage.tells("handed back", false, [1, 0, 0, 1, 0]);
        assert_eq!(stage.engine.cancel(stage.key), None);
        stage.tells("too late to cancel", false, [1, 0, 0, 1, 0]);
    }),
    ("it is handed back by a stop with a limit", |stage| {
        let stopped = stage.engine.stop_within(Duration::ZERO);
        assert!(stopped.finished);
        stage.is_handed_back(&stopped.unfired);
        stage.tells("handed back", false, [1, 0, 0, 1, 0]);
    }),
    ("its engine is stopped in the handler", |stage| {
        let time = stage.deliver();
        let stopped = stage.engine.stop_within(Duration::ZERO);
        assert!(!stopped.finished && stopped.unfired.is_empty());
        stage.tells("in the handler", false, [1, 1, 0, 0, 0]);
        stage.end.send(false).unwrap();
        time.join().unwrap();
        assert!(stage.engine.stop().is_empty());
        stage.tells("delivered", false, [1, 1, 0, 0, 0]);
    }),
];

#[test]
fn of_a_value() {
    for (driven, shards) in [(false, 1), (false, 4), (true, 1), (true, 4)] {
        for (name, way) in WAYS {
            let whose = if driven { "the caller's driver" } else { "its own driver" };
            case(format!("{name}, {whose}, {shards} shards"), move || {
                way(&mut Stage::new(driven, shards));
            });
        }
    }
}

/// More is due than the handler gets at once: the rest is pending until it is called again.
#[test]
fn of_a_value_that_waits_for_the_handler() {
    let clock = clock_at_an_hour();
    let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
    let handler = move |batch: tourbillon::Batch<'_, u32>| {
        batch.for_each(|fired| begins.send(fired.key).unwrap());
        let _ = ends.recv();
    };
    let engine = Timer::builder().shards(1).budget(1).clock(&clock).deliver(handler).unwrap();
    let keys = [SECOND, 2 * SECOND].map(|after| engine.schedule(after, 7).unwrap());
    keys.iter().for_each(|&key| engine.reschedule(key, SECOND).unwrap());
    let own = clock.clone();
    let time = thread::spawn(move || own.advance(10 * SECOND).unwrap());
    let first = begun.recv().unwrap();
    let second = keys.into_iter().find(|&key| key != first).unwrap();
    let due = HOUR + SECOND;
    let told = |key| (engine.is_pending(key), engine.deadline(key).map(|at| since(&clock, at)));
    assert_eq!((told(first), told(second)), ((false, None), (true, Some(due))));
    let pending = engine.pending();
    assert_eq!(pending.iter().map(|one| one.key).collect::<Vec<_>>(), [second]);
    let counts = engine.counts();
    assert_eq!((sums(counts), counts.pending, engine.len()), ([2, 1, 0, 0, 0], 1, 1));
    assert_eq!(engine.lateness().count(), 1);
    drop(end);
    time.join().unwrap();
    assert_eq!((told(second), begun.recv()), ((false, None), Ok(second)));
    assert_eq!(sums(engine.counts()), [2, 2, 0, 0, 0]);
}

/// A timer that is due while the only thread is at another one is pending, and nothing is left of its time.
#[test]
fn of_a_timer_that_waits_for_a_thread() {
    for (place, builder) in SINGLE {
        case(place, move || {
            let clock = clock_at_an_hour();
            let timer = builder().shards(1).clock(&clock).build().unwrap();
            let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
            let blocks = move |_: &Context<'_>| {
                begins.send(()).unwrap();
                let _ = ends.recv();
            };
            let first = timer.schedule(SECOND, blocks).unwrap();
            let handle = timer.schedule(SECOND, |_| ()).unwrap();
            let own = clock.clone();
            let time = thread::spawn(move || own.advance(10 * SECOND).unwrap());
            begun.recv().unwrap();
            let due = clock.now();
            assert_eq!(since(&clock, due), HOUR + SECOND);
            assert_eq!(
                (first.state(), first.deadline(), first.remaining()),
                (State::Running, None, None)
            );
            assert_eq!(
                (handle.state(), handle.is_pending(), handle.has_started()),
                (State::Pending, true, false)
            );
            assert_eq!((handle.deadline(), handle.remaining()), (Some(due), Some(Duration::ZERO)));
            assert_eq!(
                (timer.is_pending(handle.key()), timer.deadline(handle.key())),
                (true, Some(due))
            );
            let pending = timer.pending();
            assert_eq!(
                (pending.len(), pending[0].key, pending[0].deadline),
                (1, handle.key(), due)
            );
            assert_eq!((timer.len(), sums(timer.counts())), (1, [2, 1, 0, 0, 0]));
            drop(end);
            time.join().unwrap();
            assert_eq!((handle.state(), handle.remaining()), (State::Fired, None));
            assert_eq!(sums(timer.counts()), [2, 2, 0, 0, 0]);
        });
    }
}
