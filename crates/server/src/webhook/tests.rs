//! Connections of webhooks, in real time, with another way to look names up.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tourbillon_durable::values::Span;
use tourbillon_durable::{Durable, NewTimer, State, Webhook};
use tower_service::Service;

use super::agent::Agent;
use super::connect::{Connector, Lookups, is_short};
use super::hosts::Hosts;
use super::*;

fn runtime() -> Runtime {
    // As many threads for lookups as there are in a server that reads many dumps.
    Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(64)
        .enable_io()
        .build()
        .unwrap()
}

/// Schedules a timer that is due now.
fn post(durable: &Durable, key: &str, url: &str) {
    let timeout = Span::from_secs(2);
    let webhook = Webhook { timeout, ..Webhook::new(url).unwrap() };
    let timer = NewTimer::after(Duration::ZERO).webhook(webhook).unwrap().key(key).unwrap();
    durable.queue("q").unwrap().schedule(timer).wait().unwrap();
}

/// Names that nobody answers for take few of the places for lookups, and leave the others to other names.
#[test]
fn slow_lookups_leave_places_to_other_names() {
    // Dropped last, because it waits for the lookups.
    let runtime = runtime();
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = receiver.local_addr().unwrap();
    let (release, held) = channel::<()>();
    let held = std::sync::Mutex::new(held);
    let lookups = Lookups::by(move |name, _| {
        if name.starts_with("slow") {
            // Until the test ends.
            let _ = held.lock().unwrap().recv();
        }
        Ok(vec![address])
    });
    let durable = Durable::memory().unwrap();
    let settings = Webhooks { allow: vec!["127.0.0.1".parse().unwrap()], ..Webhooks::default() };
    let (stop, stopping) = watch::channel(false);
    let agent = Agent::with(durable.clone(), Arc::new(settings), lookups);
    let running = runtime.spawn(agent.run(stopping));
    for nth in 0..150 {
        post(&durable, &format!("slow{nth}"), &format!("http://slow{}.example/", nth % 10));
    }
    std::thread::sleep(Duration::from_millis(300));
    post(&durable, "fast", "http://fast.example/");
    receiver.set_nonblocking(true).unwrap();
    let began = Instant::now();
    while receiver.accept().is_err() {
        assert!(began.elapsed() < Duration::from_secs(3), "the other name is not looked up");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Other work on blocking threads goes on, too.
    let begun = runtime.block_on(tourbillon::tasks::timeout(Duration::from_secs(3), async {
        tokio::task::spawn_blocking(|| ()).await
    }));
    assert!(begun.is_ok());
    // Those that found no place for a lookup have used up no attempt.
    let began = Instant::now();
    let released = |nth: u32| {
        let view = durable.queue("q").unwrap().get(format!("slow{nth}")).wait().unwrap().unwrap();
        view.state == State::Scheduled && view.last_error.is_none()
    };
    while (0..150).filter(|nth| released(*nth)).count() < 50 {
        assert!(began.elapsed() < Duration::from_secs(9));
        std::thread::sleep(Duration::from_millis(20));
    }
    drop((release, stop, running));
    runtime.shutdown_background();
}

/// A connection has a time-out of its own, with TLS, though nobody waits for it; then its places are free.
#[test]
fn a_handshake_that_stalls_is_given_up_and_frees_its_place() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let settings = Webhooks { allow: vec!["127.0.0.1".parse().unwrap()], ..Webhooks::default() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let hosts = Arc::new(Hosts::new(1));
    let mut connector = Connector::new(&settings, hosts.clone(), Lookups::default(), Arc::new(tls));
    connector.longest = Duration::from_millis(200);
    let runtime = runtime();
    let connect = |connector: &mut Connector| {
        let connecting = connector.call(url.parse().unwrap());
        let within = tourbillon::tasks::timeout(Duration::from_secs(5), connecting);
        runtime.block_on(within).expect("it is given up").err().expect("it fails")
    };
    assert_eq!(connect(&mut connector).kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(hosts.of(&url).sockets.available_permits(), 1);
    // The place of the host is taken: that is no fault of the receiver.
    let host = hosts.of(&url);
    let _taken = host.sockets.clone().try_acquire_owned().unwrap();
    let busy = runtime
        .block_on(super::connect::PATIENCE_FOR_PLACES.scope(Duration::from_millis(50), async {
            connector.call(url.parse().unwrap()).await
        }));
    assert!(is_short(&busy.err().unwrap()));
    drop(TcpStream::connect(silent.local_addr().unwrap()));
}

#[test]
fn a_shortage_of_files_is_the_servers_own() {
    for (code, short) in [(24, true), (23, true), (111, false)] {
        assert_eq!(is_short(&std::io::Error::from_raw_os_error(code)), short, "{code}");
    }
}
