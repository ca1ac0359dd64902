//! No timer: only the work that no implementation can avoid.
//!
//! To reset a sleep, it reads the clock and writes the deadline into the future. To wake tasks, its thread has a list
//! of wakers for every millisecond, and calls them when they are due. There is no wheel, and nothing can be cancelled.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::contestant::Contestant;
use crate::league::Kind;

pub struct Memory;

/// A future as large as a sleep.
pub struct Place {
    at: Instant,
    _rest: [u64; 6],
}

impl Future for Place {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if Instant::now() < self.at { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// A future that adds its waker to the list of its millisecond.
struct Due {
    at: Instant,
    listed: bool,
}

impl Future for Due {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.listed {
            return Poll::Ready(());
        }
        self.listed = true;
        let tick = self.at.saturating_duration_since(LISTS.start).as_nanos().div_ceil(1_000_000);
        lock(&LISTS.wakers).entry(tick as u64).or_default().push(context.waker().clone());
        Poll::Pending
    }
}

struct Lists {
    start: Instant,
    wakers: Mutex<BTreeMap<u64, Vec<Waker>>>,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    thread::spawn(wake);
    Lists { start: Instant::now(), wakers: Mutex::default() }
});

/// Calls the wakers of due milliseconds, as long as the process runs.
fn wake() {
    loop {
        let next = lock(&LISTS.wakers).keys().next().copied();
        let rest = match next {
            Some(tick) => LISTS.start + Duration::from_millis(tick),
            None => Instant::now() + Duration::from_millis(50),
        };
        thread::sleep(rest.saturating_duration_since(Instant::now()));
        let due = next.and_then(|tick| lock(&LISTS.wakers).remove(&tick));
        due.into_iter().flatten().for_each(Waker::wake);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Contestant for Memory {
    type Sleep = Place;
    const NAME: &'static str = "the memory alone";
    const KIND: Kind = Kind::Floor;
    const SETTINGS: &'static str = "no timer: the clock, written into the future; lists of wakers";

    #[inline]
    fn sleep(after: Duration) -> Place {
        Place { at: Instant::now() + after, _rest: [0; 6] }
    }

    fn sleep_until(at: Instant) -> impl Future + Send + 'static {
        Due { at, listed: false }
    }

    fn timeout<F: Future>(_: Duration, _: F) -> impl Future {
        pending::<()>()
    }

    #[inline]
    fn reset(mut sleep: Pin<&mut Place>, after: Duration) {
        sleep.at = Instant::now() + after;
    }
}
