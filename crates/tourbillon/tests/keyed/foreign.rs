//! User code at its worst: drops, clocks and comparisons that query the keys, wait or panic.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::common::{Drops, HOUR, Log, MS, SECOND, eventually, panic_quietly, within};
use tourbillon::{Attempt, Backoff, Clock, KeyedTimer, Retried, Sleeper, Timer};

/// The drop of a replaced job takes long; meanwhile the retry ends.
#[test]
fn what_a_job_under_a_key_held_goes_before_its_outcome_is_told() {
    struct Waits(Arc<AtomicBool>);
    impl Drop for Waits {
        fn drop(&mut self) {
            eventually(|| self.0.load(SeqCst));
        }
    }
    let timer = Timer::new();
    let keyed = KeyedTimer::new(&timer);
    let (heard, drops, log) = (Arc::new(AtomicBool::new(false)), Drops::new(), Log::new());
    let waits = Waits(heard.clone());
    keyed.schedule(1, HOUR, move |_| drop(waits)).unwrap();
    let (held, dropped, told) = (drops.one(), drops.clone(), log.clone());
    let job = move |_: &Attempt| {
        let _held = &held;
        Ok::<_, ()>(())
    };
    let then = move |_: Retried<(), ()>| {
        told.add(dropped.count());
        heard.store(true, SeqCst);
    };
    keyed.retry(1, Backoff::new(MS), job, then).unwrap();
    assert_eq!(log.take(), [1]);
}

/// A clock is user code, too.
#[test]
fn a_clock_may_look_at_the_keys() {
    static KEYED: OnceLock<KeyedTimer<u64>> = OnceLock::new();
    struct Looks(Instant);
    impl Clock for Looks {
        fn now(&self) -> Instant {
            KEYED.get().map(KeyedTimer::len);
            self.0
        }
        fn wait(&self, _: Option<Instant>, sleeper: &Sleeper) {
            sleeper.sleep(Some(MS));
        }
    }
    within(|| {
        let timer = Timer::builder().clock(Looks(Instant::now())).build().unwrap();
        let keyed = KeyedTimer::new(&timer);
        assert!(KEYED.set(keyed.clone()).is_ok());
        keyed.schedule(1, SECOND, |_| ()).unwrap();
        keyed.reschedule(&1, HOUR).unwrap();
        assert!(keyed.deadline(&1).is_some());
        keyed.retry(1, Backoff::new(HOUR), |_| Err::<(), _>(()), |_| ()).unwrap();
        // Its first try may be running at this moment.
        let _ = keyed.reschedule(&1, HOUR);
        assert!(keyed.cancel(&1));
    });
}

/// Waking the loop that drives a timer is user code, which may query the keys.
#[test]
fn a_loop_that_is_woken_may_look_at_the_keys() {
    within(|| {
        let (timer, mut driver) = Timer::builder().build_driven().unwrap();
        let (keyed, log) = (KeyedTimer::new(&timer), Log::new());
        let (looks, seen) = (keyed.clone(), log.clone());
        driver.on_wake(move || seen.add((looks.len(), looks.is_pending(&1))));
        keyed.schedule(1, HOUR * 3, |_| ()).unwrap();
        assert_eq!(log.take(), [(1, true)], "told once, when the key was there");
        driver.turn();
        keyed.reschedule(&1, HOUR * 2).unwrap();
        assert_eq!(log.take(), [(1, true)], "moved to earlier");
        driver.turn();
        assert!(keyed.schedule(1, HOUR, |_| ()).unwrap());
        assert_eq!(log.take(), [(1, true)], "replaced");
        driver.turn();
        keyed.retry(2, Backoff::new(HOUR), |_| Err::<(), _>(()), |_| ()).unwrap();
        assert_eq!(log.take(), [(2, true)]);
        // The hook keeps the keys.
        drop(driver);
    });
}

/// An insertion makes all comparisons of its key before it arms the timer.
#[test]
fn a_comparison_that_panics_leaves_no_timer_and_holds_no_lock() {
    struct Moody(u32, Option<KeyedTimer<Moody>>, Log<usize>);
    impl Hash for Moody {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    impl PartialEq for Moody {
        fn eq(&self, other: &Self) -> bool {
            self.2.add(0);
            if self.1.is_some() || other.1.is_some() {
                panic_quietly();
            }
            self.0 == other.0
        }
    }
    impl Eq for Moody {}
    impl Drop for Moody {
        fn drop(&mut self) {
            if let Some(keyed) = &self.1 {
                self.2.add(keyed.len());
            }
        }
    }
    within(|| {
        let (timer, log) = (Timer::new(), Log::new());
        let keyed = KeyedTimer::new(&timer);
        let key = |own| Moody(1, own, log.clone());
        keyed.schedule(key(None), HOUR, |_| ()).unwrap();
        assert!(keyed.schedule(key(None), HOUR, |_| ()).unwrap());
        assert_eq!(log.take(), [0], "one comparison");
        let moody = key(Some(keyed.clone()));
        let put = || keyed.schedule(moody, HOUR, |_| ()).is_ok();
        assert!(catch_unwind(AssertUnwindSafe(put)).is_err());
        assert_eq!(log.take(), [0, 1], "one comparison, and a look from its drop");
        assert_eq!((keyed.len(), timer.len()), (1, 1));
    });
}
