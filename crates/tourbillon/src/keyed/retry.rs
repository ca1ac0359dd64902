//! A retry under a key: the job asks before each try whether the key is still its own, and the outcome frees the key.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::alarm::Place;
use crate::sync::{Mutex, lock};
use crate::timer::{Attempt, Retried};

/// The closures of a retry. They lie here except while they run, so that they come back if it is refused.
pub(super) struct Trying<J, L> {
    job: Arc<Mutex<Option<J>>>,
    then: Arc<Mutex<Option<L>>>,
}

impl<J, L> Trying<J, L> {
    pub(super) fn new(job: J, then: L) -> Self {
        Trying { job: Arc::new(Mutex::new(Some(job))), then: Arc::new(Mutex::new(Some(then))) }
    }

    /// The job, for the timer. A try that is not made, because the key is another's by now, fails with no error and
    /// gives up.
    pub(super) fn job<K, T, E>(
        &self,
        place: Arc<Place<K>>,
    ) -> impl FnMut(&Attempt) -> Result<T, Option<E>> + Send + use<K, T, E, J, L>
    where
        K: Eq + Send + 'static,
        J: FnMut(&Attempt) -> Result<T, E> + Send,
    {
        let job = self.job.clone();
        move |attempt| {
            if !place.holds() {
                attempt.give_up();
                return Err(None);
            }
            run(&job, attempt).map_err(Some)
        }
    }

    /// The listener, for the timer. The key is free when it hears of the outcome.
    pub(super) fn then<K, T, E>(
        &self,
        place: Arc<Place<K>>,
    ) -> impl FnOnce(Retried<T, Option<E>>) + Send + use<K, T, E, J, L>
    where
        K: Eq + Send + 'static,
        L: FnOnce(Retried<T, E>) + Send,
    {
        let then = self.then.clone();
        move |outcome| {
            place.take();
            let then = lock(&then).take().expect("there is one outcome");
            then(without_option(outcome));
        }
    }

    /// The closures, if neither has run.
    pub(super) fn into_inner(self) -> (J, L) {
        let (job, then) = (lock(&self.job).take(), lock(&self.then).take());
        job.zip(then).expect("neither has run")
    }
}

/// One try, with no lock held.
fn run<J, T, E>(place: &Mutex<Option<J>>, attempt: &Attempt) -> Result<T, E>
where
    J: FnMut(&Attempt) -> Result<T, E>,
{
    let mut job = lock(place).take().expect("one try at a time");
    // What it captured is dropped after a panic and not during it: a second one would abort.
    let tried = catch_unwind(AssertUnwindSafe(|| job(attempt)));
    *lock(place) = Some(job);
    tried.unwrap_or_else(|payload| resume_unwind(payload))
}

fn without_option<T, E>(outcome: Retried<T, Option<E>>) -> Retried<T, E> {
    match outcome {
        Retried::Success(value) => Retried::Success(value),
        Retried::GaveUp { error: Some(error), tries } => Retried::GaveUp { error, tries },
        Retried::GaveUp { error: None, .. } | Retried::Cancelled => Retried::Cancelled,
        Retried::Stopped => Retried::Stopped,
        Retried::Panicked => Retried::Panicked,
    }
}
