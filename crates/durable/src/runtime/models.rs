//! Loom models of the hand-over between callers and the runtime's thread.
//!
//! The mailbox and the slot are the production ones. A stand-in replaces the runtime's thread and answers every request
//! at once. A lost wake-up leaves a thread blocked, and loom reports the deadlock.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::thread;

use super::mailbox::Mailbox;
use super::slot::Slot;
use super::{Failure, Reply};
use crate::shard::{Answer, Request};
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::values::QueueName;

type Answered = Result<Answer, Failure>;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A stand-in for the runtime's thread that answers every request at once.
fn serve(mailbox: &Arc<Mailbox>) -> thread::JoinHandle<usize> {
    let mailbox = mailbox.clone();
    thread::spawn(move || {
        let mut served = 0;
        loop {
            let taken = mailbox.take(true);
            for letter in taken.letters {
                served += 1;
                (letter.reply)(Ok(Answer::Done));
            }
            if taken.last {
                mailbox.end();
                return served;
            }
        }
    })
}

fn request() -> Request {
    Request::Queue(QueueName::new("q").expect("a name"))
}

fn fill(slot: &Arc<Slot<Answered>>) -> Reply {
    let slot = slot.clone();
    Box::new(move |answer| drop(slot.fill(answer)))
}

#[test]
fn every_request_is_answered() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new());
        let server = serve(&mailbox);
        let callers = [(); 2].map(|()| {
            let mailbox = mailbox.clone();
            thread::spawn(move || {
                let slot = Arc::new(Slot::new());
                mailbox.post(request(), fill(&slot));
                assert_eq!(slot.wait(None), Some(Ok(Answer::Done)));
            })
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        mailbox.close();
        assert_eq!(server.join().unwrap(), 2);
    });
}

#[test]
fn a_request_that_meets_the_end_is_answered_or_refused() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new());
        let server = serve(&mailbox);
        let closing = mailbox.clone();
        let closer = thread::spawn(move || closing.close());
        let slot = Arc::new(Slot::new());
        mailbox.post(request(), fill(&slot));
        let answer = slot.wait(None).expect("an answer");
        closer.join().unwrap();
        let served = server.join().unwrap();
        assert_eq!(served == 1, answer == Ok(Answer::Done), "{answer:?}");
    });
}

/// A virtual clock relies on this: once `wait_idle` returns, every request posted before it is done.
#[test]
fn who_waits_until_it_is_idle_sees_everything_done() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new());
        let server = serve(&mailbox);
        let slot = Arc::new(Slot::new());
        mailbox.post(request(), fill(&slot));
        mailbox.wake();
        mailbox.wait_idle();
        assert_eq!(slot.close(), (Some(Ok(Answer::Done)), true));
        mailbox.close();
        server.join().unwrap();
    });
}

/// A task that polls again when its waker is called.
struct Task {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        *lock(&self.woken) = true;
        self.changed.notify_all();
    }
}

#[test]
fn a_task_is_woken_for_its_answer() {
    check(|| {
        let slot: Arc<Slot<u32>> = Arc::new(Slot::new());
        let filling = slot.clone();
        let filler = thread::spawn(move || assert_eq!(filling.fill(7), None));
        let task = Arc::new(Task { woken: Mutex::new(false), changed: Condvar::new() });
        let waker = Waker::from(task.clone());
        loop {
            if let Poll::Ready(value) = slot.poll(&mut Context::from_waker(&waker)) {
                assert_eq!(value, 7);
                break;
            }
            let mut woken = lock(&task.woken);
            while !*woken {
                woken = wait(&task.changed, woken, None);
            }
            *woken = false;
        }
        filler.join().unwrap();
    });
}

/// Either the closing caller takes the value or `fill` returns it to the filler: it is never lost.
#[test]
fn a_value_that_meets_a_caller_who_goes_is_not_lost() {
    check(|| {
        let slot: Arc<Slot<u32>> = Arc::new(Slot::new());
        let filling = slot.clone();
        let filler = thread::spawn(move || filling.fill(7));
        let (taken, open) = slot.close();
        assert!(open);
        assert_eq!(filler.join().unwrap().xor(taken), Some(7));
    });
}
