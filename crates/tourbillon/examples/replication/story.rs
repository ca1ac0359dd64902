//! What happens to the broker, step by step on a virtual clock.

use std::time::Duration;

use tourbillon::{Timer, VirtualClock};

use crate::broker::{Broker, Journal};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Runs the story, and returns its lines.
pub(crate) fn tell() -> Vec<String> {
    let clock = VirtualClock::new();
    let timer =
        Timer::builder().clock(&clock).on_driver().build().expect("the settings are in range");
    let journal = Journal::new(&clock);
    let broker = Broker::new(&timer, &journal);
    let wait = |by: Duration| clock.advance(by).expect("outside of callbacks");
    broker.create("orders-0", &["follower b", "follower c"]);
    broker.create("orders-1", &["follower b"]);
    broker.create("audit-0", &[]);

    // A partition without followers: the request completes at once, without a timer.
    broker.produce("audit log", &["audit-0"], 10, ms(500));

    // All replicas fetch the record, one after the other.
    wait(ms(10));
    broker.produce("shop", &["orders-0"], 300, ms(500));
    wait(ms(20));
    broker.replicate("follower b", "orders-0");
    wait(ms(15));
    broker.replicate("follower c", "orders-0");

    // Two partitions in one request: it is watched under both, and the last follower completes it.
    wait(ms(55));
    broker.produce("bulk import", &["orders-0", "orders-1"], 200, ms(500));
    broker.replicate("follower b", "orders-0");
    broker.replicate("follower b", "orders-1");
    wait(ms(5));
    broker.replicate("follower c", "orders-0");

    // A follower is down: the request times out.
    wait(ms(95));
    broker.produce("shop", &["orders-0"], 300, ms(500));
    broker.replicate("follower b", "orders-0");
    wait(ms(500));

    // A consumer that waits for a minimum of bytes: the second record brings enough.
    wait(ms(100));
    broker.fetch("consumer", "orders-1", 1, 500, ms(1000));
    wait(ms(50));
    broker.produce("shop", &["orders-1"], 300, ms(500));
    broker.replicate("follower b", "orders-1");
    wait(ms(50));
    broker.produce("shop", &["orders-1"], 300, ms(500));
    broker.replicate("follower b", "orders-1");

    // A consumer that asks for too many bytes gets those that are available.
    broker.fetch("consumer", "orders-1", 2, 1_000, ms(250));
    wait(ms(250));

    // A request that waits for a partition is answered at once when the partition moves.
    wait(ms(100));
    broker.produce("shop", &["orders-0"], 300, ms(500));
    broker.fetch("consumer", "orders-0", 4, 1_000, ms(1000));
    wait(ms(10));
    broker.resign("orders-0");
    journal.write(format!(
        "{} operations wait, {} timers are pending",
        broker.waiting(),
        timer.len()
    ));
    journal.lines()
}
