//! The timers of hyper and of quinn: their traits, on both engines.
//!
//! Some in real time, milliseconds: the default engine has no other clock.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

use hyper::rt::{Sleep, Timer as _};
use quinn::{AsyncTimer, Runtime as _};
use tourbillon::tasks::{HyperTimer, QuinnRuntime};

use crate::by_hand::{Task, timer};
use crate::common::{HOUR, MS, SECOND};

#[test]
fn hyper_sleeps_and_resets_in_place() {
    let (timer, clock) = timer();
    let hyper = HyperTimer::from(timer.clone());
    assert_eq!(hyper.now(), clock.now());
    let task = Task::new();
    let mut sleep = hyper.sleep(SECOND);
    assert!(task.poll(&mut sleep).is_pending());
    let place = std::ptr::from_ref::<dyn Sleep>(&*sleep).cast::<()>();
    hyper.reset(&mut sleep, clock.now() + 2 * SECOND);
    assert_eq!(std::ptr::from_ref::<dyn Sleep>(&*sleep).cast::<()>(), place, "no allocation");
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 0);
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, Poll::Ready(())));
    // One that is another timer's is replaced.
    let mut foreign = HyperTimer::new().sleep(HOUR);
    hyper.reset(&mut foreign, clock.now());
    assert_eq!(task.poll(&mut foreign), Poll::Ready(()));
    // It never ends early, and a stop is no end.
    let mut sleep = hyper.sleep_until(clock.now() + SECOND);
    assert!(task.poll(&mut sleep).is_pending());
    timer.stop();
    assert_eq!(task.wakes(), 1);
    assert!(task.poll(&mut sleep).is_pending());
}

#[test]
fn hyper_on_the_default_engine() {
    let hyper = HyperTimer::default();
    let deadline = hyper.now() + 5 * MS;
    let mut sleep = hyper.sleep(HOUR);
    assert!(Task::new().poll(&mut sleep).is_pending());
    hyper.reset(&mut sleep, deadline);
    futures_lite::future::block_on(sleep);
    assert!(Instant::now() >= deadline);
}

#[test]
fn quinn_has_our_timers_and_clock_and_the_others_of_the_inner_runtime() {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let (timer, clock) = timer();
    let inner = Arc::new(quinn::TokioRuntime);
    let runtime = QuinnRuntime::with_timer(inner.clone(), timer.clone());
    clock.advance(HOUR).unwrap();
    assert_eq!(runtime.now(), clock.now());
    let mut sleep = runtime.new_timer(clock.now() + SECOND);
    let mut context = std::task::Context::from_waker(Waker::noop());
    assert!(sleep.as_mut().poll(&mut context).is_pending());
    sleep.as_mut().reset(clock.now() + 2 * SECOND);
    clock.advance(SECOND).unwrap();
    assert!(sleep.as_mut().poll(&mut context).is_pending());
    clock.advance(SECOND).unwrap();
    assert!(AsyncTimer::poll(sleep.as_mut(), &mut context).is_ready());

    let _inside = tokio.enter();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    runtime.spawn(Box::pin(async move { sender.send(7).unwrap() }));
    assert_eq!(tokio.block_on(receiver), Ok(7));
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    assert_eq!(runtime.wrap_udp_socket(socket).unwrap().local_addr().unwrap(), address);

    let now = Instant::now();
    let global = QuinnRuntime::new(inner);
    assert!(global.now() >= now);
    let mut sleep = global.new_timer(now + 2 * MS);
    futures_lite::future::block_on(std::future::poll_fn(|context| sleep.as_mut().poll(context)));
    assert!(Instant::now() >= now + 2 * MS);
}

#[test]
fn hyper_resets_a_sleep_to_the_timer_that_is_asked() {
    let ((one, _), (two, clock)) = (timer(), timer());
    let mut sleep = HyperTimer::from(one.clone()).sleep(HOUR);
    one.stop();
    let two = HyperTimer::from(two);
    two.reset(&mut sleep, two.now() + SECOND);
    let task = Task::new();
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert!(task.poll(&mut sleep).is_ready());
}

#[test]
fn a_limit_of_hyper_that_found_no_room_tries_again() {
    let (timer, clock, key) = crate::refusals::full();
    let mut sleep = HyperTimer::from(timer.clone()).sleep(SECOND);
    let task = Task::new();
    assert!(task.poll(&mut sleep).is_pending());
    assert!(timer.cancel(key), "there is room again");
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert!(task.poll(&mut sleep).is_ready());
}
