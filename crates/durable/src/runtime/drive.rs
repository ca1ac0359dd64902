//! The runtime's thread: turns, commits, loads, answers, and recovery after a failure.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::clocks::{Alarms, Clocks};
use super::condition::{Condition, Notice};
use super::mailbox::{Letter, Mailbox, Taken};
use super::{Failure, Reply, quietly};
use crate::shard::{Answer, Effect, Input, Limits, Opened, Request, RequestId, Shard};
use crate::store::{Head, Image, Store, StoreError};
use crate::values::{Span, Steady};

/// Backoff between attempts to reopen the store: doubles from the first to the longest. After a turn with a commit the
/// next attempt is not delayed.
const FIRST_DELAY: Span = Span::from_millis(10);
const LONGEST_DELAY: Span = Span::from_millis(1000);

pub(super) struct Driver<S: Store> {
    store: S,
    epoch: u64,
    shard: Shard,
    limits: Limits,
    mailbox: Arc<Mailbox>,
    clocks: Clocks,
    alarms: Alarms,
    /// Requests that have no answer yet.
    waiting: BTreeMap<RequestId, Waiting>,
    /// How the next shard is opened.
    opened: Opened,
    /// How long to wait before the store is opened again.
    delay: Span,
    condition: Arc<Condition>,
}

/// A request that has no answer yet.
struct Waiting {
    reply: Reply,
    /// For a receive or a push: the request, and when its wait ends. Such a request survives a failure of the store.
    poll: Option<(Request, Steady)>,
    /// For a leave: the receive or push that it withdraws, which gets no answer.
    leaves: Option<RequestId>,
}

impl<S: Store> Driver<S> {
    pub(super) fn new(
        store: S,
        head: Head,
        limits: Limits,
        mailbox: Arc<Mailbox>,
        clocks: Clocks,
        condition: Arc<Condition>,
    ) -> Self {
        let epoch = head.epoch;
        let now = (clocks.wall(), clocks.steady());
        let shard = Shard::open(head, limits, Opened::Started, now);
        let alarms = Alarms::new(clocks.clone(), mailbox.clone());
        Driver {
            store,
            epoch,
            shard,
            limits,
            mailbox,
            clocks,
            alarms,
            waiting: BTreeMap::new(),
            opened: Opened::Started,
            delay: Span::ZERO,
            condition,
        }
    }

    /// Takes turns until the mailbox is closed and empty. Before it ends, deliveries whose takers have gone are
    /// returned.
    pub(super) fn run(mut self) {
        // A new shard needs a first turn, so the first take does not block.
        let (mut inputs, mut rest) = (Vec::new(), false);
        loop {
            let tidied = if rest { contained(|| self.store.tidy()) } else { Ok(false) };
            // The mailbox is bounded, what an opening shard holds is not. Such a shard always has a load to process, so
            // it does not wait for requests.
            let opens = planted!("runtime.opening-takes-requests", false, self.shard.is_opening());
            let taken = match opens {
                true => Taken::default(),
                false => self.mailbox.take(rest && matches!(tidied, Ok(false))),
            };
            inputs.extend(taken.letters.into_iter().map(|letter| self.enter(letter)));
            let last = taken.last && inputs.is_empty();
            match tidied.and_then(|_| self.turn(std::mem::take(&mut inputs))) {
                Ok((next, at_once)) => {
                    rest = next.is_empty() && !at_once;
                    inputs = next;
                    if last && rest && self.mailbox.end_if_idle() {
                        return;
                    }
                }
                Err(StoreError::Fenced) => return,
                Err(error) => {
                    let Some(polls) = self.open_anew(&error) else { return };
                    (inputs, rest) = (polls, false);
                }
            }
        }
    }

    /// Takes one turn and carries out its effects. Returns the inputs of the next turn, and whether the shard wants
    /// that turn at once.
    fn turn(&mut self, inputs: Vec<Input>) -> Result<(Vec<Input>, bool), StoreError> {
        let wall = self.clocks.wall();
        self.shard.listen(self.condition.events.is_heard());
        let turn = self.shard.turn(wall, self.clocks.steady(), inputs);
        // Before the answers, so that a caller whose answer is based on this clock reading finds the notice already
        // sent.
        if let Some(far_off) = turn.clock {
            self.condition.notices.tell(&Notice::Clock(far_off));
        }
        let (answers, work): (Vec<Effect>, Vec<Effect>) =
            turn.effects.into_iter().partition(|effect| matches!(effect, Effect::Answer(..)));
        // Answers first: the reported outcome is already durable and need not wait for the next commit.
        for effect in answers {
            let Effect::Answer(id, answer) = effect else { continue };
            if answer.tells_agents() {
                self.opened = Opened::Recovered;
            }
            self.answer(
                id,
                match answer {
                    Answer::Damaged(what) => Err(Failure::Damaged(what)),
                    answer => Ok(answer),
                },
            );
        }
        let commits = work.iter().any(|effect| matches!(effect, Effect::Commit(..)));
        let mut next = Vec::new();
        for effect in work {
            match effect {
                Effect::Commit(id, ops) => {
                    contained(|| self.store.commit(self.epoch, &ops))?;
                    next.push(Input::Committed(id));
                }
                Effect::Load(id, query) => {
                    next.push(match contained(|| self.store.load(&query)) {
                        Ok(loaded) => Input::Loaded(id, loaded),
                        // One row cannot be read: the store keeps running.
                        Err(StoreError::Damaged(what)) => {
                            Input::Damaged(id, what.to_string().into())
                        }
                        Err(error) => return Err(error),
                    });
                }
                Effect::Answer(..) => {}
            }
        }
        // After the loads: a store that commits and cannot be read has not recovered.
        if commits {
            self.delay = Span::ZERO;
        }
        self.condition.tell_damage(self.store.damage());
        self.answer_images();
        // After the commit, so that every reported event is durable.
        turn.events.iter().for_each(|event| self.condition.events.tell(event));
        let at_once = turn.wall.is_some_and(|at| at <= wall);
        if next.is_empty() && !at_once {
            self.alarms.set(turn.wall, turn.steady);
        }
        Ok((next, at_once))
    }

    /// Answers the requests for an image. All commits of the shard's turns are done, so its queues match the store's.
    fn answer_images(&mut self) {
        for reply in self.condition.take_images() {
            let rows = contained(|| self.store.snapshot());
            let (shard, queues) = (self.shard.row(), self.shard.queues());
            let image = rows.map(|rows| Image { shard, queues, rows });
            let image = image.map_err(|error| Failure::Unavailable(error.to_string().into()));
            quietly(|| reply(image));
        }
    }

    /// Registers the reply to a request. Returns the request as an input.
    fn enter(&mut self, letter: Letter) -> Input {
        let poll = match &letter.request {
            Request::Receive { wait, .. } | Request::Push { wait, .. } => {
                Some((letter.request.clone(), self.clocks.steady() + *wait))
            }
            _ => None,
        };
        let leaves = match &letter.request {
            Request::Leave(_, poll) => Some(*poll),
            _ => None,
        };
        self.waiting.insert(letter.id, Waiting { reply: letter.reply, poll, leaves });
        Input::Request(letter.id, letter.request)
    }

    fn answer(&mut self, id: RequestId, answer: Result<Answer, Failure>) {
        let Some(waiting) = self.waiting.remove(&id) else { return };
        // Once a leave is answered, the shard has forgotten the poll. Until then the poll's reply must remain: it still
        // receives deliveries already on their way, and returns them.
        if let Some(poll) = waiting.leaves {
            self.waiting.remove(&poll);
        }
        call(waiting.reply, answer);
    }

    /// After a failure: fails every request except polls, then retries opening the store until that succeeds. Returns
    /// the polls; `None` if the mailbox was closed meanwhile.
    fn open_anew(&mut self, error: &StoreError) -> Option<Vec<Input>> {
        let mut why: Arc<str> = error.to_string().into();
        self.condition.failed(&why);
        self.fail_all(&Failure::Unknown(why.clone()));
        loop {
            // A store that opens and then fails to commit is not opened in a busy loop either.
            self.wait_out(&Failure::Unavailable(why))?;
            let next = Span::from_millis(self.delay.millis() * 2);
            self.delay = next.clamp(FIRST_DELAY, LONGEST_DELAY);
            let error = match contained(|| self.store.open()) {
                Ok(head) => {
                    self.delay = planted!("runtime.open-ends-the-backoff", Span::ZERO, self.delay);
                    self.epoch = head.epoch;
                    let (wall, steady) = (self.clocks.wall(), self.clocks.steady());
                    let handover = self.shard.hand_over();
                    self.shard = Shard::open(head, self.limits, self.opened, (wall, steady));
                    self.shard.take_over(handover);
                    self.condition.reopened();
                    return Some(self.polls());
                }
                Err(error) => error,
            };
            why = error.to_string().into();
            self.condition.failed(&why);
        }
    }

    /// Waits for the delay. Meanwhile every request fails, except polls: those end empty once their wait has passed.
    /// `None` if the mailbox was closed.
    fn wait_out(&mut self, failure: &Failure) -> Option<()> {
        let until = self.clocks.steady() + self.delay;
        while self.clocks.steady() < until {
            let polls = self.end_polls();
            self.alarms.set(None, polls.into_iter().chain([until]).min());
            let taken = self.mailbox.take(true);
            taken.letters.into_iter().for_each(|letter| drop(self.enter(letter)));
            self.fail_all(failure);
            self.condition.refuse_images(failure);
            if taken.last {
                return None;
            }
        }
        Some(())
    }

    /// Answers the polls whose wait has passed. Returns when the next wait ends.
    fn end_polls(&mut self) -> Option<Steady> {
        if planted!("runtime.polls-outlast-their-wait", true, false) {
            return None;
        }
        let now = self.clocks.steady();
        let waits = |waiting: &Waiting| waiting.poll.as_ref().map(|poll| poll.1);
        let ended = |(id, waiting): (&RequestId, &Waiting)| {
            waits(waiting).filter(|at| *at <= now).map(|_| *id)
        };
        let ended: Vec<RequestId> = self.waiting.iter().filter_map(ended).collect();
        ended.into_iter().for_each(|id| self.answer(id, Ok(Answer::Deliveries(Vec::new()))));
        self.waiting.values().filter_map(waits).min()
    }

    /// The waiting polls as inputs for a new shard, each with the rest of its wait.
    fn polls(&self) -> Vec<Input> {
        let now = self.clocks.steady();
        let poll = |(id, waiting): (&RequestId, &Waiting)| {
            let (mut request, until) = waiting.poll.clone()?;
            if let Request::Receive { wait, .. } | Request::Push { wait, .. } = &mut request {
                *wait = Span::from_millis(until.millis().saturating_sub(now.millis()));
            }
            Some(Input::Request(*id, request))
        };
        self.waiting.iter().filter_map(poll).collect()
    }

    /// Fails every request except polls.
    fn fail_all(&mut self, failure: &Failure) {
        let others = self.waiting.iter().filter(|(_, waiting)| waiting.poll.is_none());
        let others: Vec<RequestId> = others.map(|(id, _)| *id).collect();
        others.into_iter().for_each(|id| self.answer(id, Err(failure.clone())));
    }
}

/// No caller is left waiting, however the thread ends.
impl<S: Store> Drop for Driver<S> {
    fn drop(&mut self) {
        for letter in self.mailbox.end() {
            call(letter.reply, Err(Failure::Stopped));
        }
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            call(waiting.reply, Err(Failure::Stopped));
        }
        self.condition.refuse_images(&Failure::Stopped);
        self.condition.closed();
    }
}

fn call(reply: Reply, answer: Result<Answer, Failure>) {
    quietly(|| reply(answer));
}

/// Turns a panic of the store into a failure.
pub(super) fn contained<T>(work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(StoreError::Failed(format!("it panicked: {}", text.unwrap_or("no message"))))
    })
}
