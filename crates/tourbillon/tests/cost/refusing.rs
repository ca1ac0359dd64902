//! An executor that refuses jobs is offered them ever less often. In real time.

use std::sync::Mutex;
use std::time::Duration;

use crate::common::{MS, panic_quietly};
use crate::meter::{End, Row, stand};
use tourbillon::{Executor, Job, Timer};

const TIME: Duration = Duration::from_millis(100);

/// Ten timers are due, and the executor runs none of them.
fn refused(shards: usize, executor: impl Executor) -> End {
    let timer = Timer::builder().shards(shards).executor(executor).build().unwrap();
    (0..10).for_each(|_| _ = timer.arm(MS, |_| ()).unwrap());
    Box::new(move || assert_eq!(timer.stop().len(), 10))
}

#[test]
fn an_executor_that_takes_no_jobs_is_seldom_asked() {
    let rows = [
        Row::new("gives them back", 30, || refused(1, Err::<(), Job>)),
        Row::new("gives them back, four shards", 30, || refused(4, Err::<(), Job>)),
        Row::new("panics", 30, || refused(1, |_| panic_quietly())),
        Row::new("keeps them", 30, || {
            let kept = Mutex::new(Vec::new());
            refused(1, move |job| {
                kept.lock().unwrap().push(job);
                Ok(())
            })
        }),
        // The executor accepts the jobs and drops them: they are offered again once a millisecond.
        Row::new("drops them", 2 * TIME.as_millis() as u64, || {
            refused(1, |job| {
                drop(job);
                Ok(())
            })
        }),
    ];
    stand(&rows, TIME);
}
