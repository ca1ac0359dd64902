//! Futures that wait in a purgatory, polled by hand.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use crate::common::{Drops, Log, SECOND, eventually, within};
use crate::{Flag, Op, is_empty, purgatory};
use tourbillon::{Purgatory, Timer, VirtualClock, Wait, WaitError};

/// A waker that counts.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn count() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count(AtomicUsize::new(0)));
    (count.clone(), count.into())
}

fn poll<T>(wait: &mut Wait<T>, waker: &Waker) -> Poll<Result<T, WaitError>> {
    Pin::new(wait).poll(&mut Context::from_waker(waker))
}

#[test]
fn a_wait_gives_the_value() {
    let (purgatory, timer, _clock) = purgatory();
    let (woken, waker) = count();
    let stock = Arc::new(Mutex::new(Vec::new()));
    let take = stock.clone();
    let mut wait = purgatory.wait([1, 2], SECOND, move || take.lock().unwrap().pop());
    // It is watched from the call on, not only from its first poll.
    assert_eq!((purgatory.watched(), purgatory.delayed(), timer.len()), (2, 1, 1));
    assert_eq!(poll(&mut wait, &waker), Poll::Pending);
    assert_eq!((purgatory.check(&1), woken.0.load(SeqCst)), (0, 0));
    stock.lock().unwrap().push("value");
    assert_eq!((purgatory.check(&2), woken.0.load(SeqCst)), (1, 1));
    is_empty(&purgatory, &timer);
    assert_eq!(poll(&mut wait, &waker), Poll::Ready(Ok("value")));
}

#[test]
fn a_wait_that_is_ready_at_once_watches_nothing() {
    let (purgatory, timer, _clock) = purgatory();
    let mut wait = purgatory.wait([1], SECOND, || Some(7));
    assert_eq!(timer.counts().armed, 0);
    assert_eq!(poll(&mut wait, &count().1), Poll::Ready(Ok(7)));
}

#[test]
fn a_wait_expires_is_cancelled_or_stopped() {
    let (purgatory, timer, clock) = purgatory();
    let (woken, waker) = count();
    let mut waits = [1, 2, 3].map(|key| purgatory.wait([key], SECOND * key as u32, || None::<()>));
    waits.iter_mut().for_each(|wait| assert_eq!(poll(wait, &waker), Poll::Pending));
    clock.advance(SECOND).unwrap();
    assert!(purgatory.cancel_key(&2).is_empty(), "there is nothing to hand back");
    assert!(purgatory.stop().is_empty());
    assert_eq!(woken.0.load(SeqCst), 3);
    let outcomes = waits.each_mut().map(|wait| poll(wait, &waker));
    let expected = [WaitError::Expired, WaitError::Cancelled, WaitError::Stopped];
    assert_eq!(outcomes, expected.map(|error| Poll::Ready(Err(error))));
    is_empty(&purgatory, &timer);

    let mut late = purgatory.wait([1], SECOND, || Some(1));
    assert_eq!(poll(&mut late, &waker), Poll::Ready(Err(WaitError::Stopped)));
}

#[test]
fn a_wait_that_cannot_be_says_why() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).build().unwrap();
    let purgatory: Purgatory<u64> = Purgatory::new(&timer);
    let waker = count().1;
    let mut none = purgatory.wait([], SECOND, || Some(1));
    assert_eq!(poll(&mut none, &waker), Poll::Ready(Err(WaitError::NoKeys)));
    let _first = purgatory.wait([1], SECOND, || None::<u32>);
    let mut full = purgatory.wait([1], SECOND, || None::<u32>);
    assert_eq!(poll(&mut full, &waker), Poll::Ready(Err(WaitError::Full)));
    assert_eq!(purgatory.watched(), 1);
}

/// A limit is not to blame, and raising it would not help.
#[test]
fn a_wait_for_which_no_thread_can_start_says_so() {
    let no_thread = |_, _| Err(std::io::Error::other("no thread today"));
    let timer = Timer::builder().spawn(no_thread).build().unwrap();
    let purgatory: Purgatory<u64> = Purgatory::new(&timer);
    let mut wait = purgatory.wait([1], SECOND, || None::<u32>);
    assert_eq!(poll(&mut wait, &count().1), Poll::Ready(Err(WaitError::Thread)));
    assert!(WaitError::Thread.to_string().contains("thread"));
    assert_eq!((purgatory.watched(), timer.len()), (0, 0));
}

#[test]
fn dropping_the_future_withdraws_it() {
    let (purgatory, timer, _clock) = purgatory();
    let drops = Drops::new();
    let kept = drops.one();
    let wait = purgatory.wait([1, 2, 3], SECOND, move || {
        let _kept = &kept;
        None::<()>
    });
    assert_eq!((purgatory.watched(), timer.len()), (3, 1));
    drop(wait);
    assert_eq!(drops.count(), 1, "with what it captured");
    is_empty(&purgatory, &timer);
    assert_eq!(timer.counts().cancelled, 1);
}

/// It is dropped while another thread tries its condition: that thread withdraws it, whatever the condition returns.
#[test]
fn dropping_the_future_while_it_is_tried_withdraws_it() {
    for met in [false, true] {
        let (purgatory, timer, _clock) = purgatory();
        let (entered, leave, drops) = (Flag::new(), Flag::new(), Drops::new());
        let (says, waits, kept) = (entered.clone(), leave.clone(), drops.one());
        let mut trials = 0;
        let wait = purgatory.wait([1], SECOND, move || {
            let _kept = &kept;
            trials += 1;
            if trials == 3 {
                says.set();
                eventually(|| waits.is_set());
            }
            (trials == 3 && met).then_some(())
        });
        let other = purgatory.clone();
        let check = thread::spawn(move || other.check(&1));
        eventually(|| entered.is_set());
        within(move || drop(wait));
        leave.set();
        assert_eq!(check.join().unwrap(), usize::from(met));
        assert_eq!(drops.count(), 1);
        is_empty(&purgatory, &timer);
    }
}

#[test]
fn only_the_last_waker_is_woken() {
    let (purgatory, _timer, clock) = purgatory();
    let (first, second) = (count(), count());
    let mut wait = purgatory.wait([1], SECOND, || None::<()>);
    assert_eq!(poll(&mut wait, &first.1), Poll::Pending);
    assert_eq!(poll(&mut wait, &second.1), Poll::Pending);
    clock.advance(SECOND).unwrap();
    assert_eq!((first.0.0.load(SeqCst), second.0.0.load(SeqCst)), (0, 1));
}

/// Consumers wait for what producers insert: nothing is lost, whichever thread tries.
#[test]
fn what_is_taken_is_received() {
    within(|| {
        const EACH: u64 = 2_000;
        let timer = Timer::new();
        let purgatory: Purgatory<&str> = Purgatory::new(&timer);
        let queue: Arc<Mutex<Vec<u64>>> = Arc::default();
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                let (purgatory, queue) = (purgatory.clone(), queue.clone());
                thread::spawn(move || {
                    let mut sum = 0;
                    loop {
                        let take = queue.clone();
                        let wait = purgatory
                            .wait(["queue"], SECOND * 60, move || take.lock().unwrap().pop());
                        match block_on(wait).unwrap() {
                            0 => return sum,
                            value => sum += value,
                        }
                    }
                })
            })
            .collect();
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let (purgatory, queue) = (purgatory.clone(), queue.clone());
                thread::spawn(move || {
                    for value in 1..=EACH {
                        queue.lock().unwrap().push(value);
                        purgatory.check("queue");
                    }
                })
            })
            .collect();
        producers.into_iter().for_each(|thread| thread.join().unwrap());
        // The remaining values come before the values that end the consumers.
        eventually(|| queue.lock().unwrap().is_empty());
        for _ in 0..3 {
            queue.lock().unwrap().push(0);
            purgatory.check("queue");
        }
        let sum: u64 = consumers.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(sum, EACH * (EACH + 1));
        assert_eq!((purgatory.watched(), timer.len()), (0, 0));
    });
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Thread(thread::Thread);
    impl Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Thread(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A purgatory of operations also takes closures and futures.
#[test]
fn operations_and_waits_wait_under_the_same_key() {
    let (purgatory, timer, clock) = purgatory();
    purgatory.try_complete_else_watch(Op::new(|| false, |_| ()), [1], SECOND).unwrap();
    let mut wait = purgatory.wait([1], SECOND, || None::<()>);
    assert_eq!((purgatory.delayed(), purgatory.cancel_key(&1).len()), (2, 1));
    assert_eq!(poll(&mut wait, &count().1), Poll::Ready(Err(WaitError::Cancelled)));
    clock.advance(SECOND).unwrap();
    is_empty(&purgatory, &timer);
}

/// An action may block.
#[test]
fn a_wait_that_is_ready_is_ready_inside_an_action() {
    within(|| {
        let (purgatory, timer, _clock) = purgatory();
        let (own, log) = (purgatory.clone(), Log::new());
        let told = log.clone();
        let end = move |_| told.add(block_on(own.wait([2], SECOND, || Some(7))));
        purgatory.try_complete_else_watch(Op::new(|| true, end), [1], SECOND).unwrap();
        assert_eq!(log.take(), [Ok(7)]);
        is_empty(&purgatory, &timer);
    });
}

#[test]
fn a_wait_that_is_over_is_ready_inside_an_action() {
    let (purgatory, timer, _clock) = purgatory();
    let (own, log) = (purgatory.clone(), Log::new());
    let told = log.clone();
    let end = move |_| {
        let flag = Flag::new();
        let met = flag.clone();
        let mut wait = own.wait([2], SECOND, move || met.is_set().then_some(()));
        flag.set();
        told.add((own.check(&2), poll(&mut wait, Waker::noop())));
        let mut wait = own.wait([3], SECOND, || None::<()>);
        own.cancel_key(&3);
        told.add((0, poll(&mut wait, Waker::noop())));
    };
    purgatory.try_complete_else_watch(Op::new(|| true, end), [1], SECOND).unwrap();
    let cancelled = Poll::Ready(Err(WaitError::Cancelled));
    assert_eq!(log.take(), [(1, Poll::Ready(Ok(()))), (0, cancelled)]);
    is_empty(&purgatory, &timer);
}

/// The thread that stops a timer may keep what the stop hands back.
#[test]
fn a_wait_hears_of_the_stop_of_its_timer_at_once() {
    let (purgatory, timer, _clock) = purgatory();
    let mut wait = purgatory.wait([1], SECOND, || None::<()>);
    purgatory.try_complete_else_watch(Op::never(0), [1], SECOND).unwrap();
    let unfired = timer.stop();
    assert_eq!(poll(&mut wait, Waker::noop()), Poll::Ready(Err(WaitError::Stopped)));
    drop(unfired);
    // An operation continues to wait.
    assert_eq!((purgatory.delayed(), purgatory.stop().len()), (1, 1));
}

#[test]
fn a_wait_that_is_over_does_not_keep_the_engine() {
    let (purgatory, timer, _clock) = purgatory();
    let drops = Drops::new();
    let pending = drops.one();
    timer.schedule(SECOND, move |_| drop(pending)).unwrap();
    let wait = purgatory.wait([1], SECOND, || None::<()>);
    drop(purgatory);
    drop(timer);
    assert_eq!(drops.count(), 1, "the timer was stopped");
    assert_eq!(block_on(wait), Err(WaitError::Stopped));
}
