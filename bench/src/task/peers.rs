//! Third-party timers for async tasks: built with the feature `peers`.

use std::future::{Pending, pending};
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_lite::FutureExt;
use pingora_timeout::Timeout;
use pingora_timeout::fast_timeout::{FastOrTokioTimeout, fast_timeout};

use super::contestant::Contestant;
use super::of;
use crate::league::{self, Kind};

/// The peers, in the order of the tables.
pub fn all() -> Vec<league::Contestant> {
    vec![of::<FuturesTimer>(), of::<AsyncIo>(), of::<Pingora>()]
}

struct FuturesTimer;

impl Contestant for FuturesTimer {
    type Sleep = futures_timer::Delay;
    const NAME: &'static str = "futures-timer";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str = "a heap on a thread of its own; no timeout, so one of `or`";

    #[inline]
    fn sleep(after: Duration) -> Self::Sleep {
        futures_timer::Delay::new(after)
    }

    fn sleep_until(at: Instant) -> impl Future + Send + 'static {
        futures_timer::Delay::new(at.saturating_duration_since(Instant::now()))
    }

    #[inline]
    fn timeout<F: Future>(after: Duration, future: F) -> impl Future {
        let limit = futures_timer::Delay::new(after);
        async { Some(future.await) }.or(async {
            limit.await;
            None
        })
    }

    #[inline]
    fn reset(sleep: Pin<&mut Self::Sleep>, after: Duration) {
        sleep.get_mut().reset(after);
    }
}

struct AsyncIo;

impl Contestant for AsyncIo {
    type Sleep = async_io::Timer;
    const NAME: &'static str = "async-io";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str = "smol's timers, a map behind a lock; no timeout, so one of `or`";

    #[inline]
    fn sleep(after: Duration) -> Self::Sleep {
        async_io::Timer::after(after)
    }

    fn sleep_until(at: Instant) -> impl Future + Send + 'static {
        async_io::Timer::at(at)
    }

    #[inline]
    fn timeout<F: Future>(after: Duration, future: F) -> impl Future {
        let limit = async_io::Timer::after(after);
        async { Some(future.await) }.or(async {
            limit.await;
            None
        })
    }

    #[inline]
    fn reset(sleep: Pin<&mut Self::Sleep>, after: Duration) {
        sleep.get_mut().set_after(after);
    }
}

struct Pingora;

impl Contestant for Pingora {
    type Sleep = Timeout<Pending<()>, FastOrTokioTimeout>;
    const NAME: &'static str = "pingora-timeout";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str =
        "fast_timeout: tick 10 ms, timers shared, counted from the first poll";

    #[inline]
    fn sleep(after: Duration) -> Self::Sleep {
        fast_timeout(after, pending())
    }

    fn sleep_until(at: Instant) -> impl Future + Send + 'static {
        fast_timeout(at.saturating_duration_since(Instant::now()), pending::<()>())
    }

    #[inline]
    fn timeout<F: Future>(after: Duration, future: F) -> impl Future {
        fast_timeout(after, future)
    }

    fn absent(row: &str) -> Option<&'static str> {
        (row == "reset").then_some("it has no reset")
    }
}
