//! Where the timer of a future lives: on the default engine, or on a `Timer` of yours.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use tourbillon_wheel::Time;

use crate::builder::Builder;
use crate::clock::EngineClock;
use crate::engine::shard::Refused;
use crate::engine::{StartError, Unarmed};
use crate::key::Key;
use crate::timer::Timer;
use crate::wakers::{TaskCore, TaskShard, Wakers};

/// Where the timer of a future lives: [`Global`] or [`Given`]. It decides what the future gives.
#[expect(private_bounds, reason = "nobody else can have one")]
pub trait Home: Place {
    /// What a future of `T` gives: on an engine that never stops `T` itself, on one that may a result.
    type Output<T>;
}

/// The default engine: it starts with its first timer, keeps one thread, and never stops.
#[derive(Clone, Copy, Debug)]
pub struct Global;

/// A [`Timer`](crate::Timer) of yours. It keeps nothing alive: when the last clone of the timer goes, it is stopped,
/// and its futures give an error.
#[derive(Clone)]
pub struct Given {
    /// The shard of the thread that made it, whose count that thread writes: nothing that all threads write.
    shard: Arc<TaskShard>,
}

/// Why a future on a timer of yours could not wait for its time. The time had not come. What was refused for want of
/// room or of a thread may be polled again, and tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SleepError {
    /// The timer was stopped.
    Stopped,
    /// The limit on pending timers is reached, or there is no memory for another.
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

/// What a future asks of its home.
pub(crate) trait Place: fmt::Debug + Send + Sync + Unpin + 'static {
    fn clock(&self) -> &EngineClock;
    /// Nanoseconds.
    fn tick(&self) -> u64;
    fn shard(&self, key: Key) -> &TaskShard;
    /// Where to count what concerns no key.
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

static DEFAULT: OnceLock<DefaultEngine> = OnceLock::new();

/// The default engine, and its clock where it is found without a detour: a timeout that is ready at once reads nothing
/// else.
struct DefaultEngine {
    clock: EngineClock,
    core: Arc<TaskCore>,
}

impl Global {
    #[inline]
    fn engine() -> &'static DefaultEngine {
        DEFAULT.get_or_init(|| {
            let settings = Builder::default().name("tourbillon-tasks").settings();
            let settings = settings.expect("the defaults are in range");
            let clock = settings.hub.clock.clone();
            DefaultEngine { clock, core: Wakers::engine(settings) }
        })
    }

    #[inline]
    fn core() -> &'static Arc<TaskCore> {
        &Global::engine().core
    }
}

impl Place for Global {
    #[inline]
    fn clock(&self) -> &EngineClock {
        &Global::engine().clock
    }

    fn tick(&self) -> u64 {
        Global::core().hub.tick
    }

    #[inline]
    fn shard(&self, key: Key) -> &TaskShard {
        &Global::core().shards
            [planted!("tasks.the-default-engine-looks-at-its-first-shard", 0, key.shard())]
    }

    fn any_shard(&self) -> &TaskShard {
        &Global::core().shards[0]
    }

    #[inline]
    fn arm(&self, at: Time, waker: Waker) -> Result<Key, (Waker, SleepError)> {
        Global::core().arm(at, waker).map_err(|unarmed| match unarmed {
            Unarmed::Stopped(waker) => (waker, SleepError::Stopped),
            Unarmed::Full(waker) => (waker, SleepError::Full),
            Unarmed::Thread(waker, _) => (waker, SleepError::Thread),
        })
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
    /// On the shard of this thread.
    #[inline]
    pub(crate) fn on(timer: &Timer) -> Self {
        Given { shard: timer.core().delivery.tasks.engine().own_shard().clone() }
    }

    /// Whether the other one is on the same timer.
    #[cfg(feature = "hyper")]
    pub(super) fn shares(&self, other: &Given) -> bool {
        let same = Arc::ptr_eq(&self.shard.hub, &other.shard.hub);
        planted!("tasks.hyper-moves-a-sleep-of-another-timer", true, same)
    }

    /// For a model in which time is a thread.
    #[cfg(all(loom, test))]
    pub(crate) fn hub(&self) -> &crate::engine::hub::Hub {
        &self.shard.hub
    }
}

impl Place for Given {
    #[inline]
    fn clock(&self) -> &EngineClock {
        &self.shard.hub.clock
    }

    fn tick(&self) -> u64 {
        self.shard.hub.tick
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
        let mut armed = self.shard.arm(at, waker);
        if let Err(Refused::New(waker)) = armed {
            match self.shard.shown.start() {
                Ok(()) => armed = self.shard.arm(at, waker),
                Err(StartError::Stopped) => return Err((waker, SleepError::Stopped)),
                Err(StartError::Thread(_)) => {
                    let wrong = planted!(
                        "tasks.a-missing-thread-is-a-stop",
                        SleepError::Stopped,
                        SleepError::Thread
                    );
                    return Err((waker, wrong));
                }
            }
        }
        match armed {
            Ok(key) => Ok(Key::new(self.shard.index, key)),
            Err(Refused::New(waker) | Refused::Stopped(waker)) => Err((waker, SleepError::Stopped)),
            Err(Refused::Full(waker)) => Err((waker, SleepError::Full)),
        }
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
