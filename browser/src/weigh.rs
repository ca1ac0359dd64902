//! What the server's page costs the browser: script time and memory, with a million pending timers and 5000 per second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use browser::{Chromium, Look, Page, Served};
use serde_json::{Value, json};

/// Timers scheduled, received and acknowledged per second.
const A_SECOND: u64 = 5000;
/// Pending timers.
const PENDING: u64 = 1_000_000;
const QUEUES: u64 = 8;
const WINDOW: Duration = Duration::from_millis(100);
const WINDOWS: u32 = 200;

/// Prints script time and memory of the page.
pub(crate) fn weigh() {
    let served = Arc::new(Served::start());
    fill(&served);
    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicU64::new(0));
    let work = {
        let (served, stop, done) = (Arc::clone(&served), Arc::clone(&stop), Arc::clone(&done));
        thread::spawn(move || work(&served, &stop, &done))
    };
    let chromium = Chromium::start();
    for path in ["", "#/queue-0"] {
        let mut page = chromium.page(Look::LAPTOP);
        page.visit(&format!("{}{path}", served.url()));
        page.wait("document.querySelector('#total-scheduled')?.textContent !== '0'");
        thread::sleep(Duration::from_secs(3));
        let (before, began) = (done.load(Ordering::Relaxed), Instant::now());
        let sums = measure(&mut page);
        let rate = (done.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
        println!(
            "page {path:?}: {rate:.0} timers a second, {} scheduled",
            page.text("#total-scheduled")
        );
        println!("  {sums}");
    }
    stop.store(true, Ordering::Relaxed);
    work.join().expect("the work ends");
}

fn fill(served: &Served) {
    for batch in 0..PENDING / 10_000 {
        let timer =
            |n: u64| json!({"key": format!("{batch}-{n}"), "in": format!("{}s", 3600 + n * 300)});
        let timers: Vec<Value> = (0..10_000).map(timer).collect();
        served.post(&format!("queue-{}/timers", batch % QUEUES), &json!({ "timers": timers }));
    }
}

/// Schedules, receives and acknowledges timers at the rate, as fast as the machine can.
fn work(served: &Served, stop: &AtomicBool, done: &AtomicU64) {
    let began = Instant::now();
    let batch = A_SECOND / 10;
    for number in 1.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let timers: Vec<Value> = (0..batch).map(|_| json!({"in": "0s"})).collect();
        served.post("busy/timers", &json!({ "timers": timers }));
        let got = served.post("busy/receive", &json!({"max": 1000, "wait": "1s"}));
        let tokens: Vec<&Value> =
            got["deliveries"].as_array().into_iter().flatten().map(|one| &one["token"]).collect();
        done.fetch_add(tokens.len() as u64, Ordering::Relaxed);
        served.post("busy/ack", &json!({ "tokens": tokens }));
        thread::sleep(
            (began + number * Duration::from_millis(100)).saturating_duration_since(Instant::now()),
        );
    }
}

/// The script time of each 100 ms window, an upper bound for each frame in it, and the memory at the end.
fn measure(page: &mut Page) -> String {
    // Thread time of the page: other programs on the machine do not count.
    page.call("Performance.enable", json!({"timeDomain": "threadTicks"}));
    page.eval(
        "(() => { window.drawn = 0;
           const one = () => { window.drawn++; requestAnimationFrame(one); }; one(); })()",
    );
    let (began, first) = (Instant::now(), metric(page, "ScriptDuration"));
    let (mut last, mut worst) = (first, Vec::new());
    for _ in 0..WINDOWS {
        thread::sleep(WINDOW);
        let now = metric(page, "ScriptDuration");
        worst.push((now - last) * 1000.0);
        last = now;
    }
    worst.sort_by(f64::total_cmp);
    let frames = page.eval("window.drawn").as_f64().unwrap_or(1.0);
    let [p50, p99, most] =
        [worst.len() / 2, worst.len() * 99 / 100, worst.len() - 1].map(|i| worst[i]);
    format!(
        "script in 100 ms: p50 {p50:.1} ms, p99 {p99:.1} ms, most {most:.1} ms; \
         {:.2} ms a frame ({:.0} frames a second); heap {:.1} MiB, {} nodes",
        (last - first) * 1000.0 / frames,
        frames / began.elapsed().as_secs_f64(),
        metric(page, "JSHeapUsedSize") / f64::from(1 << 20),
        metric(page, "Nodes"),
    )
}

fn metric(page: &mut Page, name: &str) -> f64 {
    let all = page.call("Performance.getMetrics", json!({}));
    let found = all["metrics"].as_array().into_iter().flatten().find(|one| one["name"] == name);
    found.and_then(|one| one["value"].as_f64()).expect("the browser has this metric")
}
