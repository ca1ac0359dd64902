//! The run: fills every cell of every sheet in several rounds, alternating the contestants.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::SystemTime;

use indicatif::{ProgressBar, ProgressStyle};

use super::report::{Contender, Listed, Report};
use super::turn::Running;
use super::{Column, Contestant, Family, Kind, Row, Turn, show};
use crate::cli::{League, written};
use crate::machine;
use crate::system::Waits;

/// Set by Ctrl-C. The samples so far are kept.
static ENDED: AtomicBool = AtomicBool::new(false);

/// From this population on, runs take so long that there is only one round.
const MANY: usize = 10_000_000;

/// The row in which the trace of every contestant is compared with an oracle's.
pub const TRACE: &str = "trace";

/// Runs the requested rows. Prints each sheet when its row ends.
///
/// # Errors
///
/// No row matches the options.
pub fn run(asked: &League, families: &[Family]) -> Result<Report, String> {
    // The second Ctrl-C ends the process.
    let handler = || {
        if ENDED.swap(true, Relaxed) {
            std::process::exit(130);
        }
        eprintln!("\nending; what was measured is kept");
    };
    ctrlc::set_handler(handler).map_err(|error| error.to_string())?;
    let mut report = Report {
        machine: machine::describe(),
        command: std::env::args().skip(1).fold("bench".to_owned(), |all, word| all + " " + &word),
        date: humantime(SystemTime::now()),
        quick: asked.quick,
        ended_early: false,
        waits: Waits::default(),
        families: Vec::new(),
        sheets: Vec::new(),
    };
    let contests = contests(asked, families, &mut report)?;
    if asked.list {
        contests.iter().for_each(Contest::list);
        return Ok(report);
    }
    let bar = bar(contests.iter().map(|contest| contest.turns() as u64).sum());
    for contest in &contests {
        bar.suspend(|| show::family(&report, contest.family.name));
        for row in &contest.rows {
            contest.row(row, &mut report, &bar);
            let sheets = report.sheets.iter();
            let own = |it: &&_| is_of(it, contest.family, row);
            bar.suspend(|| sheets.filter(own).for_each(|sheet| show::sheet(&report, sheet)));
        }
    }
    bar.finish_and_clear();
    report.sheets.retain(|sheet| !sheet.is_empty());
    report.ended_early = ENDED.load(Relaxed);
    show::summing_up(&report);
    Ok(report)
}

fn is_of(sheet: &super::report::Sheet, family: &Family, row: &Row) -> bool {
    sheet.family == family.name && sheet.row == row.name && row.name != TRACE
}

/// The requested part of a family.
struct Contest<'a> {
    asked: &'a League,
    family: &'a Family,
    present: Vec<&'a Contestant>,
    rows: Vec<&'a Row>,
}

fn contests<'a>(
    asked: &'a League,
    families: &'a [Family],
    report: &mut Report,
) -> Result<Vec<Contest<'a>>, String> {
    let fits = |parts: &[String], name: &str| {
        parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
    };
    let mut contests = Vec::new();
    for family in families.iter().filter(|it| fits(&asked.families, it.name)) {
        let is_chosen = |row: &&Row| {
            let named = asked.rows.iter().any(|name| name == row.name);
            let left_out = row.optional || asked.quick && row.rounds[1] == 0;
            named || asked.rows.is_empty() && !left_out || row.name == TRACE
        };
        let rows: Vec<&Row> = family.rows.iter().filter(is_chosen).collect();
        if !rows.iter().any(|row| row.name != TRACE) && family.rows.iter().any(|r| r.name != TRACE)
        {
            continue;
        }
        let is_asked = |it: &&Contestant| fits(&asked.peers, it.name) || it.kind == Kind::Ours;
        let mut present = Vec::new();
        let mut contestants = Vec::new();
        for contestant in family.contestants.iter().filter(is_asked) {
            let missing = (contestant.missing)(asked);
            if missing.is_none() {
                present.push(contestant);
            }
            contestants.push(Contender {
                name: contestant.name.to_owned(),
                kind: contestant.kind,
                settings: contestant.settings.to_owned(),
                faults: String::new(),
                missing,
            });
        }
        let (name, about) = (family.name.to_owned(), family.about.to_owned());
        report.families.push(Listed { name, about, contestants });
        contests.push(Contest { asked, family, present, rows });
    }
    if contests.is_empty() {
        return Err("no row has such a name: `--list` names all".to_owned());
    }
    Ok(contests)
}

impl Contest<'_> {
    fn list(&self) {
        println!("{}: {}", self.family.name, self.family.about);
        for row in &self.rows {
            println!("  {}", row.name);
            row.figures.iter().for_each(|figure| println!("      {}", figure.title));
        }
        let names: Vec<&str> = self.family.contestants.iter().map(|it| it.name).collect();
        println!("  contestants: {}", names.join(", "));
    }

    /// The number of rounds; 1 if the population is so large that a run takes a minute.
    fn rounds(&self, row: &Row, column: &Column) -> usize {
        let own = row.rounds[usize::from(self.asked.quick)].max(1);
        let asked = self.asked.rounds.filter(|_| row.rounds[0] > 1).map_or(own, usize::from);
        if column.timers >= MANY { 1 } else { asked }
    }

    fn turns(&self) -> usize {
        let turns = self.rows.iter().map(|row| {
            let turns = |column| {
                let takers = self.present.iter().filter(|it| takes_part(it, row, column));
                self.rounds(row, column) * takers.count()
            };
            row.columns(self.asked).iter().map(turns).sum::<usize>()
        });
        turns.sum()
    }

    /// Runs all columns of a row. In each round every contestant runs once, a different one first.
    fn row(&self, row: &Row, report: &mut Report, bar: &ProgressBar) {
        let columns = row.columns(self.asked);
        report.open(self.family, row, &columns, &self.present);
        for column in &columns {
            for round in 0..self.rounds(row, column) {
                let mut order: Vec<&Contestant> =
                    self.present.iter().filter(|it| takes_part(it, row, column)).copied().collect();
                if order.is_empty() {
                    continue;
                }
                let first = round % order.len();
                order.rotate_left(first);
                let together = if row.at_once { order.len() } else { 1 };
                for group in order.chunks(together) {
                    if !ENDED.load(Relaxed) {
                        self.turn(row, column, group, report, bar);
                    }
                }
            }
            for contestant in &self.present {
                let why = (contestant.absent)(row.name, column);
                let shown = (row.admits)(contestant.kind, column) && !ENDED.load(Relaxed);
                if let Some(why) = why.filter(|_| shown) {
                    let at = (self.family.name, row.name);
                    report.add(at, column, contestant.name, Err(why.to_owned()));
                }
            }
        }
    }

    /// Runs a group of contestants at the same time.
    fn turn(
        &self,
        row: &Row,
        column: &Column,
        group: &[&Contestant],
        report: &mut Report,
        bar: &ProgressBar,
    ) {
        let start = |contestant: &&Contestant| {
            let name = contestant.name;
            bar.set_message(format!(
                "{} {} {}: {name}",
                self.family.name,
                row.name,
                written(column.timers)
            ));
            let turn = Turn {
                family: self.family.name.to_owned(),
                row: row.name.to_owned(),
                contestant: name.to_owned(),
                column: column.clone(),
                quick: self.asked.quick,
                jars: self.asked.jars(),
            };
            (name, Running::start(&turn))
        };
        let running: Vec<_> = group.iter().map(start).collect();
        for (name, running) in running {
            let outcome = running.and_then(Running::finish);
            // A run that Ctrl-C has ended is no result.
            if ENDED.load(Relaxed) && outcome.is_err() {
                return;
            }
            let readings = outcome.and_then(|outcome| {
                report.waits.add(outcome.waits);
                outcome.readings
            });
            if row.name == TRACE {
                note_faults(report, self.family.name, name, &readings);
            }
            report.add((self.family.name, row.name), column, name, readings);
            bar.inc(1);
        }
    }
}

fn takes_part(contestant: &Contestant, row: &Row, column: &Column) -> bool {
    (row.admits)(contestant.kind, column) && (contestant.absent)(row.name, column).is_none()
}

/// Records the faults that the trace of a contestant showed.
fn note_faults(
    report: &mut Report,
    family: &str,
    name: &str,
    readings: &Result<Vec<(String, f64)>, String>,
) {
    let family = report.families.iter_mut().find(|it| it.name == family);
    let contender = family.and_then(|it| it.contestants.iter_mut().find(|it| it.name == name));
    let Some(contender) = contender else { return };
    contender.faults = match readings {
        Ok(readings) => {
            let found = readings.iter().filter(|(_, count)| *count > 0.0);
            let found: Vec<String> = found.map(|(name, count)| format!("{count} {name}")).collect();
            found.join(", ")
        }
        Err(why) => why.clone(),
    };
}

/// A progress bar on stderr with an estimate, hidden if stderr is not a terminal.
///
/// It redraws only between runs and has no thread, so it does not disturb them.
fn bar(turns: u64) -> ProgressBar {
    let bar = ProgressBar::new(turns);
    let template = "{bar:25} {pos}/{len}  {elapsed_precise}, {eta} left  {msg}";
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// A moment in UTC, such as 2026-01-31 12:00.
fn humantime(now: SystemTime) -> String {
    let seconds = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    // Converts days to the civil calendar, with years of 365.2425 days that begin in March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}
