//! `Sleep`: a future that is ready at its deadline.
//!
//! | state | its waker | what ends the state |
//! |---|---|---|
//! | fresh | none | the first poll, which arms it without reading the clock: the clock was just read |
//! | idle | none | a poll, which reads the clock and arms it if the deadline lies ahead; if refused, it stays idle |
//! | armed | in the wheel, until the driver claims it or a stop hands it back | a poll that finds it gone; a drop |
//! | over | none | a reset |
//!
//! A waker that has left the wheel was either claimed, which means that the deadline has passed, or handed back by a
//! stop. The shard distinguishes the two under its lock: without a stop, the waker was claimed. After a stop the clock
//! decides, so that a success is never early.
//!
//! Almost no poll takes a lock: the shard's watermark shows which deadlines were claimed, and a sleep remembers which
//! waker it armed. A sleep is in *doubt* if its waker was inserted behind the wheel's current time, or may have been
//! moved there: a poll then reads the clock, and itself removes the waker if the deadline has passed.

mod adapters;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tourbillon_wheel::{RescheduleError, Time};

use super::host::{Given, Global, Home, SleepError};
use crate::clock::nanoseconds;
use crate::contain::contain;
use crate::engine::shard::Gone;
use crate::key::Key;
use crate::timer::Timer;
use crate::wakers::Told;

/// Waits until the given delay has passed, never less, on the default engine.
///
/// Nothing is armed before the first poll. A delay of zero is ready at once.
///
/// # Cancel safety
/// Dropping the future cancels it, and nothing is lost.
///
/// # Panics
/// When polled, if the default engine cannot start its thread or memory is exhausted.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tourbillon::tasks;
///
/// # futures_lite::future::block_on(async {
/// let began = Instant::now();
/// tasks::sleep(Duration::from_millis(20)).await;
/// assert!(began.elapsed() >= Duration::from_millis(20), "never early");
/// # });
/// ```
#[inline]
pub fn sleep(after: Duration) -> Sleep {
    Sleep::after(Global::here(), after)
}

/// Waits until the given instant, never less, on the default engine.
///
/// An instant in the past is ready at once.
///
/// # Cancel safety
/// As [`sleep`].
///
/// # Panics
/// As [`sleep`].
#[inline]
pub fn sleep_until(at: impl Into<Instant>) -> Sleep {
    Sleep::at(Global::here(), at.into())
}

/// Sleeps on this timer. The output is an error if the timer is stopped before the deadline.
impl Timer {
    /// Waits until the given delay has passed, never less.
    ///
    /// # Cancel safety
    /// As [`tasks::sleep`](crate::tasks::sleep).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::tasks::{self, SleepError};
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// // An hour passes at once: the clock jumps when the task waits.
    /// tasks::block_on(&clock, timer.sleep(Duration::from_secs(3600)))??;
    /// assert_eq!(clock.elapsed(), Duration::from_secs(3600));
    ///
    /// let sleep = timer.sleep(Duration::from_secs(1));
    /// timer.stop();
    /// assert_eq!(tasks::block_on(&clock, sleep)?, Err(SleepError::Stopped));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn sleep(&self, after: Duration) -> Sleep<Given> {
        Sleep::after(Given::on(self), after)
    }

    /// Waits until the given instant, never less.
    ///
    /// # Cancel safety
    /// As [`tasks::sleep`](crate::tasks::sleep).
    #[inline]
    pub fn sleep_until(&self, at: impl Into<Instant>) -> Sleep<Given> {
        Sleep::at(Given::on(self), at.into())
    }
}

/// A future that is ready at its deadline, not one nanosecond of its clock earlier.
///
/// Returned by [`sleep`] and [`Timer::sleep`].
///
/// Several tasks may poll it in turn; only the last one is woken. A sleep that was ready is ready again if polled
/// again. After [`Full`](SleepError::Full) or [`Thread`](SleepError::Thread), the next poll tries again. It is `Unpin`.
///
/// The first poll may use the clock reading from the sleep's creation. If the deadline has passed since then, the sleep
/// is not ready at once, but up to a tick later, when the driver has claimed it.
///
/// # Cancel safety
/// Dropping the future cancels it: its waker leaves the wheel, and its task is not woken for it. A wake that has
/// already begun is spurious.
#[must_use = "a future does nothing until it is polled"]
pub struct Sleep<H: Home = Global> {
    home: H,
    deadline: Time,
    state: SleepState,
}

#[derive(Clone, Copy)]
enum SleepState {
    Fresh,
    Idle,
    Armed { key: Key, waker: Identity, doubt: bool },
    Over(Result<(), SleepError>),
}

/// Identifies the waker in the wheel: as long as that waker exists, no other waker has these addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    data: usize,
    table: usize,
}

impl Identity {
    #[inline]
    fn of(waker: &Waker) -> Self {
        Identity { data: waker.data().addr(), table: std::ptr::from_ref(waker.vtable()).addr() }
    }
}

impl<H: Home> Sleep<H> {
    #[inline]
    pub(super) fn after(home: H, after: Duration) -> Self {
        let clock = home.clock();
        let (now, is_system) = (clock.now(), clock.is_system());
        let after = nanoseconds(after);
        let deadline = planted!(
            "tasks.a-sleep-of-ages-wraps",
            Time::new(now.units().wrapping_add(after)),
            now + after
        );
        let none = planted!("fourth.sleep-of-zero-has-not-elapsed", false, deadline == now);
        let state = if none {
            SleepState::Over(Ok(()))
        } else if is_system {
            SleepState::Fresh
        } else {
            SleepState::Idle
        };
        Sleep { home, deadline, state }
    }

    #[inline]
    pub(super) fn at(home: H, at: Instant) -> Self {
        let deadline = home.clock().time(at);
        let is_fresh = planted!(
            "fifth.sleep-until-the-past-waits-for-a-tick",
            home.clock().is_system(),
            false
        );
        let state = if is_fresh { SleepState::Fresh } else { SleepState::Idle };
        Sleep { home, deadline, state }
    }

    /// The instant at which it is ready.
    pub fn deadline(&self) -> Instant {
        self.home.clock().instant(self.deadline)
    }

    /// Whether a poll has found that the deadline has passed. True from the beginning for a delay of zero.
    pub fn is_elapsed(&self) -> bool {
        planted!(
            "tasks.a-stopped-sleep-has-elapsed",
            matches!(self.state, SleepState::Over(_)),
            matches!(self.state, SleepState::Over(Ok(())))
        )
    }

    /// Moves the deadline to the given instant, in any state: before the first poll, waiting, or ready.
    ///
    /// A waiting task continues to wait, until the new deadline. If the sleep was already ready, poll it again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock, tasks};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let mut sleep = timer.sleep(Duration::from_secs(1));
    /// sleep.reset(clock.now() + Duration::from_secs(10));
    /// tasks::block_on(&clock, &mut sleep)??;
    /// assert_eq!(clock.elapsed(), Duration::from_secs(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn reset(&mut self, at: impl Into<Instant>) {
        self.move_to(self.home.clock().time(at.into()));
    }

    /// Moves the deadline to the given delay from now, as [`reset`](Sleep::reset) does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock, tasks};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let mut sleep = timer.sleep(Duration::from_secs(1));
    /// tasks::block_on(&clock, &mut sleep)??;
    /// sleep.reset_after(Duration::from_secs(9));
    /// tasks::block_on(&clock, &mut sleep)??;
    /// assert_eq!(clock.elapsed(), Duration::from_secs(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn reset_after(&mut self, after: Duration) {
        let clock = self.home.clock();
        let ahead = clock.is_system()
            && planted!("later.sleep-reset-to-nothing-waits", true, !after.is_zero());
        self.move_ahead(clock.now() + nanoseconds(after), ahead);
    }

    /// The deadline in the engine's time.
    pub(super) fn due(&self) -> Time {
        self.deadline
    }

    /// Whether a poll has found that the timer was stopped.
    pub(super) fn was_stopped(&self) -> bool {
        matches!(self.state, SleepState::Over(Err(SleepError::Stopped)))
    }

    pub(super) fn now(&self) -> Time {
        self.home.clock().now()
    }

    pub(super) fn time(&self, at: Instant) -> Time {
        self.home.clock().time(at)
    }

    pub(super) fn instant(&self, time: Time) -> Instant {
        self.home.clock().instant(time)
    }

    /// The engine's tick, in nanoseconds.
    pub(super) fn tick(&self) -> u64 {
        self.home.tick()
    }

    #[inline]
    pub(super) fn move_to(&mut self, deadline: Time) {
        self.move_ahead(deadline, false);
    }

    /// Moves the deadline. `ahead` says that it is known to lie ahead of a clock reading taken just before.
    #[inline]
    fn move_ahead(&mut self, deadline: Time, ahead: bool) {
        self.deadline = deadline;
        let SleepState::Armed { key, waker, .. } = self.state else {
            let anew = if ahead { SleepState::Fresh } else { SleepState::Idle };
            self.state = planted!("tasks.a-sleep-that-is-over-stays-so", self.state, anew);
            return;
        };
        // A virtual clock runs no driver until it is advanced, so wake the task here. In real time the driver wakes it.
        let clock = self.home.clock();
        let over = clock.as_virtual().is_some() && clock.now() >= deadline;
        if planted!("tasks.a-sleep-moved-to-the-past-waits-for-an-advance", false, over) {
            return self.wake(key);
        }
        match self.home.shard(key).reschedule(key.inner(), deadline) {
            Ok(()) if ahead => self.armed(key, waker),
            Ok(()) => {
                let doubt = planted!("tasks.a-sleep-moved-to-the-past-is-not-ready", false, true);
                self.state = SleepState::Armed { key, waker, doubt };
            }
            Err(wrong) => self.not_moved(key, wrong),
        }
    }

    /// Enters the armed state. The waker is in the wheel, and its deadline was ahead of the last clock reading.
    #[inline]
    fn armed(&mut self, key: Key, waker: Identity) {
        // The watermark is read after the insertion: if it says pending, the waker is ahead of the wheel's current
        // time, and the watermark will show when it is claimed.
        let told = self.home.shard(key).shown.tell(self.deadline);
        let doubt = planted!(
            "tasks.a-sleep-filed-in-a-pass-is-trusted",
            told == Told::Claimed,
            told != Told::Pending
        );
        let doubt = planted!("tasks.a-sleep-filed-behind-the-hand-is-trusted", false, doubt);
        self.state = SleepState::Armed { key, waker, doubt };
    }

    /// Handles a move that failed: the waker was claimed or handed back, or there is no memory to move it.
    #[cold]
    fn not_moved(&mut self, key: Key, wrong: RescheduleError) {
        planted!("tasks.a-sleep-that-fired-is-taken-for-moved", (), self.state = SleepState::Idle);
        // The waker must not keep its old deadline: the task must arm it again, or receive the error.
        if wrong != RescheduleError::NotPending {
            self.wake(key);
        }
    }

    /// Removes the waker from the wheel and wakes its task, which then reads the clock.
    #[cold]
    fn wake(&mut self, key: Key) {
        self.state = SleepState::Idle;
        let shard = self.home.shard(key);
        if let Some(waker) = shard.cancel(key.inner(), |_, _| ()) {
            contain(shard, || waker.wake());
        }
    }

    /// The outcome, if there is one; otherwise the task will be woken.
    #[inline]
    pub(super) fn poll_outcome(&mut self, waker: &Waker) -> Option<Result<(), SleepError>> {
        let outcome = match self.state {
            SleepState::Armed { doubt: false, .. } => self.look(waker),
            SleepState::Armed { doubt: true, .. } => self.settle(waker),
            SleepState::Over(outcome) => return Some(outcome),
            SleepState::Idle if self.home.clock().now() >= self.deadline => Some(Ok(())),
            SleepState::Idle | SleepState::Fresh => self.arm(waker),
        }?;
        // Only a stop is final: room or a thread may become available later.
        let over = planted!(
            "tasks.a-refused-sleep-never-tries-again",
            true,
            matches!(outcome, Ok(()) | Err(SleepError::Stopped))
        );
        self.state = if over { SleepState::Over(outcome) } else { SleepState::Idle };
        Some(outcome)
    }

    #[inline]
    fn arm(&mut self, waker: &Waker) -> Option<Result<(), SleepError>> {
        let own = waker.clone();
        let identity = Identity::of(&own);
        match self.home.arm(self.deadline, own) {
            Ok(key) => {
                self.armed(key, identity);
                // A virtual clock may have passed the deadline since it was read, and runs no driver until its next
                // advance.
                if self.home.clock().as_virtual().is_some() { self.settle(waker) } else { None }
            }
            Err((_waker, wrong)) => Some(self.refused(wrong)),
        }
    }

    /// The outcome when arming was refused: success if the deadline has passed since the clock was read.
    #[cold]
    fn refused(&self, wrong: SleepError) -> Result<(), SleepError> {
        let over = self.home.clock().now() >= self.deadline;
        if planted!("tasks.a-refused-sleep-does-not-look-at-the-clock", false, over) {
            Ok(())
        } else {
            Err(wrong)
        }
    }

    #[inline]
    fn look(&mut self, waker: &Waker) -> Option<Result<(), SleepError>> {
        let SleepState::Armed { key, waker: armed, .. } = self.state else { return None };
        let shard = self.home.shard(key);
        match shard.shown.tell(self.deadline) {
            Told::Claimed => return Some(Ok(())),
            // If the waker is being claimed at this moment, its task is woken after this and polls again.
            Told::Pending if armed == Identity::of(waker) => return None,
            Told::Pending | Told::Nothing => {}
        }
        let same = |armed: &mut Waker| {
            planted!("tasks.another-task-does-not-replace-the-waker", true, armed.will_wake(waker))
        };
        match shard.visit(key.inner(), |_, armed| armed.map(same)) {
            Ok(true) => None,
            Ok(false) => self.replace(key, waker),
            Err(gone) => Some(self.end(gone)),
        }
    }

    /// Resolves the doubt by reading the clock.
    fn settle(&mut self, waker: &Waker) -> Option<Result<(), SleepError>> {
        if self.home.clock().now() >= self.deadline {
            planted!("tasks.a-sleep-that-was-overtaken-stays-in-the-wheel", (), self.take_out());
            return Some(Ok(()));
        }
        if let SleepState::Armed { doubt, .. } = &mut self.state {
            *doubt = false;
        }
        self.look(waker)
    }

    /// Removes the waker, because no task waits any longer.
    pub(super) fn rest(&mut self) {
        planted!("blind.resting-queue-leaves-its-waker", (), self.take_out());
        self.state = SleepState::Idle;
    }

    /// Runs user code that is not a waker in the wheel. A panic is counted and reported.
    pub(super) fn contain(&self, foreign: impl FnOnce()) {
        contain(self.home.any_shard(), foreign);
    }

    /// Removes the waker from the wheel, if it is there.
    #[inline]
    fn take_out(&mut self) {
        let SleepState::Armed { key, .. } = self.state else { return };
        let shard = self.home.shard(key);
        if let Some(waker) = shard.cancel(key.inner(), |_, _| ()) {
            planted!("tasks.a-panicking-drop-of-a-waker-escapes", drop(waker), {
                contain(shard, || drop(waker));
            });
        }
    }

    /// Replaces the waker with another task's. The clone and the drop happen with no lock held.
    #[cold]
    fn replace(&mut self, key: Key, waker: &Waker) -> Option<Result<(), SleepError>> {
        let mut other = waker.clone();
        let identity = Identity::of(&other);
        let shard = self.home.shard(key);
        let replaced = shard
            .visit(key.inner(), |_, armed| armed.map(|armed| std::mem::swap(armed, &mut other)));
        planted!("later.replaced-waker-panics-out", drop(other), {
            contain(shard, || drop(other));
        });
        let replaced = planted!("tasks.a-waker-that-went-is-taken-for-replaced", Ok(()), replaced);
        if let Err(gone) = replaced {
            return Some(self.end(gone));
        }
        let waker = planted!(
            "tasks.sleep-keeps-the-other-wakers-identity",
            if let SleepState::Armed { waker, .. } = self.state { waker } else { identity },
            identity
        );
        self.state = SleepState::Armed { key, waker, doubt: false };
        None
    }

    #[inline]
    fn end(&self, gone: Gone) -> Result<(), SleepError> {
        match gone {
            Gone::Fired => Ok(()),
            Gone::Stopped => {
                let over = self.home.clock().now() >= self.deadline;
                let over = planted!("tasks.a-sleep-that-was-over-hears-of-the-stop", false, over);
                if over { Ok(()) } else { Err(SleepError::Stopped) }
            }
        }
    }
}

impl<H: Home> Future for Sleep<H> {
    type Output = H::Output<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<H::Output<()>> {
        match self.poll_outcome(context.waker()) {
            Some(outcome) => Poll::Ready(H::output(outcome)),
            None => Poll::Pending,
        }
    }
}

impl<H: Home> Drop for Sleep<H> {
    #[inline]
    fn drop(&mut self) {
        planted!("tasks.a-dropped-sleep-stays", (), self.take_out());
    }
}

impl<H: Home> fmt::Debug for Sleep<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}
