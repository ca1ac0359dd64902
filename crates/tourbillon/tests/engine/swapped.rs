//! An executor that keeps a job and returns another one in its place.
//!
//! In real time, with a clock that is set by hand: on a virtual clock an advance offers refused jobs again at once.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use crate::common::{HandClock, Log, MS, SECOND, accounted, arm_in_shard, case, eventually};
use tourbillon::{Job, Timer};

/// The returned job may be of another shard. Both shards are offered again.
#[test]
fn an_executor_that_returns_a_job_of_another_shard_is_offered_the_rest_again() {
    for crowded in [0, 1] {
        case(format!("the crowd is in shard {crowded}"), move || {
            let kept = Arc::new(Mutex::new(None::<Job>));
            let (place, calls) = (kept.clone(), AtomicU64::new(0));
            let execute = move |job: Job| match calls.fetch_add(1, SeqCst) {
                0 => {
                    *place.lock().unwrap() = Some(job);
                    Ok(())
                }
                1 => Err(place.lock().unwrap().replace(job).unwrap()),
                _ => {
                    job.run();
                    Ok(())
                }
            };
            let (clock, ran) = (HandClock::new(), Log::new());
            let builder = Timer::builder().shards(2).clock(clock.clone()).executor(execute);
            let timer = builder.build().unwrap();
            let (log, alone) = (ran.clone(), 1 - crowded);
            arm_in_shard(&timer, alone, move |timer| {
                let log = log.clone();
                timer.arm(MS, move |_| log.add("alone")).unwrap();
            });
            clock.forward(2 * MS);
            eventually(|| kept.lock().unwrap().is_some());
            let log = ran.clone();
            arm_in_shard(&timer, crowded, move |timer| {
                for name in ["a", "b", "c"] {
                    let log = log.clone();
                    timer.arm(MS, move |_| log.add(name)).unwrap();
                }
            });
            // Nothing else becomes due: what was not accepted is offered again after a wait.
            let rest = || {
                clock.forward(SECOND);
                ran.len() == 3
            };
            eventually(rest);
            let last = kept.lock().unwrap().take();
            last.unwrap().run();
            let mut all = ran.take();
            all.sort_unstable();
            assert_eq!(all, ["a", "alone", "b", "c"]);
            accounted(&timer);
        });
    }
}
