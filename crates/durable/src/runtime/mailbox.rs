//! The mailbox: holds callers' requests until the runtime's thread takes them.
//!
//! - Requests of one queue are taken in order. Queues are served round-robin, one request each, so a busy queue does
//!   not delay the others.
//! - At most [`LIMIT`] bytes wait. Beyond that a request is refused, unless nothing else waits or the request is a
//!   [settle](Request::Settle) or a [leave](Request::Leave), the withdrawal of a receive or push.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{Failure, Reply};
use crate::shard::{NewTimer, Request, RequestId};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};
use crate::values::{QueueName, Webhook};

/// Maximum bytes that one take returns.
const GROUP: usize = 4 << 20;
/// Maximum bytes that may wait.
const LIMIT: usize = 64 << 20;

/// A request and its reply.
pub(crate) struct Letter {
    pub(crate) id: RequestId,
    pub(crate) request: Request,
    pub(crate) reply: Reply,
    size: usize,
}

/// The result of one take.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) letters: Vec<Letter>,
    /// The mailbox is closed and these requests are the last.
    pub(crate) last: bool,
}

pub(crate) struct Mailbox {
    state: Mutex<State>,
    /// Notifies the runtime's thread of work.
    work: Condvar,
    /// Notifies `wait_idle` that the thread has no work.
    idle: Condvar,
}

#[derive(Default)]
struct State {
    lanes: HashMap<Option<QueueName>, VecDeque<Letter>>,
    /// The non-empty lanes, next one first.
    turn: VecDeque<Option<QueueName>>,
    bytes: usize,
    next: u64,
    /// The thread should take a turn although no request is queued: an alarm has fired, or an image is wanted.
    woken: bool,
    /// The runtime's thread waits for work.
    resting: bool,
    closed: bool,
    /// The runtime's thread has ended.
    ended: bool,
}

impl Mailbox {
    pub(crate) fn new() -> Self {
        Mailbox { state: Mutex::new(State::default()), work: Condvar::new(), idle: Condvar::new() }
    }

    /// Posts a request. If it is refused, calls its reply with the reason before returning.
    pub(crate) fn post(&self, request: Request, reply: Reply) -> RequestId {
        let size = size(&request);
        let mut state = lock(&self.state);
        let id = RequestId(state.next);
        state.next += 1;
        let answers = is_answer(&request);
        let full = state.bytes > 0 && state.bytes + size > LIMIT && !answers;
        let stopped = state.ended
            || state.closed && planted!("runtime.close-refuses-answers", true, !answers);
        if stopped || full {
            let failure = if stopped { Failure::Stopped } else { Failure::Full };
            drop(state);
            reply(Err(failure));
            return id;
        }
        state.bytes += size;
        let name = request.queue().cloned();
        let lane = state.lanes.entry(name.clone()).or_default();
        lane.push_back(Letter { id, request, reply, size });
        if lane.len() == 1 {
            state.turn.push_back(name);
        }
        self.notify(state);
        id
    }

    /// Makes the runtime's thread take a turn.
    pub(crate) fn wake(&self) {
        let mut state = lock(&self.state);
        state.woken = true;
        self.notify(state);
    }

    /// Refuses further requests, except settles and leaves. The thread still carries out those already posted.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        self.notify(state);
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    fn notify(&self, state: MutexGuard<'_, State>) {
        let resting = planted!("runtime.post-does-not-wake", false, state.resting);
        drop(state);
        if resting {
            self.work.notify_one();
        }
    }

    /// Takes the next group. With `rest`, blocks until there is work or the mailbox is closed.
    pub(crate) fn take(&self, rest: bool) -> Taken {
        let mut state = lock(&self.state);
        while rest && !state.has_work() && !state.closed {
            state.resting = true;
            self.idle.notify_all();
            state = wait(&self.work, state, None);
        }
        state.resting = false;
        state.woken = false;
        let letters = state.group();
        Taken { letters, last: state.closed && state.turn.is_empty() }
    }

    /// Blocks until the runtime's thread is idle or has ended.
    pub(crate) fn wait_idle(&self) {
        let mut state = lock(&self.state);
        while !state.ended && (state.has_work() || !state.resting) {
            state = wait(&self.idle, state, None);
        }
    }

    /// Ends the mailbox if it is closed and empty. The thread calls this after each turn, because the recipient of a
    /// reply may have posted a request during that turn, for example to give a delivery back.
    pub(crate) fn end_if_idle(&self) -> bool {
        let mut state = lock(&self.state);
        state.ended |= state.closed && state.turn.is_empty();
        state.ended
    }

    /// Called when the runtime's thread ends. Returns the requests that will not be taken.
    pub(crate) fn end(&self) -> Vec<Letter> {
        let mut state = lock(&self.state);
        (state.closed, state.ended) = (true, true);
        self.idle.notify_all();
        state.turn.clear();
        state.lanes.drain().flat_map(|(_, lane)| lane).collect()
    }
}

impl State {
    fn has_work(&self) -> bool {
        self.woken || !self.turn.is_empty()
    }

    fn group(&mut self) -> Vec<Letter> {
        let (mut letters, mut bytes) = (Vec::new(), 0);
        while let Some(name) = self.turn.pop_front() {
            let lane = self.lanes.get_mut(&name).expect("a lane in turn is there");
            let next = lane.front().map_or(0, |letter| letter.size);
            if !letters.is_empty() && bytes + next > GROUP {
                self.turn.push_front(name);
                break;
            }
            bytes += next;
            letters.extend(lane.pop_front());
            if lane.is_empty() {
                self.lanes.remove(&name);
            } else {
                self.turn.push_back(name);
            }
        }
        self.bytes -= bytes;
        letters
    }
}

/// Whether a request is a settle or a leave. Neither is refused for lack of room, because both free room.
fn is_answer(request: &Request) -> bool {
    matches!(request, Request::Settle { .. } | Request::Leave(..))
}

/// The approximate bytes that a request adds to a commit.
fn size(request: &Request) -> usize {
    const EACH: usize = 200;
    match request {
        Request::Schedule { timers, .. } => {
            let hook = |hook: &Arc<Webhook>| hook.size();
            let size = |timer: &NewTimer| {
                let hooks = timer.webhook.iter().flatten().map(hook);
                EACH + timer.payload.len() + hooks.sum::<usize>()
            };
            timers.iter().map(size).sum::<usize>()
        }
        Request::Cancel { keys, .. } => keys.len() * EACH,
        Request::Settle { tokens, .. } => tokens.len() * EACH,
        Request::Receive { max, .. } | Request::Push { max, .. } => *max * EACH,
        _ => EACH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(mailbox: &Mailbox, queue: &str, keys: usize) -> RequestId {
        let key = crate::values::Key::chosen("k").unwrap();
        let queue = QueueName::new(queue).unwrap();
        mailbox.post(Request::Cancel { queue, keys: vec![key; keys], only: None }, Box::new(|_| ()))
    }

    fn take(mailbox: &Mailbox) -> Vec<u64> {
        mailbox.take(false).letters.iter().map(|letter| letter.id.0).collect()
    }

    #[test]
    fn queues_take_turns_and_a_group_has_a_limit() {
        let mailbox = Mailbox::new();
        let quarter = GROUP / 200 / 4 + 1;
        for _ in 0..6 {
            post(&mailbox, "busy", quarter);
        }
        post(&mailbox, "other", 1);
        assert_eq!(take(&mailbox), [0, 6, 1, 2], "three quarters and a little");
        post(&mailbox, "large", quarter * 9);
        assert_eq!(take(&mailbox), [3]);
        assert_eq!(take(&mailbox), [7], "larger than a group: alone");
        assert_eq!(take(&mailbox), [4, 5]);
        assert_eq!(lock(&mailbox.state).bytes, 0);
    }

    #[test]
    fn what_waits_is_bounded_and_answers_are_taken_all_the_same() {
        let mailbox = Mailbox::new();
        let refused = std::sync::Arc::new(Mutex::new(Vec::new()));
        let note = |refused: &std::sync::Arc<Mutex<Vec<Failure>>>| -> Reply {
            let refused = refused.clone();
            Box::new(move |answer| lock(&refused).extend(answer.err()))
        };
        post(&mailbox, "q", LIMIT / 200);
        let queue = QueueName::new("q").unwrap();
        mailbox.post(Request::Queue(queue.clone()), note(&refused));
        assert_eq!(*lock(&refused), [Failure::Full]);
        mailbox.post(Request::Leave(Some(queue.clone()), RequestId(0)), note(&refused));
        assert_eq!(lock(&refused).len(), 1);
        mailbox.close();
        mailbox.post(Request::Queue(queue.clone()), note(&refused));
        assert_eq!(*lock(&refused), [Failure::Full, Failure::Stopped]);
        // Settles and leaves are accepted until the thread has ended.
        mailbox.post(Request::Leave(Some(queue.clone()), RequestId(0)), note(&refused));
        assert!(!mailbox.end_if_idle());
        assert_eq!(mailbox.end().len(), 3);
        mailbox.post(Request::Leave(Some(queue), RequestId(0)), note(&refused));
        assert_eq!(*lock(&refused), [Failure::Full, Failure::Stopped, Failure::Stopped]);
    }
}
