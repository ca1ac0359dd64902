//! The report as Markdown, which `--publish` writes between two marks in `BENCHMARKS.md`.
//!
//! First come the rows in which a peer is better than one of ours, then all sheets. Rows that we lose are bold, and
//! each header has the processor's name.

use std::collections::BTreeSet;
use std::path::Path;

use super::Kind;
use super::report::{Line, Report, Sheet};
use super::show::{number, ratio};

const BEGIN: &str = "<!-- begin: written by `bench --publish` -->";
const END: &str = "<!-- end: written by `bench --publish` -->";

/// Replaces the text between the marks of a page.
///
/// # Errors
///
/// The page cannot be read or written, or has no marks.
pub fn write(report: &Report, page: &Path, plots: Option<&Path>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", page.display());
    let text = std::fs::read_to_string(page).map_err(wrong)?;
    let marks = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = marks.ok_or(format!("{}: no marks `{BEGIN}`", page.display()))?;
    let made = markdown(report, plots);
    std::fs::write(page, format!("{before}{BEGIN}\n{made}{END}{after}")).map_err(wrong)
}

fn markdown(report: &Report, plots: Option<&Path>) -> String {
    let machine = &report.machine;
    let mut text = format!(
        "\n{}, {} cores, {:.0} GiB, {} {}. {}, by `{}`.",
        machine.cpu,
        machine.cores,
        machine.memory_gib,
        machine.os,
        machine.arch,
        report.date,
        report.command
    );
    if let Some(waited) = report.waits.share() {
        text += &format!(
            " Threads that measured waited for a core {:.1} % of the time.",
            waited * 100.0
        );
    }
    text += "\n\n## Where we lose\n\nEvery row in which the best peer is better than one of ours, by over 1 %.\n\n";
    text += &format!("| {} | ours / best peer | best peer |\n|---|---|---|\n", machine.cpu);
    for sheet in &report.sheets {
        lost(sheet, &mut text);
    }
    let missing: Vec<String> = report
        .families
        .iter()
        .flat_map(|family| &family.contestants)
        .filter_map(|it| Some(format!("{} ({})", it.name, it.missing.as_ref()?)))
        .collect();
    if !missing.is_empty() {
        text += &format!("\nNot in this run: {}.\n", missing.join("; "));
    }
    for family in &report.families {
        text += &format!("\n## {}\n\n{}.\n\n", family.name, family.about);
        for contender in family.contestants.iter().filter(|it| it.missing.is_none()) {
            let faults = match contender.faults.as_str() {
                "" => String::new(),
                faults => format!(" **Beside the oracle: {faults}.**"),
            };
            text += &format!("- {}: {}.{faults}\n", contender.name, contender.settings);
        }
        text += &images(plots, &family.name);
        for sheet in report.sheets.iter().filter(|it| it.family == family.name && it.row != "trace")
        {
            table(sheet, &machine.cpu, &mut text);
        }
    }
    text
}

/// Adds a line for a sheet that we lose somewhere: our losing contestants with their ratios, and the better peers.
fn lost(sheet: &Sheet, text: &mut String) {
    let (mut ours, mut peers) = (Vec::new(), BTreeSet::new());
    for line in &sheet.lines {
        let lost = (0..sheet.columns.len()).filter(|&at| sheet.loses(line, at));
        let cells: Vec<String> = lost.filter_map(|at| cell(sheet, line, at, &mut peers)).collect();
        if !cells.is_empty() {
            let name = line.contestant.trim_start_matches("tourbillon ");
            ours.push(format!("{name}: {}", cells.join(", ")));
        }
    }
    if !ours.is_empty() {
        let peers: Vec<&str> = peers.into_iter().collect();
        let (title, peers) = (sheet.title.trim(), peers.join(", "));
        *text += &format!("| {title} | {} | {peers} |\n", ours.join("<br>"));
    }
}

fn cell<'s>(
    sheet: &'s Sheet,
    line: &Line,
    at: usize,
    peers: &mut BTreeSet<&'s str>,
) -> Option<String> {
    let (ours, (best, value)) = (sheet.value(line, at)?, sheet.best_peer(at)?);
    peers.insert(&best.contestant);
    let place = match sheet.columns.as_slice() {
        [_] => String::new(),
        several => format!(" at {}", several[at].title(several)),
    };
    let times = if value == 0.0 { String::new() } else { format!(" = {}", ratio(ours / value)) };
    let (ours, value) = (number(ours, sheet.unit), number(value, sheet.unit));
    Some(format!("{ours} / {value}{times}{place}"))
}

/// The plots of a family, each with its name as its alternative text.
fn images(plots: Option<&Path>, family: &str) -> String {
    let Some(folder) = plots else { return String::new() };
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(&format!("{family}-")) && name.ends_with(".svg"))
        .collect();
    names.sort();
    let image = |name: &String| {
        let words = name.trim_end_matches(".svg").replace('-', " ");
        format!("\n<img src=\"{}\" alt=\"{words}\" width=\"480\">", folder.join(name).display())
    };
    names.iter().map(image).collect::<String>() + "\n"
}

fn table(sheet: &Sheet, cpu: &str, text: &mut String) {
    let columns = 0..sheet.columns.len();
    let titles: Vec<String> = match sheet.columns.as_slice() {
        [_] => vec![sheet.unit.name().to_owned()],
        several => several.iter().map(|column| column.title(several)).collect(),
    };
    let name = sheet.reference.as_deref().unwrap_or("best peer");
    *text +=
        &format!("\n**{}**\n\n| {cpu} | {} | / {name} |\n", sheet.title.trim(), titles.join(" | "));
    *text += &format!("|---{}|---|\n", "|---:".repeat(titles.len()));
    for line in &sheet.lines {
        let values = columns.clone().map(|at| match sheet.value(line, at) {
            Some(value) if sheet.loses(line, at) => format!("**{}**", number(value, sheet.unit)),
            Some(value) => number(value, sheet.unit),
            None => "–".to_owned(),
        });
        let values: Vec<String> = values.collect();
        if values.iter().all(|value| value == "–") {
            continue;
        }
        let ratios: Vec<String> =
            columns.clone().filter_map(|at| sheet.ratio(line, at)).map(ratio).collect();
        let ratios = if line.kind == Kind::Ours { ratios.join(" · ") } else { String::new() };
        *text += &format!("| {} | {} | {ratios} |\n", line.contestant, values.join(" | "));
    }
}
