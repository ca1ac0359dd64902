//! The timers that take part.

use std::future::{Pending, pending};
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use futures_lite::FutureExt;
use pingora_timeout::Timeout;
use pingora_timeout::fast_timeout::{FastOrTokioTimeout, fast_timeout};
use tourbillon::tasks::{self, Given};

use super::contestant::Contestant;
use super::figure::{Kind, Row};
use super::memory::Memory;
use crate::league::{Entrants, Of};

/// Everybody, in the order of the tables.
pub fn all() -> Entrants<Row> {
    vec![
        Of::<Default>::boxed(),
        Of::<OnTimer>::boxed(),
        Of::<Tokio>::boxed(),
        Of::<FuturesTimer>::boxed(),
        Of::<AsyncIo>::boxed(),
        Of::<Pingora>::boxed(),
        Of::<Memory>::boxed(),
    ]
}

struct Default;

impl Contestant for Default {
    type Sleep = tasks::Sleep;
    const NAME: &'static str = "tourbillon";
    const KIND: Kind = Kind::Ours;
    const SETTINGS: &'static str = "the default engine, tick 1 ms, a shard a core";

    #[inline]
    fn sleep(after: Duration) -> tasks::Sleep {
        tasks::sleep(after)
    }

    fn sleep_until(at: Instant) -> impl Future + Send + 'static {
        tasks::sleep_until(at)
    }

    #[inline]
    fn timeout<F: Future>(after: Duration, future: F) -> impl Future {
        tasks::timeout(after, future)
    }

    #[inline]
    fn reset(sleep: Pin<&mut tasks::Sleep>, after: Duration) {
        sleep.get_mut().reset(after);
    }
}

struct OnTimer;

static TIMER: LazyLock<tourbillon::Timer> = LazyLock::new(tourbillon::Timer::new);

impl Contestant for OnTimer {
    type Sleep = tasks::Sleep<Given>;
    const NAME: &'static str = "tourbillon on a Timer";
    const KIND: Kind = Kind::Ours;
    const SETTINGS: &'static str = "the same settings, on a Timer that may be stopped";

    #[inline]
    fn sleep(after: Duration) -> Self::Sleep {
        TIMER.sleep(after)
    }

    fn sleep_until(at: Instant) -> impl Future + Send + 'static {
        TIMER.sleep_until(at)
    }

    #[inline]
    fn timeout<F: Future>(after: Duration, future: F) -> impl Future {
        TIMER.timeout(after, future)
    }

    #[inline]
    fn reset(sleep: Pin<&mut Self::Sleep>, after: Duration) {
        sleep.get_mut().reset(after);
    }
}

struct Tokio;

impl Contestant for Tokio {
    type Sleep = tokio::time::Sleep;
    const NAME: &'static str = "tokio";
    const KIND: Kind = Kind::Tokio;
    const SETTINGS: &'static str = "tokio::time, multi-thread runtime, with parking_lot";

    #[inline]
    fn sleep(after: Duration) -> Self::Sleep {
        tokio::time::sleep(after)
    }

    fn sleep_until(at: Instant) -> impl Future + Send + 'static {
        tokio::time::sleep_until(at.into())
    }

    #[inline]
    fn timeout<F: Future>(after: Duration, future: F) -> impl Future {
        tokio::time::timeout(after, future)
    }

    #[inline]
    fn reset(sleep: Pin<&mut Self::Sleep>, after: Duration) {
        sleep.reset(tokio::time::Instant::now() + after);
    }
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

    fn absent(row: Row) -> Option<&'static str> {
        (row == Row::Reset).then_some("it has no reset")
    }
}
