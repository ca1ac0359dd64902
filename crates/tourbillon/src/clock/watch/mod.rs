//! How a setting of the system's clock is noticed: one thread for the whole process, which sleeps until then.
//!
//! It starts with the first timer of any engine that waits for the wall clock, and ends with the last engine that had
//! one. On Linux it sleeps in the kernel, which wakes it when somebody sets the clock. Elsewhere, or if Linux does not
//! let us, it reads the clock again every 30 s, and only while such a timer is pending.
//!
//! The thread belongs to no engine: no model of the engine has it, and its lock is the standard one.

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
    /// There while the thread is.
    notifier: Option<Arc<Notifier>>,
}

/// An engine that follows the wall clock.
pub(crate) trait Follows: Send + Sync {
    /// The clock was set: looks again at what waits for it.
    fn look_again(&self);
    /// Whether anything waits for it.
    fn is_waiting(&self) -> bool;
}

/// What the thread sleeps by.
enum Notifier {
    #[cfg(target_os = "linux")]
    Timerfd(Timerfd),
    Poll(Poll),
}

/// An engine is told of settings of the clock as long as this lives.
pub(crate) struct Attached {
    number: u64,
    notifier: Arc<Notifier>,
}

/// Has the engine look again at its timers whenever the clock is set, from now on.
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
    let number = watch.numbers;
    watch.engines.push((number, engine));
    Ok(Attached { number, notifier })
}

impl Attached {
    /// A timer waits that is the first to do so.
    pub(crate) fn nudge(&self) {
        match &*self.notifier {
            // The kernel watches anyway.
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

/// The thread.
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
            // The last owner may have gone meanwhile: then its executor, which is foreign, is dropped here.
            let look = || engine.upgrade().map(|engine| engine.look_again());
            let _ = catch_unwind(AssertUnwindSafe(look)).map_err(std::mem::forget);
        }
    }
}

/// Whether any timer of any engine waits.
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

    /// Sleeps until the clock was set, or somebody rang.
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

/// Has the thread look as if the clock had been set, and answers whether there is one.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) fn pretend() -> bool {
    lock().notifier.as_ref().map(|notifier| notifier.notify()).is_some()
}

/// Nothing panics under this lock.
fn lock() -> MutexGuard<'static, Watch> {
    WATCH.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
