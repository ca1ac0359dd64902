//! Callbacks that lie in a box: those that may run again, and those that wait for the wall clock.

use std::any::Any;
use std::sync::Arc;

use super::TimerShard;
use super::context::Context;
use super::leases::State;
use super::wall::Plan;

/// A callback in a box.
pub(crate) trait Callback: IntoAny + Send {
    /// Runs. It is armed again if the context was [told so](Context::again) and it does not panic.
    fn call(&mut self, context: &Context<'_>);
    /// Whether it can be armed again.
    fn can_repeat(&self) -> bool {
        true
    }
    /// It will not run any more; the state says why. No lock is held.
    fn will_not_run(&mut self, _state: State, _shard: &TimerShard) {}
    /// When it runs by the wall clock, if it waits for that.
    fn plan(&self) -> Option<&Arc<Plan>> {
        None
    }
}

/// What is given back as what it was, if it is not armed.
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
