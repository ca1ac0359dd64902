//! The example `orders`, killed with -9 and restarted. In real time, because it is another process.

#[allow(dead_code, unreachable_pub)]
#[path = "../examples/orders.rs"]
mod orders;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const DIRECTORY: &str = "TOURBILLON_ORDERS";

/// Not a test: the process that is killed.
#[test]
fn shop() {
    if let Ok(directory) = std::env::var(DIRECTORY) {
        orders::run(&directory).unwrap();
    }
}

struct Shop {
    process: Child,
    lines: Receiver<String>,
}

impl Shop {
    fn open(directory: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shop", "--nocapture"])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let out = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        let shop = Shop { process, lines };
        shop.expect("ready");
        shop
    }

    fn say(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits for that line, skipping others.
    fn expect(&self, wanted: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        let left = || end.saturating_duration_since(Instant::now());
        // The test harness writes text in front of the first line.
        while let Ok(line) = self.lines.recv_timeout(left()) {
            if line.ends_with(wanted) {
                return;
            }
        }
        panic!("{wanted} did not come");
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn an_order_survives_a_kill_and_is_cancelled_once_its_time_is_up() {
    let directory = std::env::temp_dir().join(format!("tourbillon-orders-{}", std::process::id()));
    let mut shop = Shop::open(&directory);
    for order in ["order paid 3600", "order unpaid 2", "order later 3600"] {
        shop.say(order);
        shop.expect(
            &order.split(' ').take(2).collect::<Vec<_>>().join(" ").replace("order", "placed"),
        );
    }
    shop.say("paid paid");
    shop.expect("paid paid");
    shop.kill();
    let mut shop = Shop::open(&directory);
    shop.expect("cancelled unpaid");
    shop.say("order paid 3600");
    shop.expect("placed paid");
    shop.say("paid unpaid");
    shop.expect("too late unpaid");
    shop.say("paid later");
    shop.expect("paid later");
    shop.kill();
    std::fs::remove_dir_all(&directory).unwrap();
}
