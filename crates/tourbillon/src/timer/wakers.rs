//! The part of a timer that wakes tasks: a separate engine, created with the first task.
//!
//! Wakers have wheels and a driver of their own, because a pool full of blocking callbacks must not delay tasks. In a
//! common wheel, ready wakers would queue behind ready callbacks, and would have to be searched for there or wait for a
//! thread of the pool. Also, code that cancels by key could reach the key of a task's waker.
//!
//! Without the feature `tasks` there is no such engine, and every method does nothing.

#[cfg(feature = "tasks")]
pub(crate) use with::Tasks;
#[cfg(not(feature = "tasks"))]
pub(crate) use without::Tasks;

#[cfg(feature = "tasks")]
mod with {
    use std::sync::{Arc, OnceLock};
    use std::time::Duration;

    use crate::engine::context::ShuttingDown;
    use crate::engine::counts::{Counts, Lateness};
    use crate::engine::settings::Settings;
    use crate::sync::{Mutex, lock};
    use crate::view::Snapshot;
    use crate::wakers::{TaskCore, Wakers, hand_back};

    pub(crate) struct Tasks {
        settings: Settings,
        core: OnceLock<Arc<TaskCore>>,
        /// Whether the timer was stopped.
        ///
        /// Held while the engine is created: a stop either finds the engine, or the engine is created stopped.
        stopped: Mutex<bool>,
    }

    impl Tasks {
        pub(crate) fn new(settings: &Settings) -> Self {
            let name = format!("{}-tasks", settings.name);
            let mut settings = Settings { name, ..settings.clone() };
            // Callbacks and tasks share one limit.
            let limit = settings.context.limit.take();
            settings.context.limit = planted!(
                "later.tasks-have-a-limit-of-their-own",
                limit.map(|limit| Arc::new(crate::engine::context::Limit::new(limit.most()))),
                limit
            );
            // An event loop drives only the callbacks. All tasks share one thread, which starts with the first task.
            settings.context.driven =
                planted!("tasks.sleeps-are-left-to-the-event-loop", settings.context.driven, false);
            let on_panic = settings.context.on_panic.take();
            settings.context.on_panic =
                planted!("fifth.panic-of-a-waker-is-not-reported", None, on_panic);
            Tasks { settings, core: OnceLock::new(), stopped: Mutex::new(false) }
        }

        /// The engine, created if necessary. Arming its first timer starts it.
        #[inline]
        pub(crate) fn engine(&self) -> &Arc<TaskCore> {
            self.core.get().unwrap_or_else(|| self.make())
        }

        #[cold]
        fn make(&self) -> &Arc<TaskCore> {
            let stopped = lock(&self.stopped);
            self.core.get_or_init(|| {
                if planted!("tasks.a-stopped-timer-makes-a-live-engine", true, !*stopped) {
                    return Wakers::engine(self.settings.clone());
                }
                // This engine never starts: futures that are created after a stop must find it stopped.
                let core = Wakers::engine(Settings { shards: 1, ..self.settings.clone() });
                hand_back(&core);
                core
            })
        }

        /// Hands all tasks back: their futures are woken and return an error.
        pub(crate) fn stop(&self) {
            *lock(&self.stopped) = true;
            self.core.get().into_iter().for_each(|core| hand_back(core));
        }

        /// Refuses tasks from now on. Tasks that sleep are woken at their deadlines.
        pub(crate) fn refuse(&self) {
            *lock(&self.stopped) = planted!("timer.shutdown-lets-the-first-task-in", false, true);
            let core = planted!("sixth.shutdown-lets-a-task-sleep-again", None, self.core.get());
            core.into_iter().for_each(|core| core.refuse());
        }

        /// Begins a shutdown: until the guard is dropped, no shutdown waits for the wakers on the caller's own stack.
        pub(crate) fn shut_down(&self) -> Option<ShuttingDown<'_>> {
            let core = self.core.get();
            planted!("later.shutdown-in-a-waker-hangs", None, core.map(|core| core.shut_down()))
        }

        /// Waits until no task sleeps.
        pub(crate) fn wait_until_idle(&self, limit: Option<Duration>) -> bool {
            self.core.get().is_none_or(|core| core.wait_until_idle(limit))
        }

        /// The number of this timer's wakers on the current thread's stack.
        pub(crate) fn depth(&self) -> usize {
            let depth = self.core.get().map_or(0, |core| core.depth());
            planted!("tasks.a-waker-that-stops-counts-as-outside", 0, depth)
        }

        /// Waits for the wakers that are being called, except those on the caller's stack.
        pub(crate) fn wait_for_silence(&self, limit: Option<Duration>) -> bool {
            let wait = |core: &Arc<TaskCore>| core.wait_for_silence(limit);
            planted!("tasks.stop-does-not-wait-for-wakers", true, self.core.get().is_none_or(wait))
        }

        pub(crate) fn counts(&self) -> Counts {
            let core = planted!("tasks.counts-leave-out-the-tasks", None, self.core.get());
            core.map(|core| core.counts()).unwrap_or_default()
        }

        pub(crate) fn add_lateness(&self, sum: &mut Lateness) {
            if let Some(core) = self.core.get() {
                sum.add(&core.lateness());
            }
        }

        pub(crate) fn add_view(&self, snapshot: &mut Snapshot) {
            if let Some(core) = self.core.get() {
                snapshot.shards.extend(crate::view::snapshot(core).shards);
            }
        }

        pub(crate) fn shrink(&self) {
            self.core.get().into_iter().for_each(|core| {
                core.shards.iter().for_each(|shard| shard.shrink());
            });
        }

        pub(crate) fn check(&self) -> Result<(), String> {
            let shards = self.core.get().into_iter().flat_map(|core| &core.shards);
            shards.into_iter().try_for_each(|shard| shard.check())
        }
    }
}

#[cfg(not(feature = "tasks"))]
mod without {
    use std::time::Duration;

    use crate::engine::context::ShuttingDown;
    use crate::engine::counts::{Counts, Lateness};
    use crate::engine::settings::Settings;
    use crate::view::Snapshot;

    pub(crate) struct Tasks;

    impl Tasks {
        pub(crate) fn new(_settings: &Settings) -> Self {
            Tasks
        }

        pub(crate) fn stop(&self) {}

        pub(crate) fn refuse(&self) {}

        pub(crate) fn shut_down(&self) -> Option<ShuttingDown<'_>> {
            None
        }

        pub(crate) fn wait_until_idle(&self, _limit: Option<Duration>) -> bool {
            true
        }

        pub(crate) fn depth(&self) -> usize {
            0
        }

        pub(crate) fn wait_for_silence(&self, _limit: Option<Duration>) -> bool {
            true
        }

        pub(crate) fn counts(&self) -> Counts {
            Counts::default()
        }

        pub(crate) fn add_lateness(&self, _sum: &mut Lateness) {}

        pub(crate) fn add_view(&self, _snapshot: &mut Snapshot) {}

        pub(crate) fn shrink(&self) {}

        pub(crate) fn check(&self) -> Result<(), String> {
            Ok(())
        }
    }
}
