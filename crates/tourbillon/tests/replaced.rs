//! The default engine is replaced for the whole process: hence a test file of its own, with one test.

use std::time::Duration;

use tourbillon::tasks::{self, Instant};
use tourbillon::{Timer, VirtualClock};

const HOUR: Duration = Duration::from_secs(3600);

fn timer() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().clock(&clock).build().unwrap(), clock)
}

#[test]
fn the_process_has_a_switch() {
    let ((first, early), (second, late)) = (timer(), timer());
    late.advance(HOUR).unwrap();
    let one = tasks::replace_default(&first);
    let other = tasks::replace_default(&second);
    let elsewhere = || std::thread::spawn(Instant::now).join().unwrap();
    assert_eq!(elsewhere(), late.now(), "the last counts");
    drop(one);
    assert_eq!(elsewhere(), late.now(), "and goes on");
    let again = tasks::replace_default(&first);
    assert_eq!(elsewhere(), early.now());
    let scoped = tasks::with_timer(&second, Instant::now);
    assert_eq!(scoped, late.now(), "a scope is nearer");
    drop((again, other));
    let before = std::time::Instant::now();
    assert!(elsewhere() >= before);
}
