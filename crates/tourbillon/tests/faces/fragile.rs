//! Values whose drop panics, the engines that hold them, and the building blocks of the rows of `drops.rs`.

use std::any::Any;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tourbillon::{Driver, KeyedTimer, Operation, Purgatory, ScheduleError, Timer, VirtualClock};

use crate::common::{HOUR, Log, PLACES, PanicsWhenDropped, panic_quietly, running_on};

/// Counts its drop, and panics with a payload whose drop panics too. Dropped during an unwind, it aborts the process.
pub(crate) struct Fragile(Arc<AtomicU64>);

impl Drop for Fragile {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        resume_unwind(Box::new(PanicsWhenDropped));
    }
}

/// How many fragile values were dropped, and how many were created.
#[derive(Clone, Default)]
pub(crate) struct Broken(Arc<AtomicU64>, Arc<AtomicU64>);

impl Broken {
    pub(crate) fn one(&self) -> Fragile {
        self.1.fetch_add(1, SeqCst);
        Fragile(self.0.clone())
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(SeqCst)
    }

    pub(crate) fn made(&self) -> u64 {
        self.1.load(SeqCst)
    }
}

/// A key whose clones are fragile too. Only its name is compared.
pub(crate) struct Cloned {
    name: Name,
    broken: Broken,
}

impl Cloned {
    pub(crate) fn new(name: &'static str, broken: &Broken) -> Self {
        Cloned { name: Name(name, Some(broken.one())), broken: broken.clone() }
    }

    /// A key whose own drop does not panic. Its clones are fragile.
    pub(crate) fn calm(name: &'static str, broken: &Broken) -> Self {
        Cloned { name: Name(name, None), broken: broken.clone() }
    }
}

impl Clone for Cloned {
    fn clone(&self) -> Self {
        Cloned::new(self.name.0, &self.broken)
    }
}

impl Hash for Cloned {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialEq for Cloned {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Cloned {}

impl Borrow<str> for Cloned {
    fn borrow(&self) -> &str {
        self.name.0
    }
}

/// Drops a returned value in user code, where the caller handles the panic. Returns whether there was one.
pub(crate) fn drop_in_hand<T>(value: T) -> bool {
    catch_unwind(AssertUnwindSafe(|| drop(value))).map_err(std::mem::forget).is_err()
}

/// A key that may be fragile. Only its name is compared.
pub(crate) struct Name(
    pub(crate) &'static str,
    #[expect(dead_code, reason = "it is dropped")] pub(crate) Option<Fragile>,
);

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Name {}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.0
    }
}

/// An operation that holds a value, and is completed when the bench sets its flag.
pub(crate) struct Op {
    pub(crate) met: Arc<AtomicBool>,
    #[expect(dead_code, reason = "it is dropped")]
    pub(crate) held: Option<Fragile>,
}

impl Operation for Op {
    fn try_complete(&mut self) -> bool {
        self.met.load(SeqCst)
    }

    fn on_complete(self) {}
    fn on_expire(self) {}
}

/// Whether it is a payload with which these tests panic.
fn was_thrown(payload: &(dyn Any + Send)) -> bool {
    payload.is::<PanicsWhenDropped>()
        || payload.is::<Fragile>()
        || payload.is::<Option<Fragile>>()
        || payload.is::<&'static str>()
}

/// What the values of a case are held in.
pub(crate) struct Bench {
    pub(crate) clock: VirtualClock,
    pub(crate) timer: Timer,
    pub(crate) keyed: KeyedTimer<Name>,
    pub(crate) purgatory: Purgatory<Name, Op>,
    /// `Some` if callbacks run in an event loop.
    pub(crate) driver: Option<RefCell<Driver>>,
    /// The condition of what waits in the purgatory.
    pub(crate) met: Arc<AtomicBool>,
    /// How many panics were reported.
    pub(crate) reported: Broken,
}

/// Where callbacks run.
pub(crate) const EVERYWHERE: [&str; 4] = [PLACES[0], PLACES[1], PLACES[2], "event loop"];

/// What receives the panics: a report that counts them, and one that then panics itself.
pub(crate) const REPORTS: [&str; 2] = ["a calm report", "a report that panics"];

impl Bench {
    pub(crate) fn new(place: &str, report: &'static str, limit: usize) -> Self {
        let (clock, reported) = (VirtualClock::new(), Broken::default());
        let count = reported.clone();
        let driven = place == EVERYWHERE[3];
        let builder = if driven { Timer::builder() } else { running_on(place) };
        let builder = builder.shards(1).clock(&clock).limit(limit).on_panic(move |payload| {
            // The payload of any other panic is not what was thrown.
            count.0.fetch_add(u64::from(was_thrown(payload)), SeqCst);
            if report == REPORTS[1] {
                panic_quietly();
            }
        });
        let (timer, driver) = if driven {
            let (timer, driver) = builder.build_driven().unwrap();
            (timer, Some(RefCell::new(driver)))
        } else {
            (builder.build().unwrap(), None)
        };
        clock.advance(HOUR).unwrap();
        let (keyed, purgatory) = (KeyedTimer::new(&timer), Purgatory::new(&timer));
        Bench { clock, timer, keyed, purgatory, driver, met: Arc::default(), reported }
    }

    /// Advances the clock, and runs what becomes due.
    pub(crate) fn advance(&self, by: Duration) {
        let Some(driver) = &self.driver else { return self.clock.advance(by).unwrap() };
        let end = self.clock.elapsed() + by;
        while driver.borrow_mut().turn_within(end - self.clock.elapsed()).ran > 0 {}
        assert_eq!(self.clock.elapsed(), end);
    }

    /// Completes what waits in the purgatory.
    pub(crate) fn complete(&self) {
        self.met.store(true, SeqCst);
        assert_eq!(self.purgatory.check("own"), 1, "it is completed");
    }

    /// A condition that is met when the bench sets its flag.
    pub(crate) fn condition(&self) -> impl Fn() -> bool + use<> {
        let met = self.met.clone();
        move || met.load(SeqCst)
    }
}

/// Something that holds a value until its deadline.
pub(crate) struct Holder {
    pub(crate) name: &'static str,
    /// Makes it hold the value until at most this long after now.
    pub(crate) hold: fn(&Bench, Duration, Fragile) -> Held,
    /// The number of panics if it runs.
    pub(crate) panics: u64,
    /// Whether it continues to wait when the timer is stopped.
    pub(crate) outlives_timer: bool,
}

impl Holder {
    pub(crate) const fn new(
        name: &'static str,
        hold: fn(&Bench, Duration, Fragile) -> Held,
    ) -> Self {
        Holder { name, hold, panics: 1, outlives_timer: false }
    }

    /// Sets the number of panics if it runs.
    pub(crate) const fn panics(self, panics: u64) -> Self {
        Holder { panics, ..self }
    }

    pub(crate) const fn outlives_timer(self) -> Self {
        Holder { outlives_timer: true, ..self }
    }
}

/// What happened to the value.
pub(crate) enum Held {
    Here(Handle),
    /// It was refused, and is returned inside this.
    Back(Box<dyn Any>),
    /// It was refused, or not needed, and was dropped.
    Gone,
}

type Cancel = Box<dyn FnOnce(&Bench) -> bool>;
type Reschedule = Box<dyn FnOnce(&Bench, Duration)>;

/// What can be done with a held value. Keeps no timer alive.
#[derive(Default)]
pub(crate) struct Handle {
    /// Ends it before its deadline. Returns whether the value was dropped in user code.
    pub(crate) cancel: Option<Cancel>,
    pub(crate) reschedule: Option<Reschedule>,
    /// Waits for the outcome, which exists once it has ended.
    pub(crate) wait: Option<Box<dyn FnOnce()>>,
}

impl Handle {
    /// Sets a cancel that drops the value.
    pub(crate) fn cancel(self, cancel: impl FnOnce(&Bench) + 'static) -> Self {
        let cancel = move |bench: &Bench| {
            cancel(bench);
            false
        };
        Handle { cancel: Some(Box::new(cancel)), ..self }
    }

    /// Sets a cancel that returns the value.
    pub(crate) fn take_out<T>(self, take: impl FnOnce(&Bench) -> T + 'static) -> Self {
        let cancel = move |bench: &Bench| drop_in_hand(take(bench));
        Handle { cancel: Some(Box::new(cancel)), ..self }
    }

    pub(crate) fn reschedule(self, to: impl FnOnce(&Bench, Duration) + 'static) -> Self {
        Handle { reschedule: Some(Box::new(to)), ..self }
    }

    pub(crate) fn wait(self, wait: impl FnOnce() + 'static) -> Self {
        Handle { wait: Some(Box::new(wait)), ..self }
    }
}

/// A handle for a timer that was scheduled.
pub(crate) fn held<R, F: 'static>(
    scheduled: Result<R, ScheduleError<F>>,
    handle: impl FnOnce(R) -> Handle,
) -> Held {
    match scheduled {
        Ok(scheduled) => Held::Here(handle(scheduled)),
        Err(error) => Held::Back(Box::new(error.into_inner())),
    }
}

/// A listener, and an assertion that it was called once.
pub(crate) fn listener<R>() -> (impl FnOnce(R) + Send + 'static, impl FnOnce() + 'static) {
    let log = Log::new();
    let told = log.clone();
    let then = move |_outcome: R| log.add(());
    (then, move || assert_eq!(told.len(), 1, "the listener is told the outcome, once"))
}
