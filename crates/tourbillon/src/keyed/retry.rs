//! A retry under a key. Before each attempt it checks that it still owns the key; the outcome frees the key.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};

use super::alarm::KeyRef;
use crate::retry::{Attempt, Retried};
use crate::sync::{Mutex, lock};

/// Weak references to the closures of a retry, to return the closures if scheduling is refused. The timer owns the
/// closures: when it releases them, they are dropped.
pub(super) struct Trying<J, L> {
    job: Weak<Mutex<Option<J>>>,
    then: Weak<Mutex<Option<L>>>,
}

/// The closures of a retry. The timer owns them, and they are stored here except while they run.
pub(super) struct Held<J, L> {
    job: Arc<Mutex<Option<J>>>,
    then: Arc<Mutex<Option<L>>>,
}

impl<J, L> Trying<J, L> {
    pub(super) fn new(job: J, then: L) -> (Self, Held<J, L>) {
        let (job, then) = (Arc::new(Mutex::new(Some(job))), Arc::new(Mutex::new(Some(then))));
        (Trying { job: Arc::downgrade(&job), then: Arc::downgrade(&then) }, Held { job, then })
    }

    /// Takes the closures back. Neither has run, and the timer has not dropped them.
    pub(super) fn into_inner(self) -> (J, L) {
        let (job, then) = (self.job.upgrade(), self.then.upgrade());
        let (job, then) = job.zip(then).expect("they are there still");
        let (job, then) = (lock(&job).take(), lock(&then).take());
        job.zip(then).expect("neither has run")
    }
}

impl<J, L> Held<J, L> {
    /// The job and the listener to pass to the timer. If the key was cancelled or replaced, the job is not called: the
    /// attempt gives up, with no error. The key is free when the listener is called.
    #[expect(clippy::type_complexity, reason = "two closures")]
    pub(super) fn closures<K, T, E>(
        self,
        place: Arc<KeyRef<K>>,
    ) -> (
        impl FnMut(&Attempt) -> Result<T, Option<E>> + Send + use<K, T, E, J, L>,
        impl FnOnce(Retried<T, Option<E>>) + Send + use<K, T, E, J, L>,
    )
    where
        K: Eq + Send + 'static,
        J: FnMut(&Attempt) -> Result<T, E> + Send,
        L: FnOnce(Retried<T, E>) + Send,
    {
        let Held { job, then } = self;
        let own = place.clone();
        let job = move |attempt: &Attempt| {
            if !own.holds() {
                attempt.give_up();
                return Err(None);
            }
            run(&job, attempt).map_err(Some)
        };
        let then = move |outcome| {
            let free = || drop(place.take());
            let tell = || {
                let then = lock(&then).take().expect("there is one outcome");
                then(without_option(outcome));
            };
            planted!(
                "keyed.key-is-taken-while-the-listener-runs",
                {
                    tell();
                    free();
                },
                {
                    free();
                    tell();
                }
            );
        };
        (job, then)
    }
}

/// Makes one attempt, with no lock held.
fn run<J, T, E>(place: &Mutex<Option<J>>, attempt: &Attempt) -> Result<T, E>
where
    J: FnMut(&Attempt) -> Result<T, E>,
{
    let mut job = lock(place).take().expect("one try at a time");
    // After a panic, the job is stored again, so that its captures are not dropped while unwinding: a second panic
    // would abort.
    let tried = planted!(
        "fourth.keyed-job-is-dropped-while-unwinding",
        Ok(job(attempt)),
        catch_unwind(AssertUnwindSafe(|| job(attempt)))
    );
    *lock(place) = Some(job);
    tried.unwrap_or_else(|payload| resume_unwind(payload))
}

fn without_option<T, E>(outcome: Retried<T, Option<E>>) -> Retried<T, E> {
    match outcome {
        Retried::Success(value) => Retried::Success(value),
        Retried::GaveUp { error: Some(error), tries } => Retried::GaveUp { error, tries },
        Retried::GaveUp { error: None, .. } | Retried::Cancelled => Retried::Cancelled,
        Retried::Stopped => {
            planted!("keyed.stopped-retry-says-cancelled", Retried::Cancelled, Retried::Stopped)
        }
        Retried::Panicked => Retried::Panicked,
    }
}
