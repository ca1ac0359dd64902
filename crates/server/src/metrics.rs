//! Metrics, in the text format of Prometheus. Pure.
//!
//! Every value is one that the durable timers maintain anyway: a scrape reads them, and nothing is counted twice.

use std::fmt::Write as _;

use tourbillon_durable::Stats;
use tourbillon_durable::values::{Moment, Span};

/// The content type of the format.
pub(crate) const KIND: &str = "text/plain; version=0.0.4";

/// A value with its labels.
type Sample = (String, f64);

/// The metrics of a server and of its queues.
pub(crate) fn text(
    (ready, damaged): (bool, usize),
    queues: &[(String, Stats)],
    now: Moment,
) -> String {
    let mut text = String::new();
    let ready = [(String::new(), f64::from(u8::from(ready)))];
    family(&mut text, "ready", "Whether the server takes changes.", ready);
    let damaged = [(String::new(), damaged as f64)];
    family(&mut text, "damaged", "Rows and tables that cannot be read.", damaged);
    let each = |samples: fn(&str, &Stats, Moment) -> Vec<Sample>| {
        queues.iter().flat_map(move |(name, stats)| samples(name, stats, now))
    };
    family(&mut text, "timers", "Timers by state.", each(timers));
    let about = "Hand-outs a second, over the last minute.";
    family(
        &mut text,
        "handed_out_per_second",
        about,
        each(|name, stats, _| vec![(of(name), stats.per_second)]),
    );
    let about = "How late timers were handed out in the last minute.";
    family(&mut text, "lateness_seconds", about, each(lateness));
    let about = "How long the longest due timer has waited for a taker; 0 if none waits.";
    family(
        &mut text,
        "oldest_due_seconds",
        about,
        each(|name, stats, now| {
            let waits = stats.oldest_due.map_or(Span::ZERO, |since| now.since(since));
            vec![(of(name), seconds(waits))]
        }),
    );
    family(
        &mut text,
        "paused",
        "Whether the queue hands out nothing.",
        each(|name, stats, _| vec![(of(name), f64::from(u8::from(stats.settings.paused)))]),
    );
    text
}

/// Writes a gauge. Queue names need no escaping.
fn family(text: &mut String, name: &str, about: &str, samples: impl IntoIterator<Item = Sample>) {
    let _ = writeln!(text, "# HELP tourbillon_{name} {about}\n# TYPE tourbillon_{name} gauge");
    for (labels, value) in samples {
        let _ = writeln!(text, "tourbillon_{name}{labels} {value}");
    }
}

fn of(queue: &str) -> String {
    format!("{{queue=\"{queue}\"}}")
}

fn timers(queue: &str, stats: &Stats, _: Moment) -> Vec<Sample> {
    let counts = stats.counts;
    let by_state = [
        ("scheduled", counts.scheduled),
        ("due", counts.due),
        ("delivering", counts.delivering),
        ("dead", counts.dead),
    ];
    let sample =
        |(state, count)| (format!("{{queue=\"{queue}\",state=\"{state}\"}}"), count as f64);
    by_state.map(sample).into()
}

fn lateness(queue: &str, stats: &Stats, _: Moment) -> Vec<Sample> {
    let late = stats.lateness;
    let by_quantile = [("0.5", late.p50), ("0.99", late.p99), ("1", late.max)];
    let sample = |(quantile, span)| {
        (format!("{{queue=\"{queue}\",quantile=\"{quantile}\"}}"), seconds(span))
    };
    by_quantile.map(sample).into()
}

fn seconds(span: Span) -> f64 {
    span.millis() as f64 / 1000.0
}
