//! `tourbillon cron`: when a cron expression runs, as text for people.
//!
//! [`Settings`] holds the command's arguments. [`preview`] lists the next runs, the clock changes of the zone that
//! affect them, and what happens there. The text has colours as ANSI codes; the caller strips them if its output is not
//! a terminal.

mod jumps;
mod tell;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use tourbillon::{Cron, CronError};

use jumps::Jump;

/// The arguments of a preview.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The expression.
    pub expression: String,
    /// The name of the time zone; `None` for the system's.
    pub zone: Option<String>,
    /// The moment after which runs are listed: a date and time in the zone, or with an offset; `None` for now.
    pub from: Option<String>,
    /// The number of runs.
    pub count: usize,
}

/// A preview, ready to be printed.
struct Preview {
    cron: Cron,
    from: Zoned,
    runs: Vec<Zoned>,
    /// The clock changes that affect the expression, in order.
    jumps: Vec<Jump>,
}

/// Lists the next runs.
///
/// # Errors
/// What is wrong with the expression or another setting, where, and what to do.
pub fn preview(settings: &Settings) -> Result<Vec<u8>, String> {
    let zone = zone(settings.zone.as_deref())?;
    let from = from(settings.from.as_deref(), &zone)?;
    let cron = Cron::in_zone(&settings.expression, zone)
        .map_err(|wrong| point_at(&settings.expression, &wrong))?;
    let all = std::iter::successors(Some(from.clone()), |last| cron.next_after(last));
    let runs: Vec<Zoned> = all.skip(1).take(settings.count).collect();
    let jumps = jumps::touching(&cron, &from, runs.last().unwrap_or(&from));
    let mut text = Vec::new();
    let preview = Preview { cron, from, runs, jumps };
    tell::tell(&mut text, &preview).map_err(|error| error.to_string())?;
    Ok(text)
}

/// The message, and the expression with carets below the part that is wrong.
fn point_at(expression: &str, wrong: &CronError) -> String {
    let Some(span) = wrong.span() else { return wrong.to_string() };
    // Control characters would break the line.
    let line = expression.replace(char::is_control, " ");
    let count = |part: Option<&str>| part.map_or(0, |part| part.chars().count());
    let (before, width) = (count(expression.get(..span.start)), count(expression.get(span)));
    let (indent, carets) = (" ".repeat(before), "^".repeat(width));
    format!("{wrong}\n  {line}\n  {indent}{carets}")
}

fn zone(name: Option<&str>) -> Result<TimeZone, String> {
    let Some(name) = name else {
        return TimeZone::try_system().map_err(|_| {
            "the system's time zone is not known: give one, as --tz Europe/Berlin".to_owned()
        });
    };
    TimeZone::get(name).map_err(|_| {
        let like = zones_like(name);
        let what = match &*like {
            [] => "give one as Europe/Berlin, or UTC".to_owned(),
            names => format!("did you mean {}?", names.join(", ")),
        };
        format!("--tz: there is no time zone {name:?}: {what}")
    })
}

/// The zones whose last part begins with the last part of this name.
fn zones_like(name: &str) -> Vec<String> {
    let last = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or_default();
        last.to_ascii_lowercase().replace(' ', "_")
    };
    let wanted = last(name);
    if wanted.is_empty() {
        return Vec::new();
    }
    let known = jiff::tz::db().available().map(|name| name.to_string());
    let mut like: Vec<String> = known.filter(|name| last(name).starts_with(&wanted)).collect();
    like.sort_by_key(|name| (last(name).len(), name.clone()));
    like.truncate(3);
    like
}

fn from(text: Option<&str>, zone: &TimeZone) -> Result<Zoned, String> {
    let Some(text) = text else { return Ok(Timestamp::now().to_zoned(zone.clone())) };
    let text = text.trim();
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Ok(zoned.with_time_zone(zone.clone()));
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment.to_zoned(zone.clone()));
    }
    let civil = text.parse::<DateTime>().ok();
    civil.and_then(|civil| civil.to_zoned(zone.clone()).ok()).ok_or_else(|| {
        format!(
            "--from: {text:?} is no time: give 2025-03-30T01:00, in the zone, or 2025-03-30T00:00Z"
        )
    })
}
