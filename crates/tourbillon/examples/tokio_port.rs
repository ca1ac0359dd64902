//! A small service and its paused tests, ported from `tokio::time` by changing its imports.
//!
//! `cargo run -p tourbillon --features tokio --example tokio_port`; for the tests, `cargo test` with the same
//! arguments.
//!
//! The imports were `use tokio::time::{self, Duration, Instant};`. Each test has one more line, `time::pause()`.
//! Nothing else has changed.

use std::time::Duration;
use tourbillon::tasks::{self as time, Instant};

/// How often a heartbeat is sent, and how long an answer may take.
const BEAT: Duration = Duration::from_millis(300);
const LIMIT: Duration = Duration::from_millis(500);

/// A server that takes this long to answer.
async fn ask(takes: Duration) -> &'static str {
    time::sleep(takes).await;
    "an answer"
}

/// Requests an answer, at most three times; the pause in between doubles.
async fn ask_patiently(takes: Duration) -> Result<&'static str, time::Elapsed> {
    let mut pause = Duration::from_millis(100);
    for _ in 0..2 {
        match time::timeout(LIMIT, ask(takes)).await {
            Ok(answer) => return Ok(answer),
            Err(_) => time::sleep(pause).await,
        }
        pause *= 2;
    }
    time::timeout(LIMIT, ask(takes)).await
}

/// Sends heartbeats until the deadline, and returns their number.
async fn beat_until(deadline: Instant) -> u32 {
    let (mut beats, mut interval) = (0, time::interval(BEAT));
    let end = time::sleep_until(deadline);
    tokio::pin!(end);
    loop {
        tokio::select! {
            biased;
            () = &mut end => return beats,
            _ = interval.tick() => beats += 1,
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let begin = Instant::now();
    let (answer, beats) =
        tokio::join!(ask_patiently(Duration::from_millis(200)), beat_until(begin + 4 * BEAT));
    println!("{answer:?} and {beats} beats after {} ms", begin.elapsed().as_millis());
    let slow = ask_patiently(Duration::from_secs(9)).await;
    println!("{slow:?} after {} ms", begin.elapsed().as_millis());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_quick_answer_comes_at_once() {
        let _paused = time::pause();
        let begin = Instant::now();
        assert_eq!(ask_patiently(Duration::from_millis(400)).await, Ok("an answer"));
        assert_eq!(begin.elapsed(), Duration::from_millis(400));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_server_is_given_up() {
        let _paused = time::pause();
        let begin = Instant::now();
        assert!(ask_patiently(Duration::from_secs(3600)).await.is_err());
        assert_eq!(begin.elapsed(), 3 * LIMIT + Duration::from_millis(100 + 200));
    }

    #[tokio::test(start_paused = true)]
    async fn beats_are_counted_over_an_hour() {
        let _paused = time::pause();
        let hour = Duration::from_secs(3600);
        let beats = tokio::spawn(beat_until(Instant::now() + hour));
        assert_eq!(beats.await.unwrap(), 12_000);
    }

    #[tokio::test(start_paused = true)]
    async fn time_is_moved_by_hand() {
        let _paused = time::pause();
        let asking = tokio::spawn(ask(Duration::from_secs(60)));
        tokio::task::yield_now().await;
        time::advance(Duration::from_secs(59)).await;
        assert!(!asking.is_finished());
        time::advance(Duration::from_secs(1)).await;
        assert_eq!(asking.await.unwrap(), "an answer");
    }
}
