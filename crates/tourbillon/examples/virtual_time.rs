//! One test, in virtual time, on tokio and on smol: hours pass in milliseconds, and every run is the same.
//!
//! `cargo run -p tourbillon --features tokio --example virtual_time`
//!
//! The code under test is a client that retries for up to two hours, each time after twice the delay. It takes a
//! `Timer`, so that a test can pass a timer whose clock the test advances.
//!
//! With several threads, no runtime can tell that all of them wait, so the clock cannot jump by itself; calling
//! `VirtualClock::advance` works on any runtime.

use std::time::{Duration, Instant};

use async_executor::LocalExecutor;
use tourbillon::tasks::{self, SleepError};
use tourbillon::{Timer, VirtualClock};

/// Tries until it succeeds or the two hours are over; returns the number of tries.
async fn connect(timer: &Timer, up_at: Instant) -> Result<Option<u32>, SleepError> {
    let mut tries = 0;
    let attempts = async {
        let mut pause = Duration::from_secs(1);
        loop {
            tries += 1;
            if timer.now() >= up_at {
                return Ok(());
            }
            timer.sleep(pause).await?;
            pause *= 2;
        }
    };
    match timer.timeout(Duration::from_secs(2 * 3600), attempts).await? {
        Ok(done) => done.map(|()| Some(tries)),
        Err(tasks::Elapsed) => Ok(None),
    }
}

/// The test. It does not depend on the runtime.
async fn test(timer: Timer, clock: VirtualClock) -> Result<(), SleepError> {
    let begin = timer.now();
    let in_an_hour = connect(&timer, begin + Duration::from_secs(3600)).await?;
    // 1 + 2 + 4 + … + 2048 s.
    assert_eq!((in_an_hour, clock.elapsed().as_secs()), (Some(13), 4095));
    let never = connect(&timer, begin + Duration::from_secs(1_000_000)).await?;
    assert_eq!((never, clock.elapsed().as_secs()), (None, 4095 + 7200));
    Ok(())
}

fn engine() -> Result<(Timer, VirtualClock), tourbillon::BuildError> {
    let clock = VirtualClock::new();
    Ok((Timer::builder().clock(&clock).build()?, clock))
}

fn tell(runtime: &str, clock: &VirtualClock, began: Instant) {
    let (passed, took) = (clock.elapsed().as_secs(), began.elapsed());
    println!("{runtime:<44} {passed} s have passed, and it took {took:?}");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // tokio calls a hook when its thread becomes idle; in that hook the clock jumps to the next deadline.
    let (timer, clock) = engine()?;
    let began = Instant::now();
    let tokio = tasks::virtual_runtime(&clock)?;
    let task = tokio.spawn(test(timer, clock.clone()));
    tokio.block_on(task)??;
    tell("tokio, jumping when its thread parks:", &clock, began);

    // smol's executor has no such hook, so it runs inside a `block_on`, which detects when everything in it waits.
    let (timer, clock) = engine()?;
    let (smol, began) = (LocalExecutor::new(), Instant::now());
    let task = smol.spawn(test(timer, clock.clone()));
    tasks::block_on(&clock, smol.run(task))??;
    tell("smol, jumping when its executor waits:", &clock, began);
    Ok(())
}
