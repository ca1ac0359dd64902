//! Which engine the free functions use: the default one, or a timer that was put in its place.
//!
//! A timer takes the place of the default engine for a thread, inside of a scope, or for the whole process. The
//! innermost scope of the thread counts, then the last replacement of the process. A program that has neither pays for
//! one load: of the number of both.

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

/// Scopes and replacements that are alive. Relaxed: a thread sees its own, and of the replacements of others as much as
/// it has been told.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// The replacements of the process, each with its number.
static REPLACED: Mutex<Vec<(usize, Timer)>> = Mutex::new(Vec::new());

thread_local! {
    /// The scopes that the thread is inside of.
    static SCOPES: RefCell<Vec<Timer>> = const { RefCell::new(Vec::new()) };
}

/// The timer in the place of the default engine, on this thread and now.
#[inline]
pub(super) fn current() -> Option<Given> {
    if ALIVE.load(Relaxed) == 0 { None } else { look().map(|timer| Given::on(&timer)) }
}

#[cold]
fn look() -> Option<Timer> {
    let own = SCOPES.try_with(|scopes| scopes.borrow().last().cloned()).ok().flatten();
    let own = planted!("tasks.scope-is-overruled-by-the-process", None, own);
    own.or_else(|| replaced().last().map(|(_, timer)| timer.clone()))
}

fn replaced() -> std::sync::MutexGuard<'static, Vec<(usize, Timer)>> {
    REPLACED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the free functions use this timer inside of the closure, on this thread.
///
/// What counts is where a future is made: a [`Sleep`](super::Sleep) or a [`DelayQueue`](super::DelayQueue) that is made
/// in there stays on the timer, wherever it is polled. Should the timer be stopped, it panics.
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

/// Has the free functions use this timer inside of the future: code that knows nothing of it is tested under virtual
/// time.
///
/// A task that the future spawns is not inside of it, as with task-locals; wrap that as well, or
/// [replace](replace_default) the default engine. As [`with_timer`] otherwise.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock, tasks};
///
/// /// What is tested: it calls the free functions.
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

/// Has the free functions of the whole process use this timer, until the guard is dropped. For tests, of which one runs
/// at a time: a switch for all threads, and for what they spawn.
///
/// Of several the last that is alive counts. What was made before stays where it is. As [`with_timer`] otherwise.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock, tasks};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let replaced = tasks::replace_default(&timer);
/// // Another thread, which knows of nothing.
/// let other = std::thread::spawn(|| tasks::sleep(Duration::from_secs(60)).deadline());
/// assert_eq!(other.join().unwrap(), clock.now() + Duration::from_secs(60));
/// drop(replaced);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replace_default(timer: &Timer) -> Replaced {
    // Relaxed: a count of what is alive, and numbers that differ.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    replaced().push((number, timer.clone()));
    ALIVE.fetch_add(1, Relaxed);
    Replaced { number }
}

/// Moves the virtual clock of the free functions on by so much, and lets other tasks run once.
///
/// # Panics
/// Outside of a [scope](scope()) whose timer is on a [`VirtualClock`], and inside a callback of an engine on that
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
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The virtual clock of the free functions, if they have one here.
fn clock() -> Option<VirtualClock> {
    let timer = if ALIVE.load(Relaxed) == 0 { None } else { look() };
    timer.and_then(|timer| timer.core().context.clock.as_virtual().cloned())
}

pin_project! {
    /// A future whose free functions use a timer of yours. [`scope`] makes one.
    ///
    /// # Cancel safety
    /// As its future.
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

/// While it lives, the thread is inside of a scope.
#[derive(Debug)]
pub(super) struct Inside(PhantomData<*const ()>);

impl Inside {
    pub(super) fn enter(timer: &Timer) -> Self {
        let timer = timer.clone();
        let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().push(timer));
        ALIVE.fetch_add(1, Relaxed);
        Inside(PhantomData)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
        // It may be the last clone of the timer, whose end runs foreign drops: not while the list is borrowed.
        let timer = SCOPES.try_with(|scopes| scopes.borrow_mut().pop());
        drop(timer);
    }
}

/// While it lives, the free functions of the process use a timer of yours. [`replace_default`] makes one.
#[derive(Debug)]
#[must_use = "dropped at once, it has no effect"]
pub struct Replaced {
    number: usize,
}

impl Drop for Replaced {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
        let mut all = replaced();
        let own = all.iter().position(|(number, _)| *number == self.number);
        let own = planted!("tasks.replacement-ends-with-another", Some(all.len() - 1), own);
        let timer = own.map(|own| all.remove(own));
        drop(all);
        drop(timer);
    }
}
