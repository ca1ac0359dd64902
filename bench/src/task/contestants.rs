//! The timers that take part.

use std::pin::Pin;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tourbillon::tasks::{self, Given};

use super::contestant::Contestant;
use super::memory::Memory;
use super::of;
use crate::league::{self, Kind};

/// All contestants, in the order of the tables.
pub fn all() -> Vec<league::Contestant> {
    let mut all = vec![of::<Default>(), of::<OnTimer>(), of::<Tokio>()];
    #[cfg(feature = "peers")]
    all.extend(super::peers::all());
    all.push(of::<Memory>());
    all
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
        sleep.get_mut().reset_after(after);
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
        sleep.get_mut().reset_after(after);
    }
}

struct Tokio;

impl Contestant for Tokio {
    type Sleep = tokio::time::Sleep;
    const NAME: &'static str = "tokio";
    const KIND: Kind = Kind::Peer;
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
