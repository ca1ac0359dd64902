//! Prints each sheet as a text table, including the rows that we lose.

use super::report::{Line, Report, Sheet};
use super::{Aim, Kind, Unit};
use crate::machine::Machine;
use crate::results::Summary;
use crate::table::Table;

/// On a quiet machine, threads wait for a core less than this share of their time.
const QUIET: f64 = 0.03;

/// Prints the contestants of a family and their settings.
pub fn family(report: &Report, name: &str) {
    let Some(family) = report.families.iter().find(|family| family.name == name) else { return };
    let mut table = Table::new(format!("## {name}: {}", family.about), vec!["contestant".into()]);
    for contender in &family.contestants {
        let remark = match &contender.missing {
            Some(why) => format!("MISSING: {why}"),
            None => contender.settings.clone(),
        };
        table.row(vec![contender.name.clone()], remark);
    }
    table.print();
}

pub fn sheet(report: &Report, sheet: &Sheet) {
    if sheet.is_empty() {
        return;
    }
    let cpu = &report.machine.cpu;
    let mut header = vec![format!("{} · {cpu}", sheet.unit.name())];
    let titles = sheet.columns.iter().map(|column| column.title(&sheet.columns));
    header.extend(titles);
    let single = sheet.columns.len() == 1;
    if single {
        header.truncate(1);
        header.extend(["value", "least", "most"].map(str::to_owned));
    }
    let mut table = Table::new(sheet.title.clone(), header);
    for line in &sheet.lines {
        let mut cells = vec![line.contestant.clone()];
        let columns = 0..sheet.columns.len();
        cells.extend(columns.clone().map(|column| cell(sheet, line, column)));
        let samples = line.cells.first().map_or(&[][..], |cell| &cell.samples);
        if single && !samples.is_empty() {
            let Summary { min, max, .. } = Summary::of(samples);
            cells.extend([min, max].map(|value| number(value, sheet.unit)));
        }
        let absent = line.cells.iter().find_map(|cell| cell.absent.clone());
        let empty = columns.clone().all(|column| sheet.value(line, column).is_none());
        if empty && absent.is_none() {
            continue;
        }
        let faults = faults(report, &sheet.family, &line.contestant);
        table.row(cells, absent.filter(|_| empty).unwrap_or(faults));
    }
    let reference = sheet.reference.as_deref().unwrap_or("best peer (*)");
    for line in sheet.lines.iter().filter(|line| line.kind == Kind::Ours) {
        let columns = 0..sheet.columns.len();
        let ratios: Vec<Option<f64>> =
            columns.clone().map(|column| sheet.ratio(line, column)).collect();
        let aims: Vec<String> = columns.filter_map(|column| judged(sheet, line, column)).collect();
        if ratios.iter().any(Option::is_some) || !aims.is_empty() {
            let mut cells = vec![format!("{} / {reference}", line.contestant)];
            cells.extend(ratios.into_iter().map(|it| it.map_or("–".to_owned(), ratio)));
            table.row(cells, aims.join("; "));
        }
    }
    table.print();
}

fn cell(sheet: &Sheet, line: &Line, column: usize) -> String {
    let Some(value) = sheet.value(line, column) else { return "–".to_owned() };
    let best = sheet.best_peer(column).is_some_and(|(best, _)| std::ptr::eq(best, line));
    let star = if best && sheet.reference.is_none() { "*" } else { "" };
    format!("{star}{}", number(value, sheet.unit))
}

fn judged(sheet: &Sheet, line: &Line, column: usize) -> Option<String> {
    let (aim, value, met) = sheet.verdict(line, column)?;
    let text = match aim {
        Aim::Share(most) => format!("{value:.2} ≤ {most}"),
        Aim::AtMost(most) => format!("{} ≤ {most}", number(value, sheet.unit)),
        Aim::AtLeast(least) => format!("{} ≥ {least}", number(value, sheet.unit)),
    };
    Some(if met { text } else { format!("MISSED {text}") })
}

fn faults(report: &Report, family: &str, name: &str) -> String {
    let family = report.families.iter().find(|it| it.name == family);
    let contender = family.and_then(|it| it.contestants.iter().find(|it| it.name == name));
    let faults = contender.map_or("", |contender| &contender.faults);
    if faults.is_empty() { String::new() } else { format!("({faults})") }
}

/// Prints how many targets were met and rows lost, who is missing, and whether the machine was quiet.
pub fn summing_up(report: &Report) {
    let (mut aims, mut met, mut lost) = (0, 0, 0);
    for sheet in &report.sheets {
        for line in &sheet.lines {
            for column in 0..sheet.columns.len() {
                let verdict = sheet.verdict(line, column);
                aims += usize::from(verdict.is_some());
                met += usize::from(verdict.is_some_and(|(_, _, met)| met));
                lost += usize::from(sheet.loses(line, column));
            }
        }
    }
    let Machine { cpu, cores, memory_gib, .. } = &report.machine;
    println!("\n{cpu}, {cores} cores, {memory_gib:.1} GiB; {}", report.date);
    println!(
        "{met} of {aims} aims met; {lost} cells in which the best peer is better than one of ours"
    );
    for contender in report.families.iter().flat_map(|family| &family.contestants) {
        if let Some(why) = &contender.missing {
            println!("missing: {}: {why}", contender.name);
        }
    }
    if let Some(waited) = report.waits.share() {
        let remark = if waited > QUIET { ": the machine was BUSY, compare no times" } else { "" };
        let percent = waited * 100.0;
        println!("threads that measured waited for a core {percent:.1} % of the time{remark}");
    }
    if report.ended_early {
        println!("ended early: rows that did not run are missing");
    }
}

pub fn number(value: f64, unit: Unit) -> String {
    match value.abs() {
        large if unit == Unit::Rate && large >= 1e5 => format!("{:.2} M", value / 1e6),
        small if small < 10.0 && small != small.trunc() => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

pub fn ratio(value: f64) -> String {
    if value < 0.1 { format!("{value:.4}") } else { format!("{value:.2}") }
}
