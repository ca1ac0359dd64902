//! A waiting operation, and the protocol that ends it exactly once.
//!
//! A *trial* is one call of the condition. The thread that makes it *holds* the operation, which it has taken out of
//! the node. No thread waits for the holder: other threads leave a request, which the holder serves after the condition
//! has returned. So two threads never try a condition at once, and no event is lost: an event during a trial causes
//! another trial. A request is either for another trial or for an end. The other trial is served first, so an event
//! that precedes a cancel is seen.
//!
//! | state | event | result |
//! |---|---|---|
//! | resting | a check | trying, by that thread |
//! | | the timeout | trying for the last time, by that thread |
//! | | a cancel, a stop, a withdrawal | over: that thread gets the operation |
//! | trying | a check | requests *again*, unless *back* is requested |
//! | | the timeout | requests *expire*, unless *back* is requested |
//! | | a cancel, a stop | requests *back*, unless it is requested already |
//! | | a force by its handle | requests *complete*, unless *back* is requested: as if the condition held |
//! | | a withdrawal | requests *back* in the same way, and clears *again* |
//! | | condition met | over: completed, whatever the requests |
//! | | not met, *expire* | trying for the last time |
//! | | not met, *again* | trying, for the last time if it was |
//! | | not met, *back* | over: the requester gets the operation |
//! | | not met, last time | over: expired |
//! | | not met, no request | resting |
//! | over | any | none |
//!
//! Conditions that check each other's keys, or their own, could cause trials without end. So an *again* that was
//! requested inside a condition is not served after a trial that was itself made for such a request.
//!
//! The thread that adds an operation holds it until it is watched under all its keys and its timer is armed, and then
//! tries it. So when an operation ends, all its places are known, and it is removed from every key and from the wheel
//! before its action runs.
//!
//! All transitions happen under the node's lock, which is held for a few instructions. Lock order: a node, then
//! `Returned`.

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
    /// Read by `touch` without the lock, to prefetch the node.
    byte: u8,
    core: Arc<Core<K, O>>,
    inside: Mutex<NodeInner<O, W>>,
}

struct NodeInner<O, W> {
    state: NodeState<O, W>,
    /// Where the node is registered, until it is over.
    traces: Traces,
    /// Whether it is over because it was completed.
    completed: bool,
}

enum NodeState<O, W> {
    Resting(W),
    Trying(Request<O>),
    Over,
}

/// The places where the node is watched, and the key of its timer.
struct Traces {
    places: InlineVec<WatchPlace>,
    timer: Option<Key>,
}

/// An entry under a key, of any kind.
pub(super) trait Waiter<O>: Send + Sync {
    /// Tries it after an event; returns whether that completed it here.
    fn check(&self) -> bool;
    /// Ends it for a cancel or a stop; returns the operation if it is available at once. If another thread is trying
    /// it, that thread puts it into `returned`. Without `returned`, a cancel skips it, and a stop makes that thread
    /// drop it.
    fn take(&self, why: Why, returned: Option<&Arc<Returned<O>>>) -> Option<O>;
}

/// An operation that has a handle.
pub(super) trait Control<O>: Waiter<O> {
    /// Whether it was completed; `None` while it is not over.
    fn ended(&self) -> Option<bool>;
    /// Completes it, whatever its condition returns. `false` if it is over or its end is already decided.
    fn force(&self) -> bool;
}

/// An entry that can be withdrawn.
pub(super) trait Withdraw: Send + Sync {
    fn withdraw(&self);
}

impl<K, O, W> Node<K, O, W>
where
    K: Eq + Send + 'static,
    O: Send + 'static,
    W: Work<O>,
{
    /// Watches an operation whose condition was not met, and tries it again.
    pub(super) fn watch(
        core: &Arc<Core<K, O>>,
        work: W,
        keys: InlineVec<(u64, K)>,
        timeout: Duration,
    ) -> Result<(Arc<Self>, Outcome), WatchError<W>> {
        let traces = Traces { places: InlineVec::new(), timer: None };
        let state = NodeState::Trying(Request::NONE);
        let inside = Mutex::new(NodeInner { state, traces, completed: false });
        let node = Arc::new(Node { byte: 0, core: core.clone(), inside });
        // The timer is armed first: if it refuses, no other thread has seen the node.
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
                    *lock(&node.inside) = NodeInner { state, traces, completed: false };
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

    /// Watches the node under its keys: `Ok(false)` if the purgatory was stopped, `Err` if comparing keys panicked. The
    /// panic is caught because the caller holds the operation, which would otherwise stay held forever. Keys that are
    /// not needed go to `spare`: dropping them here would be user code, which might wait for the holder.
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

    /// Tries the operation and serves requests until it rests or is over. Returns whether it was completed. The thread
    /// that has just added the operation passes its traces.
    fn hold(&self, work: W, last: bool, traces: Option<Traces>) -> bool {
        let completed = self.hold_on(work, last, traces);
        planted!("third.actions-of-a-trial-that-failed-wait-on", (), catch_up());
        completed
    }

    fn hold_on(&self, mut work: W, mut last: bool, mut traces: Option<Traces>) -> bool {
        let timer = &self.core.timer;
        // Whether this trial serves a check that was made inside a condition.
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
                    // Release a thread that waits for the operation before the action runs.
                    planted!("purgatory.cancel-waits-for-the-action", (), drop(end));
                    work.complete(timer);
                }
                End::Back(why, ticket) => self.hand_over(work, why, ticket),
                _ => work.expire(timer),
            }
            return met;
        }
    }

    /// Removes the node from all its keys and from the wheel.
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

    /// Returns the operation; for a closure or a future, notifies the listener instead.
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

    /// Ends the node and returns its work if it rests. If it is being tried, calls `request` on the holder's requests.
    fn end(&self, request: impl FnOnce(&mut Request<O>)) -> Option<W> {
        let mut inside = lock(&self.inside);
        let work = inside.take_hold(request)?;
        let traces = inside.end();
        drop(inside);
        self.leave(traces);
        Some(work)
    }
}

impl<O, W> NodeInner<O, W> {
    /// Takes the operation of a node that rests. If it is being tried, calls `request` on the holder's requests.
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

    /// Marks the node as over; returns its traces.
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
            if planted!("blind.timeout-overrules-a-cancel", true, !request.is_back()) {
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
        // An operation stays, and waits for its condition or for the stop of the purgatory. A closure or a future,
        // which cannot be handed back, would wait forever, so it ends here.
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
            if planted!("fourth.tried-again-after-it-was-given-up", true, !request.is_back()) {
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
                requested = planted!("sixth.completed-by-hand-in-a-trial-says-no", false, true);
            }
        });
        let Some(work) = work else { return requested };
        inside.completed = planted!("fifth.completed-by-hand-is-not-completed", false, true);
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
            // Clears even an earlier request: what another trial takes would reach nobody.
            now.again = planted!("purgatory.withdrawn-tried-again", now.again, Again::No);
        });
        if let Some(work) = work {
            self.give_back(work, Why::Withdrawn);
        }
    }
}
