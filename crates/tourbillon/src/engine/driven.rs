//! An engine without a thread of its own: the caller's event loop drives it.
//!
//! The loop takes the place of the driver's thread: it calls `turn`, then blocks by its own means. So a turn ends in
//! the same way as a driver's sleep begins: it publishes the time until which nothing is due (`signal.rs`). A thread
//! that arms an earlier timer afterwards wakes the loop, through a closure or a file descriptor.
//!
//! ```text
//!   turn                                                     arming, on any thread
//!   until = AWAKE: no wake needed                            next = due       (under the shard's lock)
//!   run the due timers                                       if due < until: mark a wake as owed
//!   until = least of next; look again   ── the loop blocks   after unlocking: deliver the wake
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use tourbillon_wheel::Time;

use super::context::EngineContext;
use super::core::{Core, Deliver};
use super::shard::Shard;
use super::signal::{NEVER, Wake};
use crate::clock::nanoseconds;
use crate::contain::contain;
#[cfg(target_os = "linux")]
use crate::notifier::Notifier;

/// Drives a timer or an engine that has no thread of its own.
///
/// An event loop, for example, owns the driver. [`turn`](Driver::turn) runs the due timers and returns the time of the
/// next turn. Between two turns, any thread may schedule, reschedule and cancel timers, with the same handles and
/// guarantees. If a new deadline is before the next turn, the loop is woken through [`on_wake`](Driver::on_wake) or
/// `wake_fd`. Timers are as late as the loop is.
///
/// Dropping a driver stops its timer: pending timers are dropped and counted as handed back, and scheduling fails. So
/// no timer waits for a turn that never comes.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::Timer;
///
/// let (timer, mut driver) = Timer::builder().build_driven()?;
/// let (sender, receiver) = std::sync::mpsc::channel();
/// timer.schedule(Duration::from_millis(5), move |_| sender.send("due").unwrap())?;
///
/// // An event loop would poll its sockets with this timeout; this example has no sockets.
/// while driver.turn().ran == 0 {
///     std::thread::sleep(driver.timeout().unwrap());
/// }
/// assert_eq!(receiver.try_recv(), Ok("due"), "it ran on this thread");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A virtual clock does not run the timers of such an engine: it advances time, and the next turn runs the timers that
/// are due by then. [`advance_to_next`](crate::VirtualClock::advance_to_next) stops at the first of them.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let (timer, mut driver) = Timer::builder().clock(&clock).build_driven()?;
/// timer.schedule(Duration::from_secs(3600), |_| ())?;
/// assert_eq!((driver.turn().ran, driver.timeout()), (0, Some(Duration::from_secs(3600))));
/// clock.advance(Duration::from_secs(3600))?;
/// assert_eq!((driver.turn().ran, driver.timeout()), (1, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropped, it stops its timer"]
pub struct Driver {
    core: Arc<dyn Turns>,
    #[cfg(target_os = "linux")]
    notifier: Option<Arc<Notifier>>,
}

/// The file descriptor that wakes an event loop; see [`Driver::wake_fd`].
///
/// Clones share the descriptor, which stays open as long as one of them exists.
#[cfg(target_os = "linux")]
#[derive(Clone)]
pub struct WakeFd {
    notifier: Arc<Notifier>,
}

#[cfg(target_os = "linux")]
impl std::os::fd::AsFd for WakeFd {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.notifier.as_fd()
    }
}

/// For models, which have no descriptors to poll.
#[cfg(all(any(loom, shuttle), test))]
impl WakeFd {
    /// Polls without a timeout.
    pub(crate) fn wait_until_readable(&self) {
        self.notifier.wait_until_readable();
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.notifier.is_readable()
    }
}

#[cfg(target_os = "linux")]
impl std::fmt::Debug for WakeFd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WakeFd").field(&std::os::fd::AsFd::as_fd(self)).finish()
    }
}

/// The result of a [turn](Driver::turn).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// The number of timers that it ran or delivered.
    pub ran: usize,
    /// When to turn again; `None` if nothing is pending or the timer was stopped.
    ///
    /// Now, if the budget was used up. The time may be too early, if the timer due then was cancelled or moved to
    /// later, but is never too late.
    pub next: Option<Instant>,
}

impl Driver {
    pub(crate) fn new<D: Deliver>(core: Arc<Core<D>>) -> Self {
        // Opens the shards. Starts no thread.
        let opened = core.start();
        debug_assert!(opened.is_ok(), "it is new");
        planted!("blind.new-loop-is-thought-awake", 0, core.context.signal.settle());
        Driver {
            core,
            #[cfg(target_os = "linux")]
            notifier: None,
        }
    }

    /// Runs the due timers on this thread and returns when to turn again.
    ///
    /// Does not block, unless a callback does. The [budget](crate::Builder::budget) bounds the work for each shard.
    pub fn turn(&mut self) -> Turn {
        let context = self.core.context();
        context.signal.awake();
        #[cfg(target_os = "linux")]
        if let Some(notifier) = &self.notifier {
            notifier.clear();
        }
        let ran = self.core.clone().pass_and_count(context.clock.now());
        let next = planted!(
            "engine.notifier-cleared-after-settling",
            {
                let next = context.signal.settle();
                #[cfg(target_os = "linux")]
                self.notifier.iter().for_each(|notifier| notifier.clear());
                next
            },
            context.signal.settle()
        );
        let stopped = planted!("engine.stopped-loop-has-a-next-turn", false, self.is_stopped());
        let pending = next != NEVER && !stopped;
        Turn { ran, next: pending.then(|| context.clock.instant(Time::new(next))) }
    }

    /// As [`turn`](Driver::turn), but first waits until a timer is due, for at most `limit`.
    ///
    /// Returns as soon as a callback ran or the timer was stopped.
    ///
    /// Under a virtual clock, it advances the clock instead of waiting: to the next moment at which a timer is due
    /// here, or by `limit`. Other engines on the clock run their timers during that advance, except engines with event
    /// loops of their own. Inside a callback, which cannot advance the clock, it does not wait.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let (timer, mut driver) = Timer::builder().clock(&clock).build_driven()?;
    /// timer.schedule(Duration::from_secs(90), |_| ())?;
    /// let minute = Duration::from_secs(60);
    /// assert_eq!(driver.turn_within(minute).ran, 0);
    /// assert_eq!(driver.turn_within(minute).ran, 1);
    /// assert_eq!(clock.elapsed(), Duration::from_secs(90));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn turn_within(&mut self, limit: Duration) -> Turn {
        let end = self.core.context().clock.now() + nanoseconds(limit);
        loop {
            let turn = self.turn();
            let now = self.core.context().clock.now();
            let over = planted!("engine.turn-within-never-over", now > end, now >= end);
            let until = planted!("later.turn-within-begins-anew", now + nanoseconds(limit), end);
            let ran = planted!("fifth.turn-within-goes-on-after-a-run", false, turn.ran > 0);
            if ran || over || self.is_stopped() || !self.wait(until) {
                return turn;
            }
        }
    }

    /// Waits until something may be due, or until `end`. `false` if it cannot wait.
    fn wait(&self, end: Time) -> bool {
        let EngineContext { clock, signal, .. } = self.core.context();
        if let Some(clock) = clock.as_virtual() {
            let others = planted!("more.turn-within-passes-over-others", None, clock.next_step());
            let next = others.unwrap_or(Time::MAX).min(Time::new(signal.least()));
            let moved = clock.advance_to(next.min(end)).is_ok();
            return planted!("engine.turn-within-in-a-callback-never-ends", true, moved);
        }
        let sleep = |until, sleeper: &_| {
            let last = planted!("engine.turn-within-overstays", Time::MAX, end);
            clock.wait(Time::new(until).min(last), sleeper);
        };
        signal.rest(sleep);
        true
    }

    /// The time left until something is due: the timeout for a poll. Zero if overdue, `None` if nothing is pending.
    ///
    /// A poll with a resolution of milliseconds should round this up; otherwise it spins for the last millisecond.
    pub fn timeout(&self) -> Option<Duration> {
        let EngineContext { clock, signal, .. } = self.core.context();
        // Only reads `until`: publishing it again could cause another wake.
        let stopped =
            planted!("third.timeout-of-what-was-pending-at-the-stop", false, self.is_stopped());
        let next = Some(signal.least()).filter(|&next| next != NEVER && !stopped)?;
        let now = clock.now().units();
        let left = planted!(
            "later.timeout-of-an-overdue-timer-panics",
            next - now,
            next.saturating_sub(now)
        );
        Some(Duration::from_nanos(left))
    }

    /// Sets a closure that is called when a timer due before [`Turn::next`] is armed, and at a stop.
    ///
    /// It runs on the thread that arms or stops, with no lock held; its panics are contained.
    ///
    /// After one call, further timers do not call it again before the next turn, except that threads that arm at the
    /// same moment may each call it. A stop always calls it. It replaces the previous closure or the descriptor of
    /// `wake_fd`, and is dropped with the driver. It is not called for timers that were armed before it was set: turn
    /// once after setting it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_driven()?;
    /// let wakes = Arc::new(AtomicUsize::new(0));
    /// let count = wakes.clone();
    /// driver.on_wake(move || drop(count.fetch_add(1, Ordering::Relaxed)));
    ///
    /// timer.schedule(Duration::from_secs(60), |_| ())?;
    /// assert_eq!(wakes.load(Ordering::Relaxed), 1);
    /// driver.turn();
    /// timer.schedule(Duration::from_secs(90), |_| ())?;
    /// assert_eq!(wakes.load(Ordering::Relaxed), 1, "not earlier");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_wake(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        #[cfg(target_os = "linux")]
        {
            planted!("engine.old-notifier-given-out-again", (), self.notifier = None);
        }
        self.core.set_hook(Arc::new(wake));
    }

    /// A file descriptor that becomes readable when a closure of [`on_wake`](Driver::on_wake) would be called. Linux
    /// only.
    ///
    /// Poll it together with the loop's other descriptors. A turn makes it unreadable again; do not read from it. Every
    /// call returns the same descriptor, until a closure replaces it.
    ///
    /// # Errors
    /// The system has no free descriptor.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rustix::event::{PollFd, PollFlags, Timespec, poll};
    /// use tourbillon::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_driven()?;
    /// let notifier = driver.wake_fd()?;
    /// let other = timer.clone();
    /// std::thread::spawn(move || other.schedule(Duration::ZERO, |_| ()).unwrap());
    ///
    /// let mut fds = [PollFd::new(&notifier, PollFlags::IN)];
    /// while driver.turn().ran == 0 {
    ///     let timeout = driver.timeout().map(|left| Timespec::try_from(left).unwrap());
    ///     poll(&mut fds, timeout.as_ref())?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(target_os = "linux")]
    pub fn wake_fd(&mut self) -> std::io::Result<WakeFd> {
        if let Some(notifier) = &self.notifier {
            return Ok(WakeFd { notifier: notifier.clone() });
        }
        let notifier = Arc::new(Notifier::new()?);
        let notified = notifier.clone();
        planted!(
            "sixth.turn-does-not-clear-the-wake-fd",
            {
                self.notifier = Some(notifier.clone());
                self.on_wake(move || notified.notify());
            },
            {
                self.on_wake(move || notified.notify());
                self.notifier = Some(notifier.clone());
            }
        );
        Ok(WakeFd { notifier })
    }

    /// Whether its timer was stopped. If so, there is nothing left to do.
    pub fn is_stopped(&self) -> bool {
        self.core.context().signal.is_stopping()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.core.abandon();
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("timeout", &self.timeout()).finish_non_exhaustive()
    }
}

/// What a driver needs of an engine, whatever the engine delivers.
trait Turns: Send + Sync {
    fn context(&self) -> &EngineContext;
    fn pass_and_count(self: Arc<Self>, now: Time) -> usize;
    fn set_hook(&self, wake: Arc<Wake>);
    /// Stops the engine, drops the pending timers, and removes the wake hook.
    fn abandon(&self);
}

impl<D: Deliver> Turns for Core<D> {
    fn context(&self) -> &EngineContext {
        &self.context
    }

    /// One pass over the shards that have something due; returns the number of timers that fired.
    fn pass_and_count(self: Arc<Self>, now: Time) -> usize {
        let attend = |shard: &Arc<Shard<D>>| {
            let before = shard.counts().fired;
            self.attend(shard, now);
            shard.counts().fired - before
        };
        let ran = self.due(now).map(attend);
        let ran = planted!("more.turn-counts-one-shard", ran.max().unwrap_or(0), ran.sum::<u64>());
        ran as usize
    }

    fn set_hook(&self, wake: Arc<Wake>) {
        let before = self.context.signal.set_hook(wake);
        contain(&self.shards[0], || drop(before));
    }

    fn abandon(&self) {
        D::abandon(self);
        // The hook may own the timer, and the timer owns the hook: dropping the hook breaks the cycle.
        let hook =
            planted!("engine.waker-kept-after-the-driver", None, self.context.signal.take_hook());
        contain(&self.shards[0], || drop(hook));
    }
}
