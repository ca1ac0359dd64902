//! Boxed callbacks: callbacks that may run again, or that wait for the wall clock.

use std::any::Any;
use std::sync::Arc;

use super::TimerShard;
use super::context::Context;
use super::wall::Plan;
use crate::leases::State;

/// A boxed callback.
pub(crate) trait Callback: IntoAny + Send {
    /// Runs the callback. It is armed again if it calls [`Context::again`] and does not panic.
    fn call(&mut self, context: &Context<'_>);
    /// Whether it can be armed again.
    fn can_repeat(&self) -> bool {
        true
    }
    /// Called when the callback will not run again; `state` says why. No lock is held.
    fn will_not_run(&mut self, _state: State, _shard: &TimerShard) {}
    /// The callback's plan, if it waits for the wall clock.
    fn plan(&self) -> Option<&Arc<Plan>> {
        None
    }
}

/// Converts a boxed callback that could not be armed, so that it can be returned as its concrete type.
pub(crate) trait IntoAny {
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Any> IntoAny for T {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A callback that may arm itself again.
pub(crate) struct Again<F>(pub(crate) F);

impl<F: FnMut(&Context<'_>) + Send + 'static> Callback for Again<F> {
    fn call(&mut self, context: &Context<'_>) {
        (self.0)(context);
    }
}
