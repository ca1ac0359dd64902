//! What keyed timers promise: one timer for each key, and a timer that was replaced or cancelled in time never runs.

mod common;
#[path = "keyed/foreign.rs"]
mod foreign;

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;

use common::{
    Drops, HOUR, Log, MS, PanicsWhenDropped, SECOND, accounted, eventually, panic_quietly,
    virtual_on, within,
};
use tourbillon::{
    Attempt, Backoff, Context, KeyedTimer, RescheduleError, Retried, ScheduleError, Timer,
    VirtualClock,
};

fn keyed() -> (KeyedTimer<u64>, Timer, VirtualClock) {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    (KeyedTimer::new(&timer), timer, clock)
}

/// A callback that logs its name.
fn writes(log: &Log<&'static str>, name: &'static str) -> impl FnOnce(&Context<'_>) + Send + use<> {
    let log = log.clone();
    move |_| log.add(name)
}

#[test]
fn a_key_has_one_timer_and_the_last_one_counts() {
    let (keyed, timer, clock) = keyed();
    let log = Log::new();
    assert!(!keyed.schedule(1, SECOND, writes(&log, "first")).unwrap());
    assert!(keyed.schedule(1, SECOND * 2, writes(&log, "second")).unwrap());
    assert!(!keyed.schedule(2, SECOND, writes(&log, "other")).unwrap());
    assert_eq!((keyed.len(), timer.len(), timer.counts().cancelled), (2, 2, 1));
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["other"]);
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["second"]);
    assert!(keyed.is_empty() && timer.is_empty());
    accounted(&timer);
}

#[test]
fn if_absent_gives_the_callback_back_when_there_is_one() {
    let (keyed, timer, clock) = keyed();
    let log = Log::new();
    assert!(keyed.schedule_if_absent(1, SECOND, writes(&log, "first")).unwrap().is_none());
    let back = keyed.schedule_if_absent(1, MS, writes(&log, "second")).unwrap();
    assert!(back.is_some());
    assert_eq!(timer.counts().armed, 1);
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["first"]);
    assert!(keyed.schedule_if_absent(1, SECOND, back.unwrap()).unwrap().is_none());
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["second"]);
}

#[test]
fn a_key_is_cancelled_moved_and_looked_at() {
    let (keyed, timer, clock) = keyed();
    let log = Log::new();
    keyed.schedule(1, SECOND, writes(&log, "one")).unwrap();
    keyed.schedule(2, SECOND, writes(&log, "two")).unwrap();
    assert_eq!(keyed.deadline(&1), Some(timer.now() + SECOND));
    keyed.reschedule(&1, SECOND * 5).unwrap();
    assert_eq!(keyed.deadline(&1), Some(timer.now() + SECOND * 5));
    assert!(keyed.cancel(&2) && !keyed.cancel(&2));
    assert!(keyed.is_pending(&1) && !keyed.is_pending(&2));
    assert_eq!((keyed.deadline(&2), keyed.len()), (None, 1));
    assert_eq!(keyed.reschedule(&2, SECOND), Err(RescheduleError::NotPending));
    clock.advance(SECOND * 4).unwrap();
    assert_eq!(log.take(), [""; 0]);
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["one"]);
    assert!(!keyed.cancel(&1) && !keyed.is_pending(&1));
    accounted(&timer);
}

/// Two are due at the same moment on one thread: the first to run replaces the other, which is ready and has not run.
#[test]
fn a_timer_that_fired_but_was_replaced_before_it_ran_does_not_run() {
    let (keyed, timer, clock) = keyed();
    let log = Log::new();
    for key in [1, 2] {
        let (own, told) = (keyed.clone(), log.clone());
        let callback = move |_: &Context<'_>| {
            told.add("first");
            let again = writes(&told, "again");
            assert!(own.schedule(3 - key, SECOND, again).unwrap(), "the other one is replaced");
        };
        keyed.schedule(key, SECOND, callback).unwrap();
    }
    clock.advance(SECOND).unwrap();
    assert_eq!((log.take(), timer.counts().panicked), (vec!["first"], 0));
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["again"]);
    assert!(keyed.is_empty());
}

/// Threads replace and cancel timers that other threads run: a callback that was replaced or cancelled has not run, and
/// every other has.
#[test]
fn replace_cancel_and_run_exclude_each_other() {
    within(|| {
        let timer = Timer::builder().pool(2).build().unwrap();
        let keyed: KeyedTimer<u64> = KeyedTimer::new(&timer);
        let (ran, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let meet = Arc::new(Barrier::new(2));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (keyed, ran, ended) = (keyed.clone(), ran.clone(), ended.clone());
                let meet = meet.clone();
                thread::spawn(move || {
                    meet.wait();
                    for round in 0..20_000_u64 {
                        let ran = ran.clone();
                        let callback = move |_: &Context<'_>| {
                            ran.fetch_add(1, SeqCst);
                        };
                        let replaced = keyed.schedule(round % 5, MS * (round % 2) as u32, callback);
                        ended.fetch_add(usize::from(replaced.unwrap()), SeqCst);
                        if round % 7 == 0 {
                            ended.fetch_add(usize::from(keyed.cancel(&(round % 5))), SeqCst);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        eventually(|| keyed.is_empty());
        let counts = || ran.load(SeqCst) + ended.load(SeqCst);
        eventually(|| counts() == 40_000);
        timer.stop();
        assert_eq!(counts(), 40_000);
        accounted(&timer);
    });
}

#[test]
fn a_key_is_free_while_its_callback_runs() {
    let (keyed, _timer, clock) = keyed();
    let log = Log::new();
    fn next(keyed: KeyedTimer<u64>, log: Log<usize>, left: usize) {
        let own = keyed.clone();
        let callback = move |_: &Context<'_>| {
            log.add(own.len());
            if left > 0 {
                next(own.clone(), log, left - 1);
            }
        };
        assert!(!keyed.schedule(1, SECOND, callback).unwrap());
    }
    next(keyed.clone(), log.clone(), 9);
    clock.advance(SECOND * 20).unwrap();
    assert_eq!(log.take(), [0; 10]);
}

#[test]
fn a_timer_that_refuses_leaves_what_was_there() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).build().unwrap();
    let keyed: KeyedTimer<u64> = KeyedTimer::new(&timer);
    let log = Log::new();
    keyed.schedule(1, SECOND, writes(&log, "first")).unwrap();
    let refused = keyed.schedule(1, SECOND, writes(&log, "second"));
    assert!(matches!(refused, Err(ScheduleError::Full(_))));
    assert!(matches!(keyed.schedule(2, SECOND, |_| ()), Err(ScheduleError::Full(_))));
    let failing = |_: &Attempt| Err::<(), ()>(());
    let retry = keyed.retry(1, Backoff::new(SECOND), failing, |_| unreachable!());
    assert!(matches!(retry, Err(ScheduleError::Full(_))));
    assert_eq!(keyed.len(), 1);
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["first"]);
    assert!(keyed.is_empty());
}

/// A timer that is stopped drops its pending callbacks, and their keys.
#[test]
fn a_timer_that_is_stopped_leaves_no_keys() {
    let (keyed, timer, _clock) = keyed();
    let (drops, outcomes) = (Drops::new(), Log::new());
    for key in 0..10 {
        let kept = drops.one();
        keyed.schedule(key, SECOND, move |_| drop(kept)).unwrap();
    }
    let told = outcomes.clone();
    let job = |_: &Attempt| Err::<(), ()>(());
    keyed.retry(10, Backoff::new(SECOND), job, move |outcome| told.add(outcome)).unwrap();
    assert_eq!(keyed.len(), 11);
    drop(timer.stop());
    assert_eq!((keyed.len(), drops.count()), (0, 10));
    assert_eq!(outcomes.take(), [Retried::Stopped]);
    assert!(matches!(keyed.schedule(1, SECOND, |_| ()), Err(ScheduleError::Stopped(_))));
    assert!(matches!(keyed.schedule_if_absent(1, SECOND, |_| ()), Err(ScheduleError::Stopped(_))));
}

#[test]
fn dropping_the_last_clone_cancels_all() {
    let (keyed, timer, clock) = keyed();
    let drops = Drops::new();
    for key in 0..10 {
        let kept = drops.one();
        keyed.schedule(key, SECOND, move |_| drop(kept)).unwrap();
    }
    let clone = keyed.clone();
    drop(keyed);
    assert_eq!((drops.count(), timer.len()), (0, 10));
    assert_eq!(clone.clear(), 10);
    assert_eq!((drops.count(), timer.len(), clone.len()), (10, 0, 0));
    let kept = drops.one();
    clone.schedule(1, SECOND, move |_| drop(kept)).unwrap();
    drop(clone);
    assert_eq!((drops.count(), timer.len()), (11, 0));
    clock.advance(SECOND).unwrap();
}

#[test]
fn what_panics_is_contained() {
    let (keyed, timer, clock) = keyed();
    keyed.schedule(1, SECOND, |_| panic_quietly()).unwrap();
    let fragile = PanicsWhenDropped;
    keyed.schedule(2, SECOND, move |_| drop(fragile)).unwrap();
    let fragile = PanicsWhenDropped;
    keyed.schedule(3, SECOND, move |_| drop(fragile)).unwrap();
    assert!(keyed.cancel(&3));
    assert_eq!(timer.counts().panicked, 1);
    clock.advance(SECOND).unwrap();
    assert_eq!((timer.counts().panicked, keyed.len()), (3, 0));
    accounted(&timer);
}

/// All keys have the same hash, and panic when dropped.
#[test]
fn keys_that_collide_are_told_apart() {
    #[derive(PartialEq, Eq)]
    struct Key(u32);
    impl Hash for Key {
        fn hash<H: Hasher>(&self, _: &mut H) {}
    }
    impl Drop for Key {
        fn drop(&mut self) {
            if self.0 == 7 {
                panic_quietly();
            }
        }
    }
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    let (keyed, log) = (KeyedTimer::new(&timer), Log::new());
    for key in 0..20 {
        let told = log.clone();
        keyed.schedule(Key(key), SECOND, move |_| told.add(key)).unwrap();
    }
    assert!(keyed.cancel(&Key(4)) && keyed.is_pending(&Key(5)) && !keyed.is_pending(&Key(4)));
    clock.advance(SECOND).unwrap();
    let mut ran = log.take();
    ran.sort_unstable();
    assert_eq!(ran, (0..20).filter(|&key| key != 4).collect::<Vec<_>>());
    assert_eq!((keyed.len(), timer.counts().panicked), (0, 1));
}

/// Keys come and go; the table shrinks to the keys that are there.
#[test]
fn a_life_beside_a_map() {
    let (keyed, timer, clock) = keyed();
    let mut rng = fastrand::Rng::with_seed(7);
    let log = Log::new();
    let (mut now, mut model) = (0_u64, std::collections::BTreeMap::new());
    for number in 0..20_000_u64 {
        let key = rng.u64(0..50);
        let after = rng.u64(1..200);
        match rng.u32(0..10) {
            0..4 => {
                let told = log.clone();
                let callback = move |_: &Context<'_>| told.add((key, number));
                let replaced = keyed.schedule(key, MS * after as u32, callback).unwrap();
                assert_eq!(replaced, model.insert(key, (now + after, number)).is_some());
            }
            4 => {
                let told = log.clone();
                let callback = move |_: &Context<'_>| told.add((key, number));
                let back = keyed.schedule_if_absent(key, MS * after as u32, callback).unwrap();
                assert_eq!(back.is_some(), model.contains_key(&key));
                model.entry(key).or_insert((now + after, number));
            }
            5 => {
                let moved = keyed.reschedule(&key, MS * after as u32).is_ok();
                assert_eq!(moved, model.contains_key(&key));
                model.entry(key).and_modify(|slot| slot.0 = now + after);
            }
            6 => assert_eq!(keyed.cancel(&key), model.remove(&key).is_some()),
            _ => {
                now += after / 10;
                clock.advance(MS * (after / 10) as u32).unwrap();
                let mut expected: Vec<_> = model.extract(|slot| slot.0 <= now);
                let mut ran = log.take();
                expected.sort_unstable();
                ran.sort_unstable();
                assert_eq!(ran, expected);
            }
        }
        assert_eq!((keyed.len(), timer.len()), (model.len(), model.len()));
    }
}

trait Extract {
    fn extract(&mut self, due: impl Fn(&(u64, u64)) -> bool) -> Vec<(u64, u64)>;
}

impl Extract for std::collections::BTreeMap<u64, (u64, u64)> {
    /// Removes the due timers; returns their keys and their numbers.
    fn extract(&mut self, due: impl Fn(&(u64, u64)) -> bool) -> Vec<(u64, u64)> {
        let taken =
            self.iter().filter(|slot| due(slot.1)).map(|(&key, slot)| (key, slot.1)).collect();
        self.retain(|_, slot| !due(slot));
        taken
    }
}

#[test]
fn a_retry_keeps_its_key_until_its_outcome() {
    let (keyed, timer, clock) = keyed();
    let log = Log::new();
    let (told, heard, own) = (log.clone(), log.clone(), keyed.clone());
    let job = move |attempt: &Attempt| {
        told.add(format!("try {}", attempt.number()));
        if attempt.number() == 3 { Ok("done") } else { Err("no") }
    };
    let then = move |outcome| heard.add(format!("{outcome:?}, {} keys", own.len()));
    assert!(!keyed.retry(1, Backoff::new(SECOND), job, then).unwrap());
    clock.advance(MS).unwrap();
    assert_eq!(log.take(), ["try 1"]);
    assert!(keyed.is_pending(&1));
    assert_eq!(keyed.deadline(&1), Some(timer.now() + SECOND - MS));
    // The next try is moved earlier.
    keyed.reschedule(&1, MS).unwrap();
    clock.advance(MS).unwrap();
    assert_eq!(log.take(), ["try 2"]);
    clock.advance(SECOND * 2).unwrap();
    assert_eq!(log.take(), ["try 3", "Success(\"done\"), 0 keys"]);
    accounted(&timer);
}

#[test]
fn a_retry_that_gives_up_panics_or_is_replaced_frees_its_key() {
    let (keyed, timer, clock) = keyed();
    let outcomes = Log::new();
    let told = || {
        let outcomes = outcomes.clone();
        move |outcome: Retried<(), u32>| outcomes.add(outcome)
    };
    keyed.retry(1, Backoff::new(SECOND).tries(2), |_| Err(7), told()).unwrap();
    keyed.retry(2, Backoff::new(SECOND), |_| panic_quietly(), told()).unwrap();
    keyed.retry(3, Backoff::new(SECOND), |_| Err(8), told()).unwrap();
    keyed.retry(4, Backoff::new(SECOND), |_| Err(9), told()).unwrap();
    clock.advance(MS).unwrap();
    assert_eq!((outcomes.take(), keyed.len()), (vec![Retried::Panicked], 3));
    assert!(keyed.schedule(3, HOUR, |_| ()).unwrap(), "it replaces the retry");
    assert!(keyed.cancel(&4));
    assert_eq!(outcomes.take(), [Retried::Cancelled, Retried::Cancelled]);
    clock.advance(SECOND * 60).unwrap();
    assert_eq!(outcomes.take(), [Retried::GaveUp { error: 7, tries: 2 }]);
    assert_eq!((keyed.len(), timer.len()), (1, 1));
}

/// A retry is replaced during a try: that try finishes, and no other starts.
#[test]
fn a_retry_that_is_replaced_during_a_try_is_not_tried_again() {
    within(|| {
        let (timer, clock) = virtual_on("pool");
        let keyed: KeyedTimer<u64> = KeyedTimer::new(&timer);
        let (entered, leave) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (tries, outcomes) = (Arc::new(AtomicUsize::new(0)), Log::new());
        let (says, waits, count) = (entered.clone(), leave.clone(), tries.clone());
        let job = move |_: &Attempt| {
            count.fetch_add(1, SeqCst);
            says.store(true, SeqCst);
            eventually(|| waits.load(SeqCst));
            Err::<(), _>("no")
        };
        let told = outcomes.clone();
        keyed.retry(1, Backoff::new(MS), job, move |outcome| told.add(outcome)).unwrap();
        let own = clock.clone();
        let advancing = thread::spawn(move || own.advance(MS));
        eventually(|| entered.load(SeqCst));
        assert!(keyed.is_pending(&1));
        assert!(keyed.schedule(1, HOUR, |_| ()).unwrap());
        leave.store(true, SeqCst);
        eventually(|| outcomes.len() == 1);
        assert_eq!(outcomes.take(), [Retried::Cancelled]);
        advancing.join().unwrap().unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!((tries.load(SeqCst), keyed.len()), (1, 1), "the new one stays");
    });
}

/// Two retries are due at the same moment on one thread: the first to run cancels the other, which is ready and has not
/// run.
#[test]
fn a_try_that_fired_but_was_cancelled_before_it_ran_does_not_run() {
    let (keyed, _timer, clock) = keyed();
    let (ran, outcomes) = (Log::new(), Log::new());
    let cancelled: Arc<Mutex<Vec<bool>>> = Arc::default();
    for key in [1, 2] {
        let (own, ran, told) = (keyed.clone(), ran.clone(), outcomes.clone());
        let cancelled = cancelled.clone();
        let job = move |_: &Attempt| {
            ran.add(key);
            cancelled.lock().unwrap().push(own.cancel(&(3 - key)));
            Ok::<_, ()>(key)
        };
        keyed.retry(key, Backoff::new(SECOND), job, move |outcome| told.add(outcome)).unwrap();
    }
    clock.advance(SECOND).unwrap();
    let ran = ran.take();
    assert_eq!((ran.len(), cancelled.lock().unwrap().clone()), (1, vec![true]));
    assert_eq!(outcomes.take(), [Retried::Cancelled, Retried::Success(ran[0])]);
    assert!(keyed.is_empty());
}

/// No lock of the keys is held while the driver's thread is started: the hook that starts it is user code.
#[test]
fn a_spawn_hook_may_use_the_keys_that_it_starts_a_thread_for() {
    type Verb = fn(&KeyedTimer<u32>) -> bool;
    let verbs: [Verb; 3] = [
        |keyed| keyed.schedule(1, HOUR, |_| ()).unwrap(),
        |keyed| keyed.schedule_if_absent(1, HOUR, |_| ()).unwrap().is_some(),
        |keyed| {
            let fails = |_: &Attempt| Err::<(), ()>(());
            keyed.retry(1, Backoff::new(HOUR), fails, |_| ()).unwrap()
        },
    ];
    for verb in verbs {
        within(move || {
            let (own, log): (Arc<OnceLock<KeyedTimer<u32>>>, _) = (Arc::default(), Log::new());
            let (inner, told) = (own.clone(), log.clone());
            let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
                told.add(inner.get().is_some_and(|keyed| keyed.is_pending(&1)));
                thread::Builder::new().name(name).spawn(body).map(drop)
            };
            let timer = Timer::builder().on_driver().spawn(spawn).build().unwrap();
            let keyed = KeyedTimer::new(&timer);
            let _ = own.set(keyed.clone());
            assert!(!verb(&keyed), "nothing was replaced");
            assert_eq!(
                log.take(),
                [false],
                "the thread is started once, and before the key is put"
            );
            assert!(keyed.is_pending(&1));
            timer.stop();
        });
    }
}
