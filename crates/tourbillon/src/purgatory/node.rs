//! One that waits, and the protocol that ends it exactly once.
//!
//! Whoever tries the condition *holds* the operation: has taken it out of its node. Nobody waits for a holder: who
//! comes meanwhile leaves a request, and the holder grants it after the condition has returned. So a condition is never
//! tried by two threads at once, and no event is lost: an event that comes during a trial has it tried once more. There
//! are two requests, for another trial and for an end. The trial comes first, so an event that precedes a cancel is
//! seen.
//!
//! | state | what comes | and then |
//! |---|---|---|
//! | resting | a check | trying, by that thread |
//! | | the timeout | trying for the last time, by that thread |
//! | | a cancel, a stop, a withdrawal | over: it is theirs |
//! | trying | a check | requests *again*, unless *back* was requested |
//! | | the timeout | requests *expire*, unless *back* was requested |
//! | | a cancel, a stop | requests *back*, unless that was requested |
//! | | forced by its handle | requests *complete*, unless *back* was requested: as if the condition were met |
//! | | a withdrawal | the same, and *again* is forgotten |
//! | | condition met | over: completed, whatever the requests |
//! | | not met, *expire* | trying for the last time |
//! | | not met, *again* | trying, for the last time if it was |
//! | | not met, *back* | over: it is theirs who requested |
//! | | not met, for the last time | over: expired |
//! | | not met, no request | resting |
//! | over | anything | nothing |
//!
//! Conditions that check each other's keys, or their own, would have each other tried for ever. So *again* that was
//! requested inside a condition is granted once: not after a trial that was itself made for such a request.
//!
//! Who adds an operation holds it from its birth until it is watched under all its keys and its timer is armed, and
//! tries it after that. So it is ended only when all its places are known: whoever ends it takes it out of every key
//! and of the wheel before its action runs.
//!
//! All of it under the lock of the node, which is held for a few moves. Lock order: a node, then `Returned`.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Core;
use super::error::{WaitError, WatchError};
use super::inline_vec::InlineVec;
use super::operation::Outcome;
use super::request::{Again, End, Request, Why};
use super::returned::{Returned, Ticket};
use super::trampoline::{attempt, catch_up, is_trying};
use super::watchers::WatchPlace;
use super::work::Work;
use crate::key::Key;
use crate::sync::{Mutex, lock};
use crate::timer::Alarm;

pub(super) struct Node<K, O, W> {
    /// A byte that can be read without the lock.
    byte: u8,
    core: Arc<Core<K, O>>,
    inside: Mutex<InCallback<O, W>>,
}

struct InCallback<O, W> {
    state: NodeState<O, W>,
    /// Where to find it as long as it is not over.
    traces: Traces,
    /// Whether it is over because it was completed.
    completed: bool,
}

enum NodeState<O, W> {
    Resting(W),
    Trying(Request<O>),
    Over,
}

/// The places where it is watched, and the key of its timer.
struct Traces {
    places: InlineVec<WatchPlace>,
    timer: Option<Key>,
}

/// One that waits, whatever it is.
pub(super) trait Waiter<O>: Send + Sync {
    /// Tries it after an event. Whether it was completed here.
    fn check(&self) -> bool;
    /// Ends it for a cancel or a stop: the operation, if it can be had at once. If another thread tries it, that one
    /// puts it into `Returned`; without one a cancel lets it be, and after a stop it is dropped.
    fn take(&self, why: Why, returned: Option<&Arc<Returned<O>>>) -> Option<O>;
}

/// One that has a handle.
pub(super) trait Control<O>: Waiter<O> {
    /// Whether it was completed, if it is over.
    fn ended(&self) -> Option<bool>;
    /// Completes it, whatever its condition says. `false` if it is over, or its end is decided.
    fn force(&self) -> bool;
}

/// One that can be given up.
pub(super) trait Withdraw: Send + Sync {
    fn withdraw(&self);
}

impl<K, O, W> Node<K, O, W>
where
    K: Eq + Send + 'static,
    O: Send + 'static,
    W: Work<O>,
{
    /// Watches one whose condition was not met, and tries it again.
    pub(super) fn watch(
        core: &Arc<Core<K, O>>,
        work: W,
        keys: InlineVec<(u64, K)>,
        timeout: Duration,
    ) -> Result<(Arc<Self>, Outcome), WatchError<W>> {
        let traces = Traces { places: InlineVec::new(), timer: None };
        let state = NodeState::Trying(Request::NONE);
        let inside = Mutex::new(InCallback { state, traces, completed: false });
        let node = Arc::new(Node { byte: 0, core: core.clone(), inside });
        // The timer first: if it refuses, nobody has seen the node.
        let timer = match core.timer.arm_alarm(timeout, node.clone()) {
            Ok(timer) => timer,
            Err(refused) => {
                keys.for_each(|(_, key)| core.drop_key(key));
                return Err(WatchError::from_schedule(refused, work));
            }
        };
        let mut traces = Traces { places: InlineVec::new(), timer: Some(timer) };
        let mut spare = InlineVec::new();
        let watched = node.watch_under(keys, &mut traces.places, &mut spare);
        if let Ok(true) = watched {
            let completed = planted!(
                "purgatory.not-tried-once-it-is-watched",
                {
                    let state = NodeState::Resting(work);
                    *lock(&node.inside) = InCallback { state, traces, completed: false };
                    false
                },
                node.hold(work, false, Some(traces))
            );
            spare.for_each(|key| core.drop_key(key));
            let completed =
                planted!("more.completed-while-it-is-added-says-watched", false, completed);
            return Ok((node, if completed { Outcome::Completed } else { Outcome::Watched }));
        }
        lock(&node.inside).state = NodeState::Over;
        planted!("purgatory.half-watched-stays", drop(traces), node.leave(traces));
        spare.for_each(|key| core.drop_key(key));
        match watched {
            Ok(_) => Err(WatchError::Stopped(work)),
            Err(panic) => {
                core.timer.contain(|| drop(work));
                catch_up();
                resume_unwind(panic)
            }
        }
    }

    /// `false` if the purgatory was stopped, or the panic of a comparison of keys: the operation is held here, and
    /// would be held for ever. Keys that are not needed become spare: to drop one is foreign code, which may wait for
    /// the holder.
    fn watch_under(
        self: &Arc<Self>,
        keys: InlineVec<(u64, K)>,
        places: &mut InlineVec<WatchPlace>,
        spare: &mut InlineVec<K>,
    ) -> thread::Result<bool> {
        let (mut first, mut watched) = (true, Ok(true));
        keys.for_each(|(hash, key)| {
            let mut key = Some(key);
            if let Ok(true) = watched {
                let (watchers, entry) = (self.core.watchers(hash), self.clone());
                let watch = || watchers.watch(hash, &mut key, mem::take(&mut first), entry);
                match catch_unwind(AssertUnwindSafe(watch)) {
                    Ok(Some(place)) => places.push(place),
                    Ok(None) => watched = Ok(false),
                    Err(panic) => watched = Err(panic),
                }
            }
            if let Some(key) = key.filter(|_| mem::needs_drop::<K>()) {
                spare.push(key);
            }
        });
        watched
    }

    /// Tries it, and grants requests, until it rests or is over. Whether it was completed. Who has just added it brings
    /// its traces.
    fn hold(&self, work: W, last: bool, traces: Option<Traces>) -> bool {
        let completed = self.hold_on(work, last, traces);
        planted!("third.actions-of-a-trial-that-failed-wait-on", (), catch_up());
        completed
    }

    fn hold_on(&self, mut work: W, mut last: bool, mut traces: Option<Traces>) -> bool {
        let timer = &self.core.timer;
        // Whether this trial is made for a check that was made inside a condition.
        let mut echo = false;
        loop {
            let mut met = attempt(timer, || work.attempt());
            let mut inside = lock(&self.inside);
            if let Some(traces) = traces.take() {
                inside.traces = traces;
            }
            let NodeState::Trying(request) = &mut inside.state else {
                unreachable!("the holder ends it")
            };
            let again = mem::take(&mut request.again);
            met |= matches!(request.end, End::Complete);
            if !met {
                if let End::Expire = request.end {
                    request.end = End::No;
                    (last, echo) =
                        (planted!("purgatory.timeout-in-a-trial-forgotten", last, true), false);
                    continue;
                }
                let granted = planted!("purgatory.echo-granted-for-ever", false, echo);
                let by_event = again == Again::Yes;
                let by_event =
                    planted!("purgatory.request-for-a-trial-ignored", by_event && last, by_event);
                if by_event || (again == Again::Echo && !granted) {
                    echo = again == Again::Echo;
                    last = planted!("more.check-in-the-last-trial-puts-off-the-end", false, last);
                    continue;
                }
                let back =
                    planted!("purgatory.request-for-it-back-ignored", false, request.is_back());
                if !back && !last {
                    inside.state = NodeState::Resting(work);
                    return false;
                }
            }
            let end = mem::replace(&mut request.end, End::No);
            inside.completed = met;
            let traces = inside.end();
            drop(inside);
            self.leave(traces);
            match end {
                _ if planted!(
                    "purgatory.back-though-completed",
                    met && !matches!(end, End::Back(..)),
                    met
                ) =>
                {
                    // Who waits for it need not wait for the action.
                    planted!("purgatory.cancel-waits-for-the-action", (), drop(end));
                    work.complete(timer);
                }
                End::Back(why, ticket) => self.hand_over(work, why, ticket),
                _ => work.expire(timer),
            }
            return met;
        }
    }

    /// It is over: it leaves all its keys, and the wheel.
    fn leave(&self, traces: Traces) {
        let mut first = true;
        traces.places.for_each(|place| {
            let (watchers, first) = (self.core.watchers(place.hash), mem::take(&mut first));
            let key = planted!(
                "purgatory.stays-under-its-other-keys",
                if first { watchers.unwatch(place, first) } else { None },
                watchers.unwatch(place, first)
            );
            if let Some(key) = key {
                self.core.drop_key(key);
            }
        });
        if let Some(timer) = traces.timer {
            planted!("purgatory.timeout-not-cancelled", (), {
                self.core.timer.cancel(timer);
            });
        }
    }

    fn hand_over(&self, work: W, why: Why, ticket: Option<Ticket<O>>) {
        match (self.give_back(work, why), ticket) {
            (Some(operation), Some(ticket)) => ticket.put(operation),
            (operation, _) => planted!("later.operation-given-up-panics-out", drop(operation), {
                self.core.timer.contain(|| drop(operation));
            }),
        }
    }

    /// The operation, if there is one; otherwise whoever waits is told.
    fn give_back(&self, work: W, why: Why) -> Option<O> {
        let why = match why {
            Why::Cancelled => {
                planted!(
                    "purgatory.cancelled-told-as-stopped",
                    WaitError::Stopped,
                    WaitError::Cancelled
                )
            }
            Why::Stopped => WaitError::Stopped,
            Why::Withdrawn => {
                planted!("purgatory.drop-of-a-withdrawn-panics-out", drop(work), {
                    self.core.timer.contain(|| drop(work));
                });
                return None;
            }
        };
        work.back(why, &self.core.timer)
    }

    /// Ends one that rests. If it is being tried, `request` may say what to do then.
    fn end(&self, request: impl FnOnce(&mut Request<O>)) -> Option<W> {
        let mut inside = lock(&self.inside);
        let work = inside.take_hold(request)?;
        let traces = inside.end();
        drop(inside);
        self.leave(traces);
        Some(work)
    }
}

impl<O, W> InCallback<O, W> {
    /// Takes hold of one that rests. One that is being tried is told the request.
    #[inline]
    fn take_hold(&mut self, request: impl FnOnce(&mut Request<O>)) -> Option<W> {
        match &mut self.state {
            NodeState::Resting(_) => {}
            NodeState::Trying(now) => {
                request(now);
                return None;
            }
            NodeState::Over => return None,
        }
        match mem::replace(&mut self.state, NodeState::Trying(Request::NONE)) {
            NodeState::Resting(work) => Some(work),
            NodeState::Trying(_) | NodeState::Over => unreachable!("it was looked at"),
        }
    }

    /// It is over, and these are its traces.
    fn end(&mut self) -> Traces {
        self.state = NodeState::Over;
        mem::replace(&mut self.traces, Traces { places: InlineVec::new(), timer: None })
    }
}

impl<K, O, W> Alarm for Node<K, O, W>
where
    K: Eq + Send + 'static,
    O: Send + 'static,
    W: Work<O>,
{
    fn notify(&self) {
        let mut inside = lock(&self.inside);
        let work = inside.take_hold(|request| {
            if !request.is_back() {
                request.end = End::Expire;
            }
        });
        if let Some(work) = work {
            inside.traces.timer = None;
            planted!(
                "more.not-tried-at-the-timeout",
                {
                    let traces = inside.end();
                    drop(inside);
                    self.leave(traces);
                    work.expire(&self.core.timer);
                    catch_up();
                },
                {
                    drop(inside);
                    self.hold(work, true, None);
                }
            );
        }
    }

    fn forget(&self) {
        // An operation goes on waiting for its condition, or for the stop of the purgatory. Who cannot be handed back
        // would wait for ever.
        if planted!("purgatory.wait-not-told-of-a-stopped-timer", true, W::RETURNS) {
            return;
        }
        let request = || Some(End::Back(Why::Stopped, None));
        if let Some(work) = self.end(|now| now.ask_back(request)) {
            self.give_back(work, Why::Stopped);
        }
    }

    #[inline]
    fn touch(&self) -> u8 {
        self.byte
    }
}

impl<K, O, W> Waiter<O> for Node<K, O, W>
where
    K: Eq + Send + 'static,
    O: Send + 'static,
    W: Work<O>,
{
    fn check(&self) -> bool {
        let work = lock(&self.inside).take_hold(|request| {
            if !request.is_back() {
                let again = if is_trying() { Again::Echo } else { Again::Yes };
                let again = planted!("purgatory.check-leaves-no-request", Again::No, again);
                request.again =
                    planted!("purgatory.echo-overwrites-an-event", again, request.again.max(again));
            }
        });
        work.is_some_and(|work| self.hold(work, false, None))
    }

    fn take(&self, why: Why, returned: Option<&Arc<Returned<O>>>) -> Option<O> {
        let request = || match returned {
            Some(returned) if W::RETURNS => Some(End::Back(why, Some(returned.ticket()))),
            None if W::RETURNS
                && planted!(
                    "purgatory.cancel-in-a-condition-drops",
                    false,
                    why == Why::Cancelled
                ) =>
            {
                None
            }
            _ => Some(End::Back(why, None)),
        };
        let work = self.end(|now| now.ask_back(request))?;
        self.give_back(work, why)
    }
}

impl<K, O, W> Control<O> for Node<K, O, W>
where
    K: Eq + Send + 'static,
    O: Send + 'static,
    W: Work<O>,
{
    fn ended(&self) -> Option<bool> {
        let inside = lock(&self.inside);
        matches!(inside.state, NodeState::Over).then_some(inside.completed)
    }

    fn force(&self) -> bool {
        let mut inside = lock(&self.inside);
        let mut requested = false;
        let work = inside.take_hold(|request| {
            if !request.is_back() {
                request.end =
                    planted!("purgatory.forced-in-a-trial-forgotten", End::No, End::Complete);
                requested = true;
            }
        });
        let Some(work) = work else { return requested };
        inside.completed = true;
        let traces = inside.end();
        drop(inside);
        self.leave(traces);
        work.complete(&self.core.timer);
        catch_up();
        true
    }
}

impl<K, O, W> Withdraw for Node<K, O, W>
where
    K: Eq + Send + 'static,
    O: Send + 'static,
    W: Work<O>,
{
    fn withdraw(&self) {
        let request = || Some(End::Back(Why::Withdrawn, None));
        let request = || planted!("purgatory.dropped-wait-in-a-trial-forgotten", None, request());
        let work = self.end(|now| {
            now.ask_back(request);
            // Also if it was asked for before: nobody would get what another trial takes.
            now.again = planted!("purgatory.withdrawn-tried-again", now.again, Again::No);
        });
        if let Some(work) = work {
            self.give_back(work, Why::Withdrawn);
        }
    }
}
