//! Timers that become due: at a steady rate, all in one second, and posted to a receiver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{moment, wall_micros};
use super::{Run, text};
use crate::durable::line::Lines;
use crate::results::Summary;

/// Timers per second in the steady row.
const RATE: i64 = 5000;
/// The number of connections that receive.
const TAKERS: usize = 8;

/// A quantile of sorted lateness in microseconds, in milliseconds.
fn quantile(sorted: &[i64], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(f64::NAN, |micros| *micros as f64 / 1000.0)
}

/// A timer at a moment. Its payload is the moment, padded to 100 bytes.
fn timer(due: i64) -> String {
    format!(r#"{{"at":"{}","payload":{due:>100}}}"#, moment(due))
}

pub(super) fn steady(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("steady 5 k/s scheduled, due and acknowledged");
    let length = Duration::from_secs(if run.quick { 10 } else { 60 });
    let server = run.server(&[])?;
    let (late, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let take = || {
        let mut client = server.client()?;
        while !stop.load(Relaxed) {
            let taken = client.take(100, "1s")?;
            late.lock().map_err(text)?.extend(taken);
        }
        Ok::<(), String>(())
    };
    let produce = || {
        let mut client = server.client()?;
        let (begin, mut scheduled) = (Instant::now(), 0);
        let mut commits = Vec::new();
        while begin.elapsed() < length {
            let wanted = begin.elapsed().as_millis() as i64 * RATE / 1000;
            let now = wall_micros() / 1000;
            // Due over the next two seconds, evenly spread.
            let timers: Vec<String> = (scheduled..wanted.min(scheduled + 1000))
                .map(|nth| timer(now + 1000 + nth * 7 % 1000))
                .collect();
            if !timers.is_empty() {
                scheduled += timers.len() as i64;
                let asked = Instant::now();
                client.post("timers", &format!(r#"{{"timers":[{}]}}"#, timers.join(",")))?;
                commits.push(asked.elapsed().as_secs_f64() * 1e3);
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok::<_, String>((scheduled, Summary::of(&commits).median))
    };
    let (scheduled, commit) = thread::scope(|scope| {
        let takers: Vec<_> = (0..2).map(|_| scope.spawn(take)).collect();
        let produced = produce();
        let end = Instant::now() + Duration::from_secs(10);
        let all = produced.as_ref().map_or(0, |(scheduled, _)| *scheduled as usize);
        while late.lock().map_err(text)?.len() < all && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Relaxed);
        for taker in takers {
            taker.join().map_err(|_| "a taker panicked")??;
        }
        produced
    })?;
    let mut late = late.into_inner().map_err(text)?;
    late.sort_unstable();
    let bound = 1.0 + 2.0 * commit;
    let early = late.iter().filter(|micros| **micros < 0).count();
    let missing = (scheduled - late.len() as i64).unsigned_abs();
    lines.say("scheduled", scheduled as f64, "");
    lines.at_most("scheduled, not delivered once", missing as f64, "", 0.0);
    lines.say("median request with a commit", commit, "ms");
    let p50 = quantile(&late, 0.5);
    lines.at_most("lateness p50, at most 1 ms + two commits", p50, "ms", bound);
    let p99 = quantile(&late, 0.99);
    lines.at_most("lateness p99, at most four times that", p99, "ms", 4.0 * bound);
    lines.at_most("early", early as f64, "", 0.0);
    Ok(lines)
}

pub(super) fn crowd(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("100 k due in the same second, 8 consumers");
    let count = if run.quick { 20_000 } else { 100_000 };
    let server = run.server(&[])?;
    let mut client = server.client()?;
    let due = wall_micros() / 1000 + if run.quick { 5000 } else { 20_000 };
    for first in (0..count).step_by(1000) {
        let timers: Vec<String> =
            (first..first + 1000).map(|nth| timer(due + nth as i64 % 1000)).collect();
        client.post("timers", &format!(r#"{{"timers":[{}]}}"#, timers.join(",")))?;
    }
    let (taken, early) = (AtomicU64::new(0), AtomicU64::new(0));
    let take = || {
        let mut client = server.client()?;
        while taken.load(Relaxed) < count as u64 {
            let late = client.take(1000, "1s")?;
            taken.fetch_add(late.len() as u64, Relaxed);
            early.fetch_add(late.iter().filter(|micros| **micros < 0).count() as u64, Relaxed);
            if wall_micros() / 1000 > due + 60_000 {
                return Err("a minute was not enough".to_owned());
            }
        }
        Ok::<(), String>(())
    };
    thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS).map(|_| scope.spawn(take)).collect();
        let joined = takers.into_iter().map(|taker| taker.join().map_err(|_| "a panic")?);
        joined.collect::<Result<(), String>>()
    })?;
    let spent = (wall_micros() / 1000 - due) as f64 / 1000.0;
    lines.say("timers", count as f64, "");
    lines.at_most("all delivered and acknowledged after", spent, "s", 3.0);
    lines.at_most("early", early.into_inner() as f64, "", 0.0);
    Ok(lines)
}

/// A receiver that answers 200 at once and counts the posts.
fn receiver(posts: Arc<AtomicU64>) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(text)?;
    let address = listener.local_addr().map_err(text)?.to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let posts = posts.clone();
            thread::spawn(move || answer(stream, &posts));
        }
    });
    Ok(address)
}

fn answer(stream: TcpStream, posts: &AtomicU64) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().ok()?;
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).ok()?;
        posts.fetch_add(1, Relaxed);
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
    }
}

pub(super) fn webhooks(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("webhooks to a fast receiver");
    let count: u64 = if run.quick { 10_000 } else { 50_000 };
    let posts = Arc::new(AtomicU64::new(0));
    let address = receiver(posts.clone())?;
    let server = run.server(&["--webhook-allow", "127.0.0.1"])?;
    let mut client = server.client()?;
    client.ask(
        "PATCH",
        "/v1/queues/q",
        &format!(r#"{{"paused":true,"webhook":{{"url":"http://{address}/"}}}}"#),
    )?;
    let due = wall_micros() / 1000;
    for _ in 0..count / 1000 {
        let timers = vec![timer(due); 1000].join(",");
        client.post("timers", &format!(r#"{{"timers":[{timers}]}}"#))?;
    }
    client.ask("PATCH", "/v1/queues/q", r#"{"paused":false}"#)?;
    let begin = Instant::now();
    while posts.load(Relaxed) < count && begin.elapsed() < Duration::from_secs(120) {
        thread::sleep(Duration::from_millis(5));
    }
    let rate = posts.load(Relaxed) as f64 / begin.elapsed().as_secs_f64();
    lines.say("posted", posts.load(Relaxed) as f64, "");
    lines.at_least("posts, each acknowledged", rate, "/s", 5000.0);
    Ok(lines)
}
