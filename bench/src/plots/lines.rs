//! Cost against population: a line for each contestant, both axes logarithmic, the names at the ends of the lines.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::bars::{colour, text, written};
use super::{FAINT, GRID, INK, OURS, PAPER, PEERS, THEIRS};
use crate::cli;
use crate::league::Kind;
use crate::league::report::{Line, Sheet};

const WIDTH: i32 = 720;
const HEIGHT: i32 = 520;
/// The area of the lines.
const LEFT: i32 = 76;
const RIGHT: i32 = 440;
const TOP: i32 = 96;
const BOTTOM: i32 = 440;
/// The minimum distance between names.
const APART: i32 = 24;

/// A line: its name, its colour, and its points.
struct Drawn {
    name: String,
    paint: (u8, u8, u8),
    wide: bool,
    points: Vec<(f64, f64)>,
}

/// `None` if nothing was measured.
pub fn cost(sheet: &Sheet, title: &str, source: &str) -> Option<Result<String, String>> {
    let lines = drawn(sheet);
    let points: Vec<(f64, f64)> = lines.iter().flat_map(|line| line.points.clone()).collect();
    if points.is_empty() {
        return None;
    }
    let mut svg = String::new();
    let size = (WIDTH as u32, HEIGHT as u32);
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let painted = paint(&area, &lines, &points, (title, source));
    drop(area);
    Some(painted.map(|()| svg).map_err(|error| error.to_string()))
}

fn drawn(sheet: &Sheet) -> Vec<Drawn> {
    let mut peers = PEERS.iter().cycle();
    let points = |line: &Line| -> Vec<(f64, f64)> {
        let columns = sheet.columns.iter().enumerate();
        columns
            .filter_map(|(at, column)| Some((column.timers as f64, sheet.value(line, at)?)))
            .filter(|point| point.0 > 0.0 && point.1 > 0.0)
            .collect()
    };
    let lines = sheet.lines.iter().filter(|line| line.kind != Kind::Baseline);
    lines
        .map(|line| {
            let paint = match line.kind {
                Kind::Ours => OURS,
                Kind::Floor | Kind::Baseline => THEIRS,
                Kind::Peer => *peers.next().unwrap_or(&THEIRS),
            };
            let (name, points) = (line.contestant.clone(), points(line));
            Drawn { name, paint, wide: first_of_ours(sheet, line), points }
        })
        .filter(|line| !line.points.is_empty())
        .collect()
}

/// Whether this is the first of our lines, which is drawn wider than the others.
fn first_of_ours(sheet: &Sheet, line: &Line) -> bool {
    let first = sheet.lines.iter().find(|line| line.kind == Kind::Ours);
    first.is_some_and(|first| std::ptr::eq(first, line))
}

/// The position of a value between two others on a logarithmic axis, as a fraction.
fn share(value: f64, least: f64, most: f64) -> f64 {
    if most > least { (value / least).ln() / (most / least).ln() } else { 0.5 }
}

fn paint(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    lines: &[Drawn],
    points: &[(f64, f64)],
    (title, source): (&str, &str),
) -> Result<(), Box<dyn std::error::Error>> {
    let least = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let across = (least(|point| point.0), most(|point| point.0));
    let up = (least(|point| point.1) * 0.8, most(|point| point.1) * 1.2);
    let x =
        |timers: f64| LEFT + (share(timers, across.0, across.1) * f64::from(RIGHT - LEFT)) as i32;
    let y = |cost: f64| BOTTOM - (share(cost, up.0, up.1) * f64::from(BOTTOM - TOP)) as i32;
    area.fill(&colour(PAPER))?;
    area.draw_text(title, &text(28, INK), (16, 14))?;
    area.draw_text("ns, against timers pending; lower is better", &text(20, FAINT), (16, 50))?;
    for mark in marks(up) {
        let height = y(mark);
        area.draw(&PathElement::new(vec![(LEFT, height), (RIGHT, height)], colour(GRID)))?;
        let style = text(18, FAINT).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(&written(mark), &style, (LEFT - 10, height))?;
    }
    let mut decade = across.0;
    while decade <= across.1 * 1.01 {
        let style = text(18, FAINT).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw_text(&cli::written(decade.round() as usize), &style, (x(decade), BOTTOM + 10))?;
        decade *= 10.0;
    }
    for line in lines {
        let path: Vec<(i32, i32)> =
            line.points.iter().map(|&(at, cost)| (x(at), y(cost))).collect();
        let width = if line.wide { 4 } else { 2 };
        let style = colour(line.paint).stroke_width(width);
        area.draw(&PathElement::new(path.clone(), style))?;
        for point in path {
            let size = if line.wide { 5 } else { 3 };
            area.draw(&Circle::new(point, size, colour(line.paint).filled()))?;
        }
    }
    names(area, lines, &x, &y)?;
    area.draw_text(source, &text(16, FAINT), (16, HEIGHT - 28))?;
    area.present()?;
    Ok(())
}

/// 1, 2, 5, 10, 20, 50, … within the axis.
fn marks((least, most): (f64, f64)) -> impl Iterator<Item = f64> {
    let decades =
        (-3..12).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    let wide = most / least > 200.0;
    decades.filter(move |&mark| {
        let is_power = (mark.log10() - mark.log10().round()).abs() < 1e-9;
        mark >= least && mark <= most && (!wide || is_power)
    })
}

/// Draws the name of each line at its right end. Names that would overlap are pushed apart.
fn names(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    lines: &[Drawn],
    x: &impl Fn(f64) -> i32,
    y: &impl Fn(f64) -> i32,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut ends: Vec<(i32, i32, &Drawn)> = lines
        .iter()
        .filter_map(|line| line.points.last().map(|&(at, cost)| (y(cost), x(at), line)))
        .collect();
    ends.sort_by_key(|end| end.0);
    let wanted: Vec<i32> = ends.iter().map(|end| end.0).collect();
    let mut placed = wanted.clone();
    for nth in 1..placed.len() {
        placed[nth] = placed[nth].max(placed[nth - 1] + APART);
    }
    // Names pushed below the area move up again.
    let mut limit = BOTTOM + 20;
    for place in placed.iter_mut().rev() {
        *place = (*place).min(limit);
        limit = *place - APART;
    }
    for ((end, height), place) in ends.iter().zip(wanted).zip(placed) {
        let link = vec![(end.1 + 6, height), (RIGHT + 14, place)];
        area.draw(&PathElement::new(link, colour(end.2.paint)))?;
        let style = text(18, end.2.paint).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(&end.2.name, &style, (RIGHT + 18, place))?;
    }
    Ok(())
}
