//! User code that panics leaves a consistent wheel.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tourbillon_wheel::{HashedWheel, HierarchicalWheel, Kind, Progress, Time, Wheel};

fn drain<T, K: Kind>(wheel: &mut Wheel<T, K>, now: u64) -> usize {
    let mut fired = 0;
    while wheel.advance(Time::from(now), 7) != Progress::Done || wheel.ready() > 0 {
        wheel.check().unwrap();
        fired += std::iter::from_fn(|| wheel.pop()).count();
    }
    fired
}

#[test]
fn a_watcher_that_panics_loses_nothing() {
    let mut wheel = HierarchicalWheel::with_levels(Time::ZERO, 1, &[64]).unwrap();
    for n in 0..1_000 {
        wheel.insert(Time::from(5_000 + n % 50), n).unwrap();
    }
    for panic_at in [1, 2, 40, 70] {
        let mut seen = 0;
        let caught = catch_unwind(AssertUnwindSafe(|| {
            wheel.advance_watched(Time::from(4_999), usize::MAX, |_| {
                seen += 1;
                assert!(seen != panic_at, "on purpose");
            })
        }));
        assert!(caught.is_err());
        wheel.check().unwrap();
    }
    assert_eq!(drain(&mut wheel, 6_000), 1_000);
}

struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0 || std::thread::panicking(), "on purpose");
    }
}

fn a_value_that_panics_when_it_is_dropped<K: Kind>(mut wheel: Wheel<Bomb, K>) {
    for n in 0..100 {
        wheel.insert(Time::from(n), Bomb(n % 40 == 7)).ok().unwrap();
    }
    let mut panics = 0;
    while !wheel.is_empty() {
        panics += u32::from(catch_unwind(AssertUnwindSafe(|| wheel.clear())).is_err());
        wheel.check().unwrap();
    }
    assert_eq!(panics, 3);
    wheel.insert(Time::from(5), Bomb(false)).ok().unwrap();
    assert_eq!(drain(&mut wheel, 5), 1);
}

#[test]
fn a_value_that_panics_when_it_is_dropped_does_not_break_a_clear() {
    a_value_that_panics_when_it_is_dropped(HierarchicalWheel::new(Time::ZERO));
    a_value_that_panics_when_it_is_dropped(HashedWheel::new(Time::ZERO));
}
