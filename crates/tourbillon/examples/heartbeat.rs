//! Keep-alive of many connections: each has one timer, and every message moves it. A connection that is silent for
//! too long is dropped.
//!
//! Run it with `cargo run --release -p tourbillon --example heartbeat`. The connections are simulated: most send
//! regularly, some fall silent. It takes about a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tourbillon::{Timeout, Timer};

const CONNECTIONS: usize = 10_000;
/// How long a connection may be silent.
const PATIENCE: Duration = Duration::from_millis(500);

struct Connection {
    keep_alive: Timeout,
    dropped: Arc<AtomicBool>,
    last_heard: Instant,
}

impl Connection {
    fn open(timer: &Timer) -> Result<Self, Box<dyn std::error::Error>> {
        let dropped = Arc::new(AtomicBool::new(false));
        let closes = dropped.clone();
        let last_heard = timer.now();
        let keep_alive = timer.schedule(PATIENCE, move |_| closes.store(true, SeqCst))?;
        Ok(Connection { keep_alive, dropped, last_heard })
    }

    /// Handles a message: the connection is alive. Moving a timer to later is the cheapest operation of all, so it is
    /// fine to do it for every message. Returns `false` if the message came too late.
    fn heard(&mut self, now: Instant) -> bool {
        self.last_heard = now;
        self.keep_alive.reschedule_at(now + PATIENCE).is_ok()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The callbacks are short, so the driver's thread may run them.
    let timer = Timer::builder().on_driver().build()?;
    let mut connections = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(&timer)?);
    }

    // Every tenth connection falls silent. The others send about every 100 ms, each at its own time.
    let (begin, mut messages, mut too_late) = (Instant::now(), 0_u64, 0_u64);
    let mut round = 0;
    while begin.elapsed() < Duration::from_millis(900) {
        let now = timer.now();
        for (n, connection) in connections.iter_mut().enumerate() {
            if n % 10 != 0 && n % 10 == 1 + round % 9 {
                messages += 1;
                too_late += u64::from(!connection.heard(now));
            }
        }
        round += 1;
        std::thread::sleep(Duration::from_millis(10));
    }

    // Only silent connections were dropped. If the machine stalls this thread for half a second, other connections
    // appear silent too; `too_late` counts their messages.
    let end = timer.now();
    let (mut silent, mut alive) = (0, 0);
    for (n, connection) in connections.iter().enumerate() {
        if connection.dropped.load(SeqCst) {
            silent += 1;
            assert!(n % 10 == 0 || too_late > 0, "connection {n} was heard, and dropped");
        } else {
            alive += 1;
            assert!(n % 10 != 0, "connection {n} was silent, and kept");
            assert!(end - connection.last_heard < PATIENCE, "connection {n} is overdue");
        }
    }
    let counts = timer.counts();
    println!("{CONNECTIONS} connections, {messages} messages in {:.1?}", begin.elapsed());
    println!(
        "{silent} were silent for {PATIENCE:?} and dropped, {alive} live, {too_late} messages too late"
    );
    println!("{} timers fired, p99 {:?} late", counts.fired, timer.lateness().quantile(0.99));
    assert_eq!(timer.stop().len(), alive, "each that lives has its timer");
    Ok(())
}
