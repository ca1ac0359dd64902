//! How many connections webhooks open. In real time, because the receiver is a socket.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tourbillon_server::Webhooks;

use crate::webhooks::{Post, posting, until};
use crate::world::World;

/// A receiver on all addresses of this machine, which answers every post after a moment and counts its connections.
struct Counter {
    port: u16,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Counter {
    fn start(head: &'static str) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counter = Counter { port, open: open.clone(), most: most.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let open = open.clone();
                most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    while Post::read(&mut reader).is_some() {
                        std::thread::sleep(Duration::from_millis(20));
                        let stream: &mut TcpStream = reader.get_mut();
                        let _ = write!(
                            stream,
                            "HTTP/1.1 200 Fine\r\n{head}Content-Length: 2\r\n\r\nok"
                        );
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        counter
    }

    /// Schedules a timer for each host, and waits until all are posted and acknowledged.
    fn post_to(&self, world: &World, hosts: &[String]) {
        let timer = |(nth, host): (usize, &String)| {
            let url = format!("http://{host}:{}/", self.port);
            json!({"in": "0s", "key": format!("k{nth}"), "webhook": {"url": url}, "remember": "1h"})
        };
        let timers: Vec<_> = hosts.iter().enumerate().map(timer).collect();
        let body = json!({ "timers": timers }).to_string();
        assert_eq!(world.ask("POST q/timers", &body).status, 201);
        for nth in 0..hosts.len() {
            until(world, &format!("k{nth}"), &json!({"state": "done", "last_error": null}));
        }
    }
}

fn allowed() -> Webhooks {
    Webhooks { allow: vec!["127.0.0.0/8".parse().unwrap()], ..Webhooks::default() }
}

#[test]
fn spellings_of_a_host_share_its_connections() {
    let (world, _runtime) = posting(Webhooks { per_host: 2, ..allowed() });
    let counter = Counter::start("");
    let spellings = ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.1."];
    let hosts: Vec<String> = (0..60).map(|nth| spellings[nth % 6].to_owned()).collect();
    counter.post_to(&world, &hosts);
    let most = counter.most.load(Ordering::SeqCst);
    assert!((1..=2).contains(&most), "{most} connections to one host");
}

/// Idle connections count, and are closed soon enough for those that wait.
#[test]
fn connections_to_all_hosts_are_limited() {
    let idle = Duration::from_millis(100);
    let (world, _runtime) = posting(Webhooks { most: 4, idle, ..allowed() });
    let counter = Counter::start("");
    let hosts: Vec<String> = (1..=40).map(|nth| format!("127.0.0.{nth}")).collect();
    counter.post_to(&world, &hosts);
    let most = counter.most.load(Ordering::SeqCst);
    // Eight, and those whose end the receiver has not noticed yet.
    assert!((1..20).contains(&most), "{most} connections");
    let began = Instant::now();
    while counter.open.load(Ordering::SeqCst) > 0 {
        assert!(began.elapsed() < Duration::from_secs(5), "idle connections are not closed");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_huge_head_of_an_answer_is_not_read() {
    let head: &str = format!("X: {}\r\n", "x".repeat(100_000)).leak();
    let (world, _runtime) = posting(allowed());
    let counter = Counter::start(head);
    let url = format!("http://127.0.0.1:{}/", counter.port);
    let body = json!({"in": "0s", "key": "a", "webhook": {"url": url}, "retry": {"first": "1h"}});
    assert_eq!(world.ask("POST q/timers", &body.to_string()).status, 201);
    let shown = until(&world, "a", &json!({"state": "scheduled", "attempt": 1}));
    assert!(shown["last_error"].is_string(), "{shown}");
}
