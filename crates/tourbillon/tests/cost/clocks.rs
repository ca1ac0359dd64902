//! A thread that waits for a user-defined clock which panics does not spin.
//!
//! In real time: the kernel measures what a wait costs.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::common::faces::FACES;
use crate::common::{HOUR, MS, SECOND, panic_quietly, running_on};
use crate::meter::{End, Row, stand};
use tourbillon::{Clock, Sleeper, Timer};

const TIME: Duration = Duration::from_millis(50);

/// The system's clock as a user-defined clock, one part of which panics from some moment on.
struct Panics {
    from_now_on: Arc<AtomicBool>,
    part: &'static str,
}

impl Panics {
    fn in_the(&self, part: &str) {
        if self.part == part && self.from_now_on.load(SeqCst) {
            panic_quietly();
        }
    }
}

impl Clock for Panics {
    fn now(&self) -> Instant {
        self.in_the("reading");
        Instant::now()
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        self.in_the("wait");
        sleeper.sleep(until.map(|until| until.saturating_duration_since(self.now())));
    }
}

/// A user-defined clock that panics stands still, and a thread that waits for it reads it once a millisecond.
#[test]
fn clocks_that_panic() {
    let sleepers = ["Timer::arm", "Engine", "a driven timer", "DelayQueue::take"];
    let some = FACES.iter().filter(|face| sleepers.contains(&face.name));
    let rows = some.flat_map(|face| {
        ["reading", "wait"].map(|part| {
            let begin = move || -> End {
                let from_now_on = Arc::new(AtomicBool::new(false));
                let clock = Panics { from_now_on: from_now_on.clone(), part };
                let place = if face.callbacks { running_on("driver") } else { Timer::builder() };
                let arm = (face.open)(place.clock(clock));
                let (done, happened) = mpsc::channel();
                arm(MS, Box::new(move || done.send(()).unwrap()));
                happened.recv_timeout(20 * SECOND).expect("it happens");
                arm(HOUR, Box::new(|| ()));
                from_now_on.store(true, SeqCst);
                // Wakes the thread that sleeps for the hour.
                arm(MS, Box::new(|| ()));
                Box::new(move || drop(arm))
            };
            let name = format!("{}, a clock whose {part} panics", face.name);
            Row::new(&name, 3 * TIME.as_millis() as u64, begin)
        })
    });
    stand(&rows.collect::<Vec<_>>(), TIME);
}
