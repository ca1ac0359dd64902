//! `Sleep`: a future that is ready when its time has come.
//!
//! | state | its waker | left by |
//! |---|---|---|
//! | fresh | nowhere | the first poll, which arms it without a look at the clock: that was read just now |
//! | idle | nowhere | a poll, which looks at the clock and arms it if its time has not come; refused, it stays idle |
//! | armed | in the wheel, until the driver claims it or a stop hands it back | the poll that finds it gone; a drop |
//! | over | nowhere | a reset |
//!
//! A waker that is gone was claimed, and then its time has come, or handed back by a stop. Which of the two, the shard
//! says under its lock: without a stop it was claimed. After a stop the clock decides, so that a success is never
//! early.
//!
//! Nearly no poll takes a lock: the watermark of the shard tells without it what was claimed and what was not, and a
//! sleep knows which waker it has armed. What was filed behind the hand, or may have been moved there, is in *doubt*:
//! the poll looks at the clock, and takes the waker out itself if the time has come.

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

/// Is ready after so long, never earlier; on the default engine.
///
/// Nothing is armed before it is first polled. Zero is ready at once.
///
/// # Cancel safety
/// Dropping it cancels it, and nothing is lost.
///
/// # Panics
/// When it is polled, if the default engine cannot start its thread, or there is no memory for another timer.
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

/// Is ready at that moment, never earlier; on the default engine. A moment that has passed is ready at once.
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

/// Sleeping, on this timer: the outcome is an error if the timer is stopped before the time has come.
impl Timer {
    /// Is ready after so long, never earlier.
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
    /// // An hour, in no time: the clock jumps when the task waits.
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

    /// Is ready at that moment, never earlier.
    ///
    /// # Cancel safety
    /// As [`tasks::sleep`](crate::tasks::sleep).
    #[inline]
    pub fn sleep_until(&self, at: impl Into<Instant>) -> Sleep<Given> {
        Sleep::at(Given::on(self), at.into())
    }
}

/// A future that is ready when its time has come, not earlier by a nanosecond of its clock. [`sleep`] and
/// [`Timer::sleep`] make one.
///
/// It may be polled by one task and then by another, which alone is woken; polled again when it is over, it is ready
/// again. After [`Full`](SleepError::Full) and [`Thread`](SleepError::Thread) a poll tries again. It needs no pin.
///
/// The first poll may trust the clock as it was when the sleep was made: if that was long ago and its time has come
/// meanwhile, it is ready a tick later, when the driver has seen it, rather than at once.
///
/// # Cancel safety
/// Dropping it cancels it: it is out of the wheel, and its task will not be woken for it. A wake that is under way at
/// that moment comes for nothing.
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

/// Which waker it is that lies in the wheel: as long as it does, no other has these addresses.
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
        let state = if deadline == now {
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
        Sleep { home, deadline, state: SleepState::Idle }
    }

    /// When it is to be ready.
    pub fn deadline(&self) -> Instant {
        self.home.clock().instant(self.deadline)
    }

    /// Whether its time has come, and it was polled since. One of zero is so from the beginning.
    pub fn is_elapsed(&self) -> bool {
        planted!(
            "tasks.a-stopped-sleep-has-elapsed",
            matches!(self.state, SleepState::Over(_)),
            matches!(self.state, SleepState::Over(Ok(())))
        )
    }

    /// Moves it to that moment, whatever has become of it: it may be over, or not have begun.
    ///
    /// A task that waits for it goes on waiting, until the new time. If its time had come before, poll it again.
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

    /// Moves it to so long after now, as [`reset`](Sleep::reset) does.
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

    /// When it is to be ready, as the engine counts.
    pub(super) fn due(&self) -> Time {
        self.deadline
    }

    /// Whether a poll has found that its timer was stopped.
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

    /// The tick of its engine, in nanoseconds.
    pub(super) fn tick(&self) -> u64 {
        self.home.tick()
    }

    #[inline]
    pub(super) fn move_to(&mut self, deadline: Time) {
        self.move_ahead(deadline, false);
    }

    /// Moves it; `ahead` if the new deadline is known to lie ahead of a clock that was read just now.
    #[inline]
    fn move_ahead(&mut self, deadline: Time, ahead: bool) {
        self.deadline = deadline;
        let SleepState::Armed { key, waker, .. } = self.state else {
            let anew = if ahead { SleepState::Fresh } else { SleepState::Idle };
            self.state = planted!("tasks.a-sleep-that-is-over-stays-so", self.state, anew);
            return;
        };
        // Such a clock drives nobody until it is advanced, and real time would wake the task at once.
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

    /// It is in the wheel, ahead of the clock as far as is known.
    #[inline]
    fn armed(&mut self, key: Key, waker: Identity) {
        // After it was filed: if it is told to be pending then, it is ahead of the hand, and will be told when it is
        // claimed.
        let told = self.home.shard(key).shown.tell(self.deadline);
        let doubt = planted!(
            "tasks.a-sleep-filed-in-a-pass-is-trusted",
            told == Told::Claimed,
            told != Told::Pending
        );
        let doubt = planted!("tasks.a-sleep-filed-behind-the-hand-is-trusted", false, doubt);
        self.state = SleepState::Armed { key, waker, doubt };
    }

    /// Its waker was claimed or handed back, and the next poll arms it anew; or there was no memory to move it.
    #[cold]
    fn not_moved(&mut self, key: Key, wrong: RescheduleError) {
        planted!("tasks.a-sleep-that-fired-is-taken-for-moved", (), self.state = SleepState::Idle);
        // It must not keep its old deadline: the task has to arm it anew, or to learn that it cannot.
        if wrong != RescheduleError::NotPending {
            self.wake(key);
        }
    }

    /// Takes it out of the wheel and wakes its task, which looks at the clock.
    #[cold]
    fn wake(&mut self, key: Key) {
        self.state = SleepState::Idle;
        let shard = self.home.shard(key);
        if let Some(waker) = shard.cancel(key.inner(), |_, _| ()) {
            contain(shard, || waker.wake());
        }
    }

    /// The outcome, if there is one; else the task will be woken.
    #[inline]
    pub(super) fn poll_outcome(&mut self, waker: &Waker) -> Option<Result<(), SleepError>> {
        let outcome = match self.state {
            SleepState::Armed { doubt: false, .. } => self.look(waker),
            SleepState::Armed { doubt: true, .. } => self.settle(waker),
            SleepState::Over(outcome) => return Some(outcome),
            SleepState::Idle if self.home.clock().now() >= self.deadline => Some(Ok(())),
            SleepState::Idle | SleepState::Fresh => self.arm(waker),
        }?;
        // Room may be made, and a thread found: only a stop is for ever.
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
                // A virtual clock may have gone past it since it was read, and drives nobody until it is told to move.
                if self.home.clock().as_virtual().is_some() { self.settle(waker) } else { None }
            }
            Err((_waker, wrong)) => Some(self.refused(wrong)),
        }
    }

    /// It was not armed. If its time has come since the clock was read, it need not be.
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
            // Should it be claimed just now, its task is woken after this, and asks again.
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

    /// Whether it is behind the hand or ahead of it, the clock says.
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

    /// Nobody waits for it any more: as if it had not been polled.
    pub(super) fn rest(&mut self) {
        planted!("blind.resting-queue-leaves-its-waker", (), self.take_out());
        self.state = SleepState::Idle;
    }

    /// Runs foreign code that is no part of a timer. A panic is counted and reported.
    pub(super) fn contain(&self, foreign: impl FnOnce()) {
        contain(self.home.any_shard(), foreign);
    }

    /// Takes its waker out of the wheel, if it is there.
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

    /// Another task waits now. Its waker is cloned and the old one dropped with no lock held.
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
