//! The plots: SVG files that can be read without the text around them, on a phone, on light and on dark pages.
//!
//! Each says whether more or less is better, has names next to its lines or bars, and the processor's name below.
//! Colours are attributes that a style sheet inside the file overrides on dark pages. Our contestants have one strong
//! colour.

mod bars;
mod lines;

use std::path::Path;

use crate::league::Kind;
use crate::league::report::{Line, Report, Sheet};
use bars::{Bar, Bars};

/// The line below every plot: the source of the figures.
fn source(report: &Report) -> String {
    let quick = if report.quick { ", a quick run" } else { "" };
    format!("{}, {} cores · {}{quick}", report.machine.cpu, report.machine.cores, report.date)
}

/// The operations whose cost is drawn against the population.
const COSTS: [(&str, &str); 6] = [
    ("start", "Start a timer"),
    ("random", "Cancel + start a random timer"),
    ("in-order", "Cancel + start the oldest timer"),
    ("reschedule", "Reschedule a random timer"),
    ("cancel", "Cancel a random timer"),
    ("life", "A timer's whole life, start to fire"),
];

/// Draws every plot that the report has figures for.
///
/// # Errors
///
/// The folder cannot be written.
pub fn draw(report: &Report, folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let write = |name: &str, svg: Option<Result<String, String>>| {
        let Some(svg) = svg.transpose()? else { return Ok(()) };
        let path = folder.join(format!("{name}.svg"));
        std::fs::write(&path, themed(&svg)).map_err(|error| format!("{}: {error}", path.display()))
    };
    let source = source(report);
    for (figure, title) in COSTS {
        let sheet = report.sheet("wheel", figure);
        write(
            &format!("wheel-{figure}"),
            sheet.and_then(|sheet| lines::cost(sheet, title, &source)),
        )?;
    }
    let bars = |sheet: Option<&Sheet>, title: &str, unit: &str, column: Column<'_>| {
        let bars: Vec<Bar> = sheet.map_or(Vec::new(), |sheet| of(sheet, column));
        let (title, unit) = (title.to_owned(), unit.to_owned());
        (!bars.is_empty()).then(|| Bars { title, unit, bars, source: source.clone() }.draw())
    };
    let pair = report.sheet("timer", "pair");
    write("timer-threads", threads(pair, &source))?;
    let first: Column<'_> = &|_, at| (at == 0).then(String::new);
    let fire = report.sheet("timer", "fire-cpu");
    let title = "CPU per fired timer, 1 M over 4 s";
    write("timer-fire", bars(fire, title, "ns, less is better", first))?;
    let idle = report.sheet("timer", "idle-switches");
    let title = "Wake-ups a second with nothing to do";
    write("timer-idle", bars(idle, title, "one timer, an hour away; none is best", first))?;
    let late = report.sheet("timer", "late-p99");
    let title = "Lateness, 99 of 100 at 100 k a second";
    write("timer-lateness", bars(late, title, "µs at most, less is better", first))?;
    let million: Column<'_> =
        &|sheet, at| (sheet.columns[at].timers == 1_000_000).then(String::new);
    let memory = report.sheet("wheel", "filled");
    let title = "Memory per timer, a wheel with 1 M";
    write("wheel-memory", bars(memory, title, "bytes, less is better", million))?;
    let pause = report.sheet("wheel", "longest");
    let title = "Longest pause of a wheel with 1 M";
    write("wheel-pause", bars(pause, title, "µs of one advance, less is better", million))?;
    let call = report.sheet("timer", "longest-cancel");
    let title = "Longest single cancel, 1 M pending";
    write("timer-pause", bars(call, title, "µs, least of the rounds; less is better", million))
}

/// Selects the columns that have a bar, and returns the suffix for the contestant's name.
type Column<'a> = &'a dyn Fn(&Sheet, usize) -> Option<String>;

/// A bar for each contestant and column, the best first.
fn of(sheet: &Sheet, column: Column<'_>) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for line in &sheet.lines {
        for at in 0..sheet.columns.len() {
            let (Some(more), Some(value)) = (column(sheet, at), sheet.value(line, at)) else {
                continue;
            };
            bars.push(Bar {
                name: format!("{}{more}", line.contestant),
                value,
                ours: is_ours(line),
            });
        }
    }
    bars.sort_by(|left, right| left.value.total_cmp(&right.value));
    bars
}

fn is_ours(line: &Line) -> bool {
    line.kind == Kind::Ours
}

/// Pairs per second against threads, at the sheet's largest population.
fn threads(sheet: Option<&Sheet>, source: &str) -> Option<Result<String, String>> {
    let sheet = sheet?;
    let most = sheet.columns.iter().map(|column| column.timers).max()?;
    let mut bars = Vec::new();
    for line in &sheet.lines {
        for (at, column) in sheet.columns.iter().enumerate() {
            let Some(value) = sheet.value(line, at).filter(|_| column.timers == most) else {
                continue;
            };
            let name = format!("{}, {} thr.", line.contestant, column.threads);
            bars.push(Bar { name, value: 1000.0 / value, ours: is_ours(line) });
        }
    }
    let title = "Schedule + cancel, 1 M pending".to_owned();
    let unit = "million pairs a second, more is better".to_owned();
    (!bars.is_empty()).then(|| Bars { title, unit, bars, source: source.to_owned() }.draw())
}

/// The colours on a light page. A dark page has another for each.
const INK: (u8, u8, u8) = (0x1f, 0x23, 0x28);
const FAINT: (u8, u8, u8) = (0x6e, 0x77, 0x81);
const GRID: (u8, u8, u8) = (0xd8, 0xde, 0xe4);
const PAPER: (u8, u8, u8) = (0xff, 0xff, 0xff);
const OURS: (u8, u8, u8) = (0xd1, 0x4b, 0x00);
const THEIRS: (u8, u8, u8) = (0x8c, 0x95, 0x9f);
/// The colours of peers' lines, which also have names.
const PEERS: [(u8, u8, u8); 6] = [
    (0x1f, 0x6f, 0xb4),
    (0x2b, 0x8a, 0x3e),
    (0x8e, 0x44, 0xad),
    (0xb0, 0x8a, 0x00),
    (0x00, 0x80, 0x80),
    (0xc2, 0x2f, 0x6b),
];
const DARK: [((u8, u8, u8), &str); 12] = [
    (INK, "#f0f3f6"),
    (FAINT, "#9ea7b3"),
    (GRID, "#30363d"),
    (PAPER, "#0d1117"),
    (OURS, "#ff8a3d"),
    (THEIRS, "#6e7681"),
    (PEERS[0], "#58a6ff"),
    (PEERS[1], "#56d364"),
    (PEERS[2], "#d2a8ff"),
    (PEERS[3], "#e3b341"),
    (PEERS[4], "#39c5cf"),
    (PEERS[5], "#ff7eb6"),
];

/// Adds the style sheet of dark pages: rules for each colour, which override the attributes in the file.
fn themed(svg: &str) -> String {
    let mut rules = String::new();
    for ((red, green, blue), dark) in DARK {
        let light = format!("#{red:02X}{green:02X}{blue:02X}");
        rules += &format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    let style = format!("<style>@media (prefers-color-scheme:dark){{{rules}}}</style>");
    match svg.split_once('>') {
        Some((head, rest)) => format!("{head}>{style}{rest}"),
        None => svg.to_owned(),
    }
}
