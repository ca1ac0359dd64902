//! A slow disk, in real time: only the answers to changes wait for it.

use std::time::{Duration, Instant};

use tourbillon::VirtualClock;
use tourbillon_durable::Durable;
use tourbillon_durable::memory::MemoryStore;
use tourbillon_durable::store::{Head, Loaded, Op, Query, Snapshot, Store, StoreError};
use tourbillon_server::Settings;

use crate::world::{World, request};

const SLOW: Duration = Duration::from_millis(200);

struct Slow(MemoryStore);

impl Store for Slow {
    fn open(&mut self) -> Result<Head, StoreError> {
        self.0.open()
    }

    fn commit(&mut self, epoch: u64, ops: &[Op]) -> Result<(), StoreError> {
        std::thread::sleep(SLOW);
        self.0.commit(epoch, ops)
    }

    fn load(&mut self, query: &Query) -> Result<Loaded, StoreError> {
        self.0.load(query)
    }

    fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        self.0.snapshot()
    }
}

#[test]
fn answers_to_changes_wait_for_a_slow_disk() {
    let durable = Durable::builder().with_store(Slow(MemoryStore::new())).unwrap();
    let world = World::of(durable, VirtualClock::new(), Settings::default());
    let took = |line: &str, body: &str| {
        let began = Instant::now();
        let answer = world.ask(line, body);
        assert!(answer.status < 300, "{}", answer.text);
        (began.elapsed(), answer)
    };
    assert!(took("POST q/timers", r#"{"in":"0s","key":"a"}"#).0 >= SLOW);
    // A hand-out is durable before its answer starts.
    let (spent, received) = took("POST q/receive", "");
    assert!(spent >= SLOW);
    let token = &received.json["deliveries"][0]["token"];
    assert!(took("POST q/ack", &format!(r#"{{"tokens":[{token}]}}"#)).0 >= SLOW);
    // During a commit `/healthz` is answered, and waiting requests share the next commit.
    let began = Instant::now();
    let polls: Vec<_> =
        (0..20).map(|_| world.begin(request("POST q/timers", r#"{"in":"1h"}"#))).collect();
    assert!(took("GET /healthz", "").0 < SLOW / 2);
    assert!(took("GET /readyz", "").0 < SLOW / 2);
    for poll in polls {
        assert_eq!(world.finish(poll).status, 201);
    }
    assert!(began.elapsed() < SLOW * 6, "{:?}", began.elapsed());
}
