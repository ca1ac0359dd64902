//! Tables for terminals, lines of JSON for scripts.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tourbillon_client::{Delivery, Happened, Payload, QueueStats, Timer};

/// Prints answers; relative times are relative to `now`.
pub(super) struct Printer<'a, W: Write> {
    pub(super) out: &'a mut W,
    pub(super) json: bool,
    pub(super) now: SystemTime,
}

impl<W: Write> Printer<'_, W> {
    pub(super) fn at(&mut self, now: SystemTime) -> &mut Self {
        self.now = now;
        self
    }

    fn object(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(value).map_err(io::Error::other)?;
        writeln!(self.out, "{text}")
    }

    pub(super) fn timer(&mut self, timer: &Timer) -> io::Result<()> {
        if self.json {
            return self.object(timer);
        }
        let rhythm = timer.every.map(|every| format!("every {}", length(every)));
        let zone = timer.zone.as_deref().unwrap_or("UTC");
        let rhythm = rhythm.or(timer.cron.as_ref().map(|cron| format!("{cron} in {zone}")));
        let payload = match timer.payload() {
            Payload::None => None,
            Payload::Json(json) => Some(shortened(json, 200)),
            Payload::Bytes(bytes) => Some(format!("{} bytes", bytes.len())),
        };
        let due = format!("{}  {}", moment(timer.due), self.far(timer.due));
        let next = format!("{}  {}", moment(timer.next_attempt), self.far(timer.next_attempt));
        let attempts = timer.retry.attempts.map_or(String::new(), |most| format!(" of {most}"));
        for (name, value) in [
            ("queue", Some(timer.queue.clone())),
            ("key", Some(timer.key.clone())),
            ("state", Some(timer.state.clone())),
            ("due", Some(due)),
            ("next attempt", (timer.next_attempt != timer.due).then_some(next)),
            ("occurrence", rhythm.is_some().then(|| timer.occurrence.to_string())),
            ("repeats", rhythm),
            ("times", timer.times.map(|times| times.to_string())),
            ("until", timer.until.map(moment)),
            ("expires", timer.expires.map(|after| format!("{} after it is due", length(after)))),
            ("webhook", timer.webhook.as_ref().map(|webhook| webhook.url.clone())),
            ("attempt", Some(format!("{}{attempts}", timer.attempt))),
            ("generation", Some(timer.generation.to_string())),
            ("created", Some(moment(timer.created))),
            ("payload", payload),
            ("last error", timer.last_error.clone()),
        ] {
            if let Some(value) = value {
                writeln!(self.out, "{name:<13} {}", plain(&value))?;
            }
        }
        Ok(())
    }

    pub(super) fn timers(&mut self, timers: &[Timer]) -> io::Result<()> {
        if self.json {
            return timers.iter().try_for_each(|timer| self.object(timer));
        }
        let rows = timers.iter().map(|timer| {
            let error = timer.last_error.as_deref().map_or(String::new(), |it| shortened(it, 60));
            let far = self.far(timer.next_attempt);
            let attempt = timer.attempt.to_string();
            vec![
                timer.key.clone(),
                timer.state.clone(),
                moment(timer.next_attempt),
                far,
                attempt,
                error,
            ]
        });
        let rows = rows.collect();
        self.table(&["key", "state", "next attempt", "", "attempt>", "last error"], rows)
    }

    pub(super) fn deliveries(&mut self, deliveries: &[Delivery]) -> io::Result<()> {
        if self.json {
            return deliveries.iter().try_for_each(|delivery| self.object(delivery));
        }
        let rows = deliveries.iter().map(|one| {
            let payload = match one.payload() {
                Payload::None => String::new(),
                Payload::Json(json) => shortened(json, 60),
                Payload::Bytes(bytes) => format!("{} bytes", bytes.len()),
            };
            let late = one.handed.duration_since(one.due).unwrap_or_default();
            let attempt = one.attempt.to_string();
            vec![
                one.key.clone(),
                moment(one.due),
                length(late),
                attempt,
                payload,
                one.token.clone(),
            ]
        });
        let rows = rows.collect();
        self.table(&["key", "due", "late>", "attempt>", "payload", "token"], rows)
    }

    pub(super) fn queues(&mut self, queues: &[QueueStats]) -> io::Result<()> {
        if self.json {
            return queues.iter().try_for_each(|queue| self.object(queue));
        }
        let rows = queues.iter().map(|queue| {
            let counts = queue.counts;
            vec![
                queue.queue.clone(),
                counts.scheduled.to_string(),
                counts.due.to_string(),
                counts.delivering.to_string(),
                counts.dead.to_string(),
                format!("{:.1}", queue.per_second),
                length(queue.lateness.p99),
                queue.oldest_due.map_or(String::new(), |oldest| age(self.now, oldest)),
                queue.next.map_or(String::new(), |next| self.far(next)),
                if queue.paused { "paused".into() } else { String::new() },
            ]
        });
        let rows = rows.collect();
        self.table(
            &[
                "queue",
                "scheduled>",
                "due>",
                "delivering>",
                "dead>",
                "per sec>",
                "late p99>",
                "oldest due>",
                "next",
                "",
            ],
            rows,
        )
    }

    pub(super) fn event(&mut self, event: &Happened) -> io::Result<()> {
        if self.json {
            return self.object(event);
        }
        let key = event.key.as_deref().map_or("every timer".into(), plain);
        let (at, what) = (moment(event.at), &event.what);
        writeln!(self.out, "{at}  {what:<9}  {}  {key}  attempt {}", event.queue, event.attempt)
    }

    pub(super) fn counts(&mut self, counts: &[(&str, u64)]) -> io::Result<()> {
        if self.json {
            let object: serde_json::Map<_, _> =
                counts.iter().map(|(name, count)| ((*name).into(), (*count).into())).collect();
            return self.object(&object);
        }
        counts.iter().try_for_each(|(name, count)| writeln!(self.out, "{count} {name}"))
    }

    /// Prints a table. A heading that ends with `>` makes its column right-aligned.
    fn table(&mut self, headings: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
        let head = headings.iter().map(|heading| heading.trim_end_matches('>').to_owned());
        let mut all = vec![head.collect::<Vec<_>>()];
        all.extend(rows.into_iter().map(|row| row.iter().map(|cell| plain(cell)).collect()));
        let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..headings.len()).filter_map(width).collect();
        for row in &all {
            let mut line = String::new();
            for ((cell, width), heading) in row.iter().zip(&widths).zip(headings) {
                match heading.ends_with('>') {
                    true => line.push_str(&format!("{cell:>width$}  ")),
                    false => line.push_str(&format!("{cell:<width$}  ")),
                }
            }
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// The distance from now.
    fn far(&self, at: SystemTime) -> String {
        far(self.now, at)
    }
}

/// The distance of a moment from another, in its two largest units.
pub(super) fn far(now: SystemTime, at: SystemTime) -> String {
    match at.duration_since(now) {
        Ok(left) => format!("in {}", length(left)),
        Err(passed) => format!("{} ago", length(passed.duration())),
    }
}

/// The time since a moment.
pub(super) fn age(now: SystemTime, at: SystemTime) -> String {
    length(now.duration_since(at).unwrap_or_default())
}

/// A length of time in its two largest units.
pub(super) fn length(length: Duration) -> String {
    let millis = length.as_millis();
    if millis < 1000 {
        return format!("{millis}ms");
    }
    let (mut left, mut parts) = (length.as_secs(), Vec::new());
    for (unit, seconds) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] {
        if left >= seconds && parts.len() < 2 {
            parts.push(format!("{}{unit}", left / seconds));
            left %= seconds;
        } else if !parts.is_empty() {
            break;
        }
    }
    parts.join(" ")
}

/// A moment in UTC.
pub(super) fn moment(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Replaces control characters and marks that change the direction of writing.
pub(super) fn plain(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() || turns(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_two_units() {
        for (millis, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1000, "1s"),
            (61_000, "1m 1s"),
            (3_600_000, "1h"),
            (90_061_000, "1d 1h"),
        ] {
            assert_eq!(length(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn text_of_others_cannot_move_the_cursor() {
        assert_eq!(plain("a\u{1b}[2J\n\u{202e}b"), "a\u{fffd}[2J\u{fffd}\u{fffd}b");
    }
}
