//! The text of a preview.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;

use super::Preview;
use super::jumps::{Jump, LOOKED_AT};

/// The style of runs.
const STRONG: Style = Style::new().bold();
/// The maximum number of gaps and folds that are printed.
const TOLD: usize = 8;
/// The style of a gap or a fold.
const JUMP: Style = AnsiColor::Yellow.on_default();

pub(super) fn tell(out: &mut Vec<u8>, preview: &Preview) -> io::Result<()> {
    Teller { seconds: preview.runs.iter().any(|run| run.second() != 0), preview }.tell(out)
}

struct Teller<'a> {
    preview: &'a Preview,
    /// Whether any run has non-zero seconds; if none has, seconds are omitted.
    seconds: bool,
}

impl Teller<'_> {
    fn tell(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let Preview { cron, from, runs, .. } = self.preview;
        let zone = cron.zone().iana_name().unwrap_or("the system's time zone");
        writeln!(out, "{STRONG}{cron}{STRONG:#} in {zone}, after {}", self.show(from))?;
        let kind = match cron.repeats_within_the_day() {
            true => "It repeats within the day: where the clock jumps it goes on by real time",
            false => "It has fixed times of day: each runs once a day, also where the clock jumps",
        };
        writeln!(out, "{kind}\n")?;
        if runs.is_empty() {
            return writeln!(out, "  no run after that: look at its year");
        }
        self.runs(out)?;
        self.jumps(out)
    }

    fn runs(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let Preview { from, runs, .. } = self.preview;
        let far: Vec<String> = runs.iter().map(|run| distance(from, run)).collect();
        let width = far.iter().map(String::len).max().unwrap_or(0);
        for (run, far) in runs.iter().zip(&far) {
            let utc = run.timestamp().strftime(if self.seconds { "%F %TZ" } else { "%F %H:%MZ" });
            write!(out, "  {STRONG}{}{STRONG:#}   {utc}   in ", self.show(run))?;
            match self.note(run) {
                Some(note) => writeln!(out, "{far:<width$}   {JUMP}{note}{JUMP:#}")?,
                None => writeln!(out, "{far}")?,
            }
        }
        Ok(())
    }

    /// What is unusual about a run.
    fn note(&self, run: &Zoned) -> Option<String> {
        let Preview { cron, jumps, .. } = self.preview;
        let at = |jump: &&Jump| jump.at == run.timestamp() && jump.is_gap() && !jump.no_such_day;
        if let Some(gap) = jumps.iter().find(at).filter(|_| !cron.repeats_within_the_day()) {
            return Some(format!("gap: for {}", time_of(gap, gap.first)));
        }
        match cron.zone().to_ambiguous_timestamp(run.datetime()).offset() {
            AmbiguousOffset::Fold { before, .. } if run.offset() == before => {
                Some("fold: the first time".to_owned())
            }
            AmbiguousOffset::Fold { .. } => Some("fold: the second time".to_owned()),
            _ => None,
        }
    }

    fn jumps(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let Preview { cron, from, jumps, .. } = self.preview;
        writeln!(out, "\nWhere the clock jumps")?;
        if let Some(last) = jumps.last() {
            jumps.iter().take(TOLD).try_for_each(|jump| self.jump(out, jump))?;
            return match jumps.len().saturating_sub(TOLD) {
                0 => Ok(()),
                more => {
                    writeln!(out, "  and {more} more until {}", last.range().0.strftime("%a %F"))
                }
            };
        }
        match cron.zone().following(from.timestamp()).take(LOOKED_AT).count() {
            0 => writeln!(out, "  the clock of this zone does not jump any more"),
            1 => writeln!(out, "  it jumps once more, and not at a time of this expression"),
            count => {
                writeln!(out, "  none of its next {count} jumps is at a time of this expression")
            }
        }
    }

    fn jump(&self, out: &mut Vec<u8>, jump: &Jump) -> io::Result<()> {
        let Preview { cron, from, .. } = self.preview;
        let far = distance(from, &jump.at.to_zoned(cron.zone().clone()));
        let (first, last) = jump.range();
        let date = format!("  {}, in {far}   ", first.strftime("%a %F"));
        let (word, is) = match jump.is_gap() {
            true => ("gap", "does not exist"),
            false => ("fold", "comes twice"),
        };
        let (from, to) = (time_of(jump, first), time_of(jump, last));
        writeln!(out, "{date}{JUMP}{word}: {from} to {to} {is}{JUMP:#}")?;
        let (time, end) = (time_of(jump, jump.first), time_of(jump, jump.after));
        let runs = match (jump.is_gap(), cron.repeats_within_the_day(), jump.more) {
            (true, false, _) if jump.no_such_day => "a day that is left out has no runs".to_owned(),
            (true, false, false) => format!("{time} runs when the gap ends, at {end}"),
            (true, false, true) => format!("its times there are one run, at {end}"),
            (true, true, _) => "its times there are left out".to_owned(),
            (false, false, false) => format!("{time} runs the first time only"),
            (false, false, true) => "its times there run the first time only".to_owned(),
            (false, true, _) => "it runs both times".to_owned(),
        };
        writeln!(out, "{:width$}{runs}", "", width = date.chars().count())
    }

    /// The weekday, the date, the time and the offset.
    fn show(&self, time: &Zoned) -> String {
        time.strftime(if self.seconds { "%a %F %T %:z" } else { "%a %F %H:%M %:z" }).to_string()
    }
}

/// The time of day, with seconds if they are not zero, and with the date if the jump crosses midnight.
fn time_of(jump: &Jump, time: DateTime) -> String {
    let (first, last) = jump.range();
    let clock = if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    let is_one_day = first.date() == last.date();
    let format = if is_one_day { clock.to_owned() } else { format!("%F {clock}") };
    time.strftime(&format).to_string()
}

/// The distance between two moments, in its two largest units.
fn distance(from: &Zoned, to: &Zoned) -> String {
    let mut left = from.duration_until(to).as_secs();
    let mut parts = Vec::new();
    for (seconds, unit) in [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")] {
        if left >= seconds && parts.len() < 2 {
            parts.push(format!("{}{unit}", left / seconds));
            left %= seconds;
        } else if !parts.is_empty() {
            break;
        }
    }
    if parts.is_empty() { "less than 1s".to_owned() } else { parts.join(" ") }
}
