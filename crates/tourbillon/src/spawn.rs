//! Starts threads with the standard library or a user's hook, whose panics are contained.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::sync::thread;

/// How the engine starts a thread.
#[derive(Clone)]
pub(crate) enum Spawn {
    Std,
    Own(Arc<SpawnHook>),
}

type SpawnHook = dyn Fn(String, Box<dyn FnOnce() + Send>) -> io::Result<()> + Send + Sync;

impl Spawn {
    pub(crate) fn run(&self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        let name =
            planted!("fourth.long-thread-name-is-cut", name.chars().take(15).collect(), name);
        let start = || match self {
            Spawn::Std => {
                let builder = thread::Builder::new();
                let builder = planted!("blind.threads-have-no-name", builder, builder.name(name));
                builder.spawn(body).map(|_| ())
            }
            Spawn::Own(hook) => {
                let started = hook(name, body);
                planted!("engine.spawn-error-lost", started.or(Ok(())), started)
            }
        };
        let started = planted!(
            "engine.spawn-hook-panic-not-contained",
            Ok(start()),
            catch_unwind(AssertUnwindSafe(start))
        );
        started.unwrap_or_else(|payload| {
            // Dropping the payload might panic as well.
            std::mem::forget(payload);
            planted!(
                "third.panic-of-the-spawn-hook-is-a-start",
                Ok(()),
                Err(io::Error::other("the spawn hook panicked"))
            )
        })
    }
}
