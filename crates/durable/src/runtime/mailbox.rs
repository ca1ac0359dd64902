//! The mailbox: holds callers' requests until the runtime's thread takes them.
//!
//! - Requests of one queue are taken in order. Queues are served round-robin, one request each, so a busy queue does
//!   not delay the others.
//! - At most [`LIMIT`] bytes of [settles](Request::Settle) wait, and at most as many of all other requests, so that
//!   neither kind holds up the other. Beyond that a request is refused, unless nothing else of its kind waits.
//! - What gives room back is never refused: a [leave](Request::Leave), which withdraws a receive or push, and the
//!   release of a delivery. There are no more of them than there are polls and deliveries.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{Failure, Reply};
use crate::shard::{NewTimer, Request, RequestId};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};
use crate::values::{QueueName, Verdict, Webhook};

/// Maximum bytes that one take returns.
const GROUP: usize = 4 << 20;
/// Maximum bytes of a kind that may wait.
const LIMIT: usize = 64 << 20;

/// A request and its reply.
pub(crate) struct Letter {
    pub(crate) id: RequestId,
    pub(crate) request: Request,
    pub(crate) reply: Reply,
    size: usize,
    kind: Kind,
}

/// Which limit applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Settle,
    Other,
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
    /// The bytes that wait, of each kind.
    bytes: [usize; 2],
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
        let kind = planted!("runtime.settles-share-the-limit", Kind::Other, kind(&request));
        let waiting = state.bytes[kind as usize];
        let full = waiting > 0 && waiting + size > LIMIT && !gives_back(&request);
        let answers = gives_back(&request) || matches!(request, Request::Settle { .. });
        let stopped = state.ended
            || state.closed && planted!("runtime.close-refuses-answers", true, !answers);
        if stopped || full {
            let failure = if stopped { Failure::Stopped } else { Failure::Full };
            drop(state);
            reply(Err(failure));
            return id;
        }
        state.bytes[kind as usize] += size;
        let name = request.queue().cloned();
        let lane = state.lanes.entry(name.clone()).or_default();
        lane.push_back(Letter { id, request, reply, size, kind });
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
            let letter = lane.pop_front();
            letter.iter().for_each(|letter| self.bytes[letter.kind as usize] -= letter.size);
            letters.extend(letter);
            if lane.is_empty() {
                self.lanes.remove(&name);
            } else {
                self.turn.push_back(name);
            }
        }
        letters
    }
}

fn kind(request: &Request) -> Kind {
    if matches!(request, Request::Settle { .. }) { Kind::Settle } else { Kind::Other }
}

/// Whether a request gives back a poll or a delivery. Such a request is not refused for lack of room.
fn gives_back(request: &Request) -> bool {
    let released = |verdict: &Verdict| matches!(verdict, Verdict::Release(_));
    match request {
        Request::Leave(..) => true,
        Request::Settle { verdict, .. } => {
            planted!("runtime.settles-wait-without-a-limit", true, released(verdict))
        }
        _ => false,
    }
}

/// The approximate bytes that a request adds to a commit.
///
/// A request that reads pages counts as a quarter of a group. So a turn carries out at most four of them, which bounds
/// the delay of other requests and the rows in memory.
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
        Request::List { .. } | Request::CancelPrefix { .. } | Request::Redrive { .. } => {
            planted!("runtime.all-lists-in-one-turn", EACH, GROUP / 4)
        }
        _ => EACH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::Filter;
    use crate::values::{Span, Token};

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
        assert_eq!(lock(&mailbox.state).bytes, [0; 2]);
    }

    /// A flood of lists delays the requests of other queues by a few lists only.
    #[test]
    fn a_group_has_few_lists() {
        let mailbox = Mailbox::new();
        let queue = |name| QueueName::new(name).unwrap();
        for _ in 0..9 {
            let queue = queue("read");
            let (filter, after) = (Filter::default(), None);
            mailbox.post(Request::List { queue, filter, after, limit: 1 }, Box::new(|_| ()));
        }
        mailbox.post(Request::Queue(queue("other")), Box::new(|_| ()));
        assert_eq!(take(&mailbox), [0, 9, 1, 2]);
        assert_eq!(take(&mailbox), [3, 4, 5, 6]);
    }

    type Refused = Arc<Mutex<Vec<Failure>>>;

    /// A reply that notes why the request was refused.
    fn note(refused: &Refused) -> Reply {
        let refused = refused.clone();
        Box::new(move |answer| lock(&refused).extend(answer.err()))
    }

    /// A flood of settles is refused, holds up no other request, and keeps no delivery from being released.
    #[test]
    fn settles_have_a_limit_of_their_own() {
        let (mailbox, refused) = (Mailbox::new(), Refused::default());
        let queue = QueueName::new("q").unwrap();
        let token = || "0.1.1.k".parse::<Token>().unwrap();
        let settle = |count, verdict| {
            let tokens = (0..count).map(|_| token()).collect();
            let request = Request::Settle { queue: queue.clone(), tokens, verdict };
            mailbox.post(request, note(&refused));
            lock(&refused).len()
        };
        assert_eq!(settle(LIMIT / 200, Verdict::Ack), 0);
        assert_eq!(settle(1, Verdict::Ack), 1);
        assert_eq!(settle(1, Verdict::Release(Span::ZERO)), 1);
        mailbox.post(Request::Queue(queue.clone()), note(&refused));
        assert_eq!(*lock(&refused), [Failure::Full]);
        while !mailbox.take(false).letters.is_empty() {}
        assert_eq!(lock(&mailbox.state).bytes, [0; 2]);
        assert_eq!(settle(1, Verdict::Ack), 1);
    }

    #[test]
    fn what_waits_is_bounded_and_answers_are_taken_all_the_same() {
        let (mailbox, refused) = (Mailbox::new(), Refused::default());
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
