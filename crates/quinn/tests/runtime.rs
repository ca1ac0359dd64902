//! quinn's traits, on both engines.
//!
//! The last lines take milliseconds of real time: the default engine has no virtual clock.

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use quinn::{AsyncTimer, Runtime as _};
use tourbillon::{Timer, VirtualClock};
use tourbillon_quinn::QuinnRuntime;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn quinn_has_our_timers_and_clock_and_the_others_of_the_inner_runtime() {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
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
fn a_stop_is_no_end() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let runtime = QuinnRuntime::with_timer(Arc::new(quinn::TokioRuntime), timer.clone());
    let mut sleep = runtime.new_timer(clock.now() + SECOND);
    let mut context = std::task::Context::from_waker(Waker::noop());
    assert!(sleep.as_mut().poll(&mut context).is_pending());
    timer.stop();
    assert!(sleep.as_mut().poll(&mut context).is_pending(), "never early");
}
