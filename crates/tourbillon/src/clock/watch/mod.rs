//! The watch: one thread for the whole process, which sleeps until the system's wall clock is set.
//!
//! The thread starts with the first timer that waits for the wall clock, and ends with the last engine that has had
//! such a timer. On Linux it blocks in the kernel, which wakes it when the clock is set. Elsewhere, or if the system
//! call fails, it reads the clock every 30 s while such a timer is pending.
//!
//! The thread belongs to no engine and no model contains it, so it uses the standard library's lock.

mod poll;
#[cfg(target_os = "linux")]
mod timerfd;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread;

use poll::Poll;
#[cfg(target_os = "linux")]
use timerfd::Timerfd;

static WATCH: Mutex<Watch> = Mutex::new(Watch { engines: Vec::new(), numbers: 0, notifier: None });

struct Watch {
    engines: Vec<(u64, Weak<dyn Follows>)>,
    numbers: u64,
    /// `Some` while the thread runs.
    notifier: Option<Arc<Notifier>>,
}

/// An engine that follows the wall clock.
pub(crate) trait Follows: Send + Sync {
    /// Called when the clock was set: re-examines the timers that wait for the clock.
    fn look_again(&self);
    /// Whether any timer of the engine waits for the clock.
    fn is_waiting(&self) -> bool;
}

/// What the thread blocks on.
enum Notifier {
    #[cfg(target_os = "linux")]
    Timerfd(Timerfd),
    Poll(Poll),
}

/// A registration: as long as it lives, the engine is notified when the clock is set.
pub(crate) struct Attached {
    number: u64,
    notifier: Arc<Notifier>,
}

/// Registers the engine: from now on its timers are re-examined whenever the clock is set.
pub(crate) fn attach(engine: Weak<dyn Follows>) -> io::Result<Attached> {
    let mut watch = lock();
    let notifier = match &watch.notifier {
        Some(notifier) => notifier.clone(),
        None => {
            let notifier = Arc::new(Notifier::new());
            let own = notifier.clone();
            planted!(
                "third.watch-that-did-not-start-is-not-tried-again",
                watch.notifier = Some(notifier.clone()),
                ()
            );
            thread::Builder::new().name("tourbillon-wall".into()).spawn(move || run(&own))?;
            watch.notifier = Some(notifier.clone());
            notifier
        }
    };
    watch.numbers += 1;
    let number =
        planted!("wall.watch-number-given-twice", watch.engines.len() as u64, watch.numbers);
    watch.engines.push((number, engine));
    Ok(Attached { number, notifier })
}

impl Attached {
    /// Called when the engine's first timer begins to wait.
    pub(crate) fn nudge(&self) {
        match &*self.notifier {
            // The kernel watches the clock in any case.
            #[cfg(target_os = "linux")]
            Notifier::Timerfd(_) => {}
            Notifier::Poll(poll) => poll.notify(),
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let mut watch = lock();
        planted!("wall.one-engine-detaches-all", watch.engines.clear(), {
            watch.engines.retain(|&(number, _)| number != self.number);
        });
        if watch.engines.is_empty() {
            self.notifier.notify();
        }
    }
}

/// The body of the thread.
fn run(notifier: &Notifier) {
    loop {
        notifier.wait();
        let engines: Vec<Weak<dyn Follows>> = {
            let mut watch = lock();
            if planted!("wall.watch-thread-never-ends", false, watch.engines.is_empty()) {
                planted!("wall.ended-watch-not-started-again", (), watch.notifier = None);
                return;
            }
            watch.engines.iter().map(|(_, engine)| engine.clone()).collect()
        };
        for engine in engines {
            // This may drop the last reference to the engine and so the user's executor, whose drop may panic.
            let look = || engine.upgrade().map(|engine| engine.look_again());
            let _ = catch_unwind(AssertUnwindSafe(look)).map_err(std::mem::forget);
        }
    }
}

/// Whether any timer of any engine waits for the clock.
fn is_waiting() -> bool {
    let engines: Vec<_> =
        lock().engines.iter().filter_map(|(_, engine)| engine.upgrade()).collect();
    engines.iter().any(|engine| engine.is_waiting())
}

impl Notifier {
    fn new() -> Self {
        #[cfg(target_os = "linux")]
        if let Ok(timerfd) = Timerfd::new() {
            return Notifier::Timerfd(timerfd);
        }
        Notifier::Poll(Poll::new(poll::PERIOD))
    }

    /// Blocks until the clock was set or `notify` is called.
    fn wait(&self) {
        match self {
            #[cfg(target_os = "linux")]
            Notifier::Timerfd(timerfd) => timerfd.wait(),
            Notifier::Poll(poll) => poll.wait(is_waiting),
        }
    }

    /// Wakes the thread.
    fn notify(&self) {
        match self {
            #[cfg(target_os = "linux")]
            Notifier::Timerfd(timerfd) => timerfd.notify(),
            Notifier::Poll(poll) => poll.notify(),
        }
    }
}

/// Makes the thread behave as after a setting of the clock. Returns whether there is a thread.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) fn pretend() -> bool {
    lock().notifier.as_ref().map(|notifier| notifier.notify()).is_some()
}

/// Nothing panics under this lock, so poisoning is ignored.
fn lock() -> MutexGuard<'static, Watch> {
    WATCH.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
