//! The engine that the free functions use: the default engine, or a timer that replaces it.
//!
//! A timer replaces the default engine for one thread, inside a scope, or for the whole process. The thread's innermost
//! scope takes precedence, then the latest replacement of the process. A program that uses neither pays for one atomic
//! load, of the number of scopes and replacements.

use std::cell::RefCell;
use std::future::{Future, IntoFuture, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::host::Given;
use crate::clock::VirtualClock;
use crate::timer::Timer;

/// The number of live scopes and replacements.
///
/// Relaxed: a thread always sees its own changes, and sees another thread's replacement after it has synchronized with
/// that thread.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// The replacements of the process, each with its number.
static REPLACED: Mutex<Vec<(usize, Timer)>> = Mutex::new(Vec::new());

thread_local! {
    /// The scopes that the thread is inside, each with its number, the innermost last.
    static SCOPES: RefCell<Vec<(usize, Timer)>> = const { RefCell::new(Vec::new()) };
}

/// The timer that replaces the default engine on this thread now.
#[inline]
pub(super) fn current() -> Option<Given> {
    if ALIVE.load(Relaxed) == 0 { None } else { look().map(|timer| Given::on(&timer)) }
}

#[cold]
fn look() -> Option<Timer> {
    let innermost = |scopes: &RefCell<Vec<(usize, Timer)>>| {
        let scopes = scopes.borrow();
        let innermost =
            planted!("sixth.outer-scope-overrules-the-inner", scopes.first(), scopes.last());
        innermost.map(|(_, timer)| timer.clone())
    };
    let own = SCOPES.try_with(innermost).ok().flatten();
    let own = planted!("tasks.scope-is-overruled-by-the-process", None, own);
    own.or_else(|| {
        let all = replaced();
        let latest = planted!("fourth.earliest-replacement-applies", all.first(), all.last());
        latest.map(|(_, timer)| timer.clone())
    })
}

fn replaced() -> std::sync::MutexGuard<'static, Vec<(usize, Timer)>> {
    REPLACED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a closure during which the free functions on this thread use this timer.
///
/// What counts is where a future is created: a [`Sleep`](super::Sleep) or a [`DelayQueue`](super::DelayQueue) that is
/// created inside the closure stays on the timer, wherever it is polled. Such a future panics if the timer is stopped.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock, tasks};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let nap = tasks::with_timer(&timer, || tasks::sleep(Duration::from_secs(3600)));
/// tasks::block_on(&clock, nap)?;
/// assert_eq!(clock.elapsed(), Duration::from_secs(3600));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn with_timer<R>(timer: &Timer, body: impl FnOnce() -> R) -> R {
    let _inside = Inside::enter(timer);
    body()
}

/// Wraps a future inside which the free functions use this timer.
///
/// For tests under virtual time: the tested code needs no timer argument. As with task-locals, a task that the future
/// spawns is not inside the scope; wrap that task as well, or [replace](replace_default) the default engine. In other
/// respects this is like [`with_timer`].
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock, tasks};
///
/// /// The code under test: it calls the free functions.
/// async fn patient() -> &'static str {
///     tasks::sleep(Duration::from_secs(3600)).await;
///     "done"
/// }
///
/// // In a plain #[test].
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// assert_eq!(tasks::block_on(&clock, tasks::scope(&timer, patient()))?, "done");
/// assert_eq!(clock.elapsed(), Duration::from_secs(3600));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn scope<F: IntoFuture>(timer: &Timer, future: F) -> Scope<F::IntoFuture> {
    Scope { timer: timer.clone(), future: future.into_future() }
}

/// Makes the free functions of the whole process use this timer until the guard is dropped.
///
/// For tests that run one at a time, because it applies to all threads of the process. If several guards are alive, the
/// latest applies. Futures that exist already stay on their engine. In other respects this is like [`with_timer`].
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock, tasks};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let replaced = tasks::replace_default(&timer);
/// // Another thread, which has no reference to the timer.
/// let other = std::thread::spawn(|| tasks::sleep(Duration::from_secs(60)).deadline());
/// assert_eq!(other.join().unwrap(), clock.now() + Duration::from_secs(60));
/// drop(replaced);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replace_default(timer: &Timer) -> Replaced {
    let number = number();
    replaced().push((number, timer.clone()));
    ALIVE.fetch_add(1, Relaxed);
    Replaced { number }
}

/// The number of a scope or a replacement.
fn number() -> usize {
    // Relaxed: the numbers only have to differ.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    NUMBER.fetch_add(1, Relaxed)
}

/// Takes the timer with this number out of a list.
fn remove(all: &mut Vec<(usize, Timer)>, number: usize) -> Option<Timer> {
    let own = all.iter().rposition(|(other, _)| *other == number)?;
    Some(all.remove(own).1)
}

/// Advances the virtual clock of the free functions, and lets other tasks run once.
///
/// # Panics
/// If called outside a [scope](scope()) whose timer is on a [`VirtualClock`], or inside a callback of an engine on that
/// clock.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::tasks::Instant;
/// use tourbillon::{Timer, VirtualClock, tasks};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// tasks::block_on(&clock, tasks::scope(&timer, async {
///     let begin = Instant::now();
///     tasks::advance(Duration::from_secs(60)).await;
///     assert_eq!(begin.elapsed(), Duration::from_secs(60));
/// }))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn advance(by: Duration) {
    let clock = clock().expect("no virtual clock is in the place of the default engine here");
    clock.advance(by).expect("outside of callbacks");
    let mut yielded = planted!("tasks.advance-lets-no-task-run", true, false);
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The virtual clock of the free functions on this thread, if any.
fn clock() -> Option<VirtualClock> {
    let timer = if ALIVE.load(Relaxed) == 0 { None } else { look() };
    timer.and_then(|timer| timer.core().context.clock.as_virtual().cloned())
}

pin_project! {
    /// A future inside which the free functions use a given timer. Returned by [`scope`].
    ///
    /// # Cancel safety
    /// The same as that of the wrapped future.
    #[derive(Debug)]
    #[must_use = "a future does nothing until it is polled"]
    pub struct Scope<F> {
        timer: Timer,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let parts = self.project();
        let _inside = Inside::enter(parts.timer);
        parts.future.poll(context)
    }
}

/// Guard: while it lives, the thread is inside a scope. Guards may be dropped in any order.
#[derive(Debug)]
pub(super) struct Inside {
    number: usize,
    /// Not `Send`: the guard belongs to its thread.
    here: PhantomData<*const ()>,
}

impl Inside {
    pub(super) fn enter(timer: &Timer) -> Self {
        let (number, timer) = (number(), timer.clone());
        let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().push((number, timer)));
        ALIVE.fetch_add(1, Relaxed);
        Inside { number, here: PhantomData }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
        // This may be the last clone of the timer, whose drop runs user code: it must not run while the list is
        // borrowed.
        let timer = SCOPES.try_with(|scopes| {
            let mut scopes = scopes.borrow_mut();
            let number = planted!(
                "tasks.scope-ends-the-innermost",
                scopes.last().map_or(0, |(number, _)| *number),
                self.number
            );
            remove(&mut scopes, number)
        });
        drop(timer);
    }
}

/// The guard of [`replace_default`].
///
/// While it lives, the free functions of the process use a given timer.
#[derive(Debug)]
#[must_use = "dropped at once, it has no effect"]
pub struct Replaced {
    number: usize,
}

impl Drop for Replaced {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
        let mut all = replaced();
        let number = planted!(
            "tasks.replacement-ends-with-another",
            all.last().map_or(0, |(number, _)| *number),
            self.number
        );
        let timer = remove(&mut all, number);
        drop(all);
        drop(timer);
    }
}
