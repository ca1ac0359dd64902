//! One that waits, and the protocol that ends it exactly once.
//!
//! Whoever tries the condition *holds* the operation: has taken it out of its node. Nobody waits for a holder: who
//! comes meanwhile leaves a wish, and the holder grants it after the condition has returned. So a condition is never
//! tried by two threads at once, and no event is lost: an event that comes during a trial has it tried once more.
//!
//! | state | what comes | and then |
//! |---|---|---|
//! | resting | a check | trying, by that thread |
//! | | the timeout | trying for the last time, by that thread |
//! | | a cancel, a stop, a withdrawal | over: it is theirs |
//! | trying, with a wish | a check | the wish is *again*, if it was *nothing* |
//! | | the timeout | the wish is *expire*, unless it is *back* |
//! | | a cancel, a stop, a withdrawal | the wish is *back*, unless it is already |
//! | | condition met | over: completed, whatever the wish |
//! | | not met, *back* | over: it is theirs who wished |
//! | | not met, for the last time | over: expired |
//! | | not met, *expire* | trying for the last time |
//! | | not met, *again* | trying |
//! | | not met, *nothing* | resting |
//! | over | anything | nothing |
//!
//! Who adds an operation holds it from its birth until it is watched under all its keys and its timer is armed, and
//! tries it after that. So it is ended only when all its places are known: whoever ends it takes it out of every key
//! and of the wheel before its action runs.
//!
//! All of it under the lock of the node, which is held for a few moves. Lock order: a node, then a basket.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::Core;
use super::basket::{Basket, Ticket};
use super::error::{WaitError, WatchError};
use super::few::Few;
use super::operation::Outcome;
use super::shelf::Place;
use super::turn::{act, attempt, catch_up, is_trying};
use super::work::Work;
use crate::key::Key;
use crate::sync::{Mutex, lock};
use crate::timer::Alarm;

pub(super) struct Node<K, O, W> {
    /// A byte that can be read without the lock.
    byte: u8,
    core: Arc<Core<K, O>>,
    inside: Mutex<Inside<O, W>>,
}

struct Inside<O, W> {
    state: State<O, W>,
    /// Where to find it as long as it is not over.
    traces: Traces,
}

enum State<O, W> {
    Resting(W),
    Trying(Wish<O>),
    Over,
}

/// The places where it is watched, and the key of its timer.
struct Traces {
    places: Few<Place>,
    timer: Option<Key>,
}

/// What a holder is to do when the condition was not met.
enum Wish<O> {
    Nothing,
    Again,
    Expire,
    Back(Why, Option<Ticket<O>>),
}

/// Why one ends that is neither completed nor expired.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Cancelled,
    Stopped,
    /// Nobody waits for it any more.
    Withdrawn,
}

/// One that waits, whatever it is.
pub(super) trait Entry<O>: Send + Sync {
    /// Tries it after an event. Whether it was completed here.
    fn check(&self) -> bool;
    /// Ends it for a cancel or a stop: the operation, if it can be had at once. If another thread tries it, that one
    /// puts it into the basket; without a basket a cancel lets it be, and after a stop it is dropped.
    fn take(&self, why: Why, basket: Option<&Arc<Basket<O>>>) -> Option<O>;
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
        keys: Few<(u64, K)>,
        timeout: Duration,
    ) -> Result<(Arc<Self>, Outcome), WatchError<W>> {
        let traces = Traces { places: Few::new(), timer: None };
        let inside = Mutex::new(Inside { state: State::Trying(Wish::Nothing), traces });
        let node = Arc::new(Node { byte: 0, core: core.clone(), inside });
        // The timer first: if it refuses, nobody has seen the node.
        let timer = match core.timer.arm_alarm(timeout, node.clone()) {
            Ok(timer) => timer,
            Err(refused) => return Err(WatchError::from_schedule(refused, work)),
        };
        let mut traces = Traces { places: Few::new(), timer: Some(timer) };
        // A comparison of keys may panic: the operation is held here, and would be held for ever.
        let watched = catch_unwind(AssertUnwindSafe(|| node.watch_under(keys, &mut traces.places)));
        lock(&node.inside).traces = traces;
        if let Ok(true) = watched {
            let completed = node.hold(work, false);
            return Ok((node, if completed { Outcome::Completed } else { Outcome::Watched }));
        }
        let traces = lock(&node.inside).end();
        node.leave(traces);
        match watched {
            Ok(_) => Err(WatchError::Stopped(work)),
            Err(panic) => {
                core.timer.contain(|| drop(work));
                resume_unwind(panic)
            }
        }
    }

    /// `false` if the purgatory was stopped.
    fn watch_under(self: &Arc<Self>, keys: Few<(u64, K)>, places: &mut Few<Place>) -> bool {
        let (mut first, mut open) = (true, true);
        keys.for_each(|(hash, key)| {
            if !open {
                return self.drop_key(Some(key));
            }
            let shelf = self.core.shelf(hash);
            let (place, unused) = shelf.watch(hash, key, first, self.clone());
            self.drop_key(unused);
            match place {
                Some(place) => places.push(place),
                None => open = false,
            }
            first = false;
        });
        open
    }

    /// Tries it, and grants wishes, until it rests or is over. Whether it was completed.
    fn hold(&self, work: W, last: bool) -> bool {
        let completed = self.hold_on(work, last);
        catch_up();
        completed
    }

    fn hold_on(&self, mut work: W, mut last: bool) -> bool {
        loop {
            let met = attempt(&self.core.timer, self.id(), || work.attempt());
            let mut inside = lock(&self.inside);
            let State::Trying(wish) = &mut inside.state else { unreachable!("the holder ends it") };
            let wish = std::mem::replace(wish, Wish::Nothing);
            match wish {
                Wish::Nothing if !met && !last => {
                    inside.state = State::Resting(work);
                    return false;
                }
                Wish::Again if !met && !last => continue,
                Wish::Expire if !met && !last => {
                    last = true;
                    continue;
                }
                _ => {}
            }
            let traces = inside.end();
            drop(inside);
            self.leave(traces);
            match wish {
                _ if met => {
                    // Who waits for it need not wait for the action.
                    drop(wish);
                    act(&self.core.timer, move || work.complete());
                }
                Wish::Back(why, ticket) => self.hand_over(work, why, ticket),
                _ => act(&self.core.timer, move || work.expire()),
            }
            return met;
        }
    }

    /// It is over: it leaves all its keys, and the wheel.
    fn leave(&self, traces: Traces) {
        let mut first = true;
        traces.places.for_each(|place| {
            let key = self.core.shelf(place.hash).unwatch(place, std::mem::take(&mut first));
            self.drop_key(key);
        });
        if let Some(timer) = traces.timer {
            self.core.timer.cancel(timer);
        }
    }

    /// Foreign code: no lock is held.
    #[inline]
    fn drop_key(&self, key: Option<K>) {
        if let Some(key) = key {
            self.core.timer.contain(|| drop(key));
        }
    }

    fn hand_over(&self, work: W, why: Why, ticket: Option<Ticket<O>>) {
        match (self.give_back(work, why), ticket) {
            (Some(operation), Some(ticket)) => ticket.put(operation),
            (operation, _) => drop(self.core.timer.contain(|| drop(operation))),
        }
    }

    /// The operation, if there is one; otherwise whoever waits is told.
    fn give_back(&self, work: W, why: Why) -> Option<O> {
        let why = match why {
            Why::Cancelled => WaitError::Cancelled,
            Why::Stopped => WaitError::Stopped,
            Why::Withdrawn => {
                self.core.timer.contain(|| drop(work));
                return None;
            }
        };
        work.back(why, &self.core.timer)
    }

    /// Ends one that rests. If it is being tried, `wish` may say what to do then.
    fn end(&self, wish: impl FnOnce() -> Option<Wish<O>>) -> Option<W> {
        let mut inside = lock(&self.inside);
        let work = inside.take_hold(|now| {
            if !matches!(now, Wish::Back(..)) {
                *now = wish().unwrap_or_else(|| std::mem::replace(now, Wish::Nothing));
            }
        })?;
        let traces = inside.end();
        drop(inside);
        self.leave(traces);
        Some(work)
    }

    /// What tells it from others while it is there.
    fn id(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }
}

impl<O, W> Inside<O, W> {
    /// Takes hold of one that rests. One that is being tried is told the wish.
    #[inline]
    fn take_hold(&mut self, wish: impl FnOnce(&mut Wish<O>)) -> Option<W> {
        match &mut self.state {
            State::Resting(_) => {}
            State::Trying(now) => {
                wish(now);
                return None;
            }
            State::Over => return None,
        }
        match std::mem::replace(&mut self.state, State::Trying(Wish::Nothing)) {
            State::Resting(work) => Some(work),
            State::Trying(_) | State::Over => unreachable!("it was looked at"),
        }
    }

    /// It is over, and these are its traces.
    fn end(&mut self) -> Traces {
        self.state = State::Over;
        std::mem::replace(&mut self.traces, Traces { places: Few::new(), timer: None })
    }
}

impl<K, O, W> Alarm for Node<K, O, W>
where
    K: Eq + Send + 'static,
    O: Send + 'static,
    W: Work<O>,
{
    fn ring(&self) {
        let mut inside = lock(&self.inside);
        let work = inside.take_hold(|wish| {
            if !matches!(wish, Wish::Back(..)) {
                *wish = Wish::Expire;
            }
        });
        if let Some(work) = work {
            inside.traces.timer = None;
            drop(inside);
            self.hold(work, true);
        }
    }

    fn forget(&self) {
        // An operation goes on waiting for its condition, or for the stop of the purgatory. Who cannot be handed back
        // would wait for ever.
        if W::RETURNS {
            return;
        }
        if let Some(work) = self.end(|| Some(Wish::Back(Why::Stopped, None))) {
            self.give_back(work, Why::Stopped);
        }
    }

    #[inline]
    fn touch(&self) -> u8 {
        self.byte
    }
}

impl<K, O, W> Entry<O> for Node<K, O, W>
where
    K: Eq + Send + 'static,
    O: Send + 'static,
    W: Work<O>,
{
    fn check(&self) -> bool {
        let work = lock(&self.inside).take_hold(|wish| {
            // A condition that checks its own key would have itself tried for ever.
            if matches!(wish, Wish::Nothing) && !is_trying(self.id()) {
                *wish = Wish::Again;
            }
        });
        work.is_some_and(|work| self.hold(work, false))
    }

    fn take(&self, why: Why, basket: Option<&Arc<Basket<O>>>) -> Option<O> {
        let work = self.end(|| match basket {
            Some(basket) if W::RETURNS => Some(Wish::Back(why, Some(basket.ticket()))),
            None if W::RETURNS && why == Why::Cancelled => None,
            _ => Some(Wish::Back(why, None)),
        })?;
        self.give_back(work, why)
    }
}

impl<K, O, W> Withdraw for Node<K, O, W>
where
    K: Eq + Send + 'static,
    O: Send + 'static,
    W: Work<O>,
{
    fn withdraw(&self) {
        if let Some(work) = self.end(|| Some(Wish::Back(Why::Withdrawn, None))) {
            self.give_back(work, Why::Withdrawn);
        }
    }
}
