//! The engine of a future: the default engine, or the caller's `Timer`.

use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::{fmt, io};

use tourbillon_wheel::{self as wheel, Time};

use super::scope::current;
use crate::builder::Builder;
use crate::clock::EngineClock;
use crate::engine::StartError;
use crate::error::ScheduleError;
use crate::key::Key;
use crate::timer::Timer;
use crate::wakers::{TaskCore, TaskShard, Wakers};

/// The engine of a future: [`Global`] or [`Given`].
///
/// It determines the future's output.
#[expect(private_bounds, reason = "nobody else can have one")]
pub trait Home: HostEngine {
    /// The output of a future of `T`: `T` on an engine that never stops, a `Result` on an engine that may stop.
    type Output<T>;
}

/// The default engine. It starts with its first timer, has one thread, and never stops.
///
/// Inside a [scope](super::scope()), futures are created on the scope's timer instead.
#[derive(Clone, Debug)]
pub struct Global {
    /// The timer that replaced the default engine when the future was created, if any.
    given: Option<Given>,
}

/// The caller's [`Timer`](crate::Timer).
///
/// It does not keep the timer alive: when the last clone of the `Timer` is dropped, the timer stops and its futures
/// return an error.
#[derive(Clone)]
pub struct Given {
    /// The shard of the creating thread. With one per thread, clones on different threads do not contend for one
    /// reference count.
    shard: Arc<TaskShard>,
}

/// Why a future on the caller's timer could not wait.
///
/// Its deadline had not passed. After [`Full`](SleepError::Full) or [`Thread`](SleepError::Thread), the next poll tries
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SleepError {
    /// The timer was stopped.
    Stopped,
    /// The limit on pending timers is reached, or memory is exhausted.
    Full,
    /// The driver's thread could not be started.
    Thread,
}

impl fmt::Display for SleepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SleepError::Stopped => "the timer was stopped: sleep on another one",
            SleepError::Full => {
                "no room for another timer: wait for some, raise the limit, or shed load"
            }
            SleepError::Thread => "the driver's thread could not be started: try again",
        })
    }
}

impl std::error::Error for SleepError {}

impl From<SleepError> for io::Error {
    fn from(wrong: SleepError) -> Self {
        io::Error::other(wrong)
    }
}

/// The engine operations that a future needs.
pub(crate) trait HostEngine: fmt::Debug + Send + Sync + Unpin + 'static {
    fn clock(&self) -> &EngineClock;
    /// Nanoseconds.
    fn tick(&self) -> u64;
    fn shard(&self, key: Key) -> &TaskShard;
    /// The shard for counts that belong to no key.
    fn any_shard(&self) -> &TaskShard;
    fn arm(&self, at: Time, waker: Waker) -> Result<Key, (Waker, SleepError)>;
    fn output<T>(outcome: Result<T, SleepError>) -> Self::Output<T>
    where
        Self: Home;
}

impl Home for Global {
    type Output<T> = T;
}

impl Home for Given {
    type Output<T> = Result<T, SleepError>;
}

/// Maps the reason why a waker was not armed.
#[cold]
fn refused(error: ScheduleError<Waker>) -> (Waker, SleepError) {
    let why = match &error {
        ScheduleError::Full(_) => SleepError::Full,
        ScheduleError::Thread(..) => {
            planted!("tasks.a-missing-thread-is-a-stop", SleepError::Stopped, SleepError::Thread)
        }
        ScheduleError::Stopped(_) | ScheduleError::Never(_) => SleepError::Stopped,
    };
    (error.into_inner(), why)
}

static DEFAULT: OnceLock<DefaultEngine> = OnceLock::new();

/// The default engine, with its clock stored inline: a timeout whose future is ready at once reads nothing else.
struct DefaultEngine {
    clock: EngineClock,
    core: Arc<TaskCore>,
}

impl Global {
    /// The engine that the free functions use on this thread now.
    #[inline]
    pub(super) fn here() -> Self {
        Global { given: current() }
    }

    #[inline]
    fn engine() -> &'static DefaultEngine {
        DEFAULT.get_or_init(|| {
            let settings = Builder::default().name("tourbillon-tasks").settings();
            let settings = settings.expect("the defaults are in range");
            let clock = settings.context.clock.clone();
            DefaultEngine { clock, core: Wakers::engine(settings) }
        })
    }

    #[inline]
    fn core() -> &'static Arc<TaskCore> {
        &Global::engine().core
    }
}

impl HostEngine for Global {
    #[inline]
    fn clock(&self) -> &EngineClock {
        match &self.given {
            None => &Global::engine().clock,
            Some(given) => given.clock(),
        }
    }

    fn tick(&self) -> u64 {
        match &self.given {
            None => Global::core().context.tick,
            Some(given) => planted!(
                "tasks.scoped-interval-has-the-default-tick",
                Global::core().context.tick,
                given.tick()
            ),
        }
    }

    #[inline]
    fn shard(&self, key: Key) -> &TaskShard {
        match &self.given {
            None => {
                &Global::core().shards
                    [planted!("tasks.the-default-engine-looks-at-its-first-shard", 0, key.shard())]
            }
            Some(given) => given.shard(key),
        }
    }

    fn any_shard(&self) -> &TaskShard {
        match &self.given {
            None => &Global::core().shards[0],
            Some(given) => planted!(
                "sixth.panic-in-a-scope-is-counted-by-the-default-engine",
                &*Global::core().shards[0],
                given.any_shard()
            ),
        }
    }

    #[inline]
    fn arm(&self, at: Time, waker: Waker) -> Result<Key, (Waker, SleepError)> {
        if let Some(given) = &self.given {
            return given.arm(at, waker);
        }
        let shard = Global::core().own_shard();
        let armed = Global::core().arm(shard, at, waker);
        armed.map(|(key, ())| Key::new(shard.index, key)).map_err(refused)
    }

    #[inline]
    fn output<T>(outcome: Result<T, SleepError>) -> T {
        match outcome {
            Ok(output) => output,
            Err(wrong) => panic!("the default engine cannot wait: {wrong}"),
        }
    }
}

impl Given {
    /// Refers to this thread's shard of the timer.
    #[inline]
    pub(crate) fn on(timer: &Timer) -> Self {
        Given { shard: timer.core().delivery.tasks.engine().own_shard().clone() }
    }

    /// Arms a waker on a shard that is not open: its engine was stopped, or its driver has not started.
    #[cold]
    fn start_and_arm(
        &self,
        at: Time,
        waker: Waker,
    ) -> Result<(wheel::Key, ()), ScheduleError<Waker>> {
        match self.shard.shown.start() {
            Ok(()) => self.shard.arm(at, waker),
            Err(StartError::Stopped) => Err(ScheduleError::Stopped(waker)),
            Err(StartError::Thread(wrong)) => Err(ScheduleError::Thread(waker, wrong)),
        }
    }

    /// Whether both are on the same timer.
    pub(super) fn shares(&self, other: &Given) -> bool {
        let same = Arc::ptr_eq(&self.shard.context, &other.shard.context);
        planted!("tasks.sleep-claims-to-be-on-any-timer", true, same)
    }

    /// For models in which a thread advances time.
    #[cfg(all(loom, test))]
    pub(crate) fn context(&self) -> &crate::engine::context::EngineContext {
        &self.shard.context
    }
}

impl HostEngine for Given {
    #[inline]
    fn clock(&self) -> &EngineClock {
        &self.shard.context.clock
    }

    fn tick(&self) -> u64 {
        self.shard.context.tick
    }

    #[inline]
    fn shard(&self, _key: Key) -> &TaskShard {
        &self.shard
    }

    fn any_shard(&self) -> &TaskShard {
        &self.shard
    }

    #[inline]
    fn arm(&self, at: Time, waker: Waker) -> Result<Key, (Waker, SleepError)> {
        let armed = match self.shard.arm(at, waker) {
            Err(ScheduleError::Stopped(waker)) => self.start_and_arm(at, waker),
            armed => armed,
        };
        armed.map(|(key, ())| Key::new(self.shard.index, key)).map_err(refused)
    }

    #[inline]
    fn output<T>(outcome: Result<T, SleepError>) -> Result<T, SleepError> {
        outcome
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given")
    }
}
