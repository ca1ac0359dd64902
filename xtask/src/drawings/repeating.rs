//! The timelines of a repeating timer whose second run takes too long: at a fixed rate and with a fixed delay.
//!
//! The period and the pause are both one second. A short run takes 0.4 s, the long one 2.5 s. Times are in tenths of a
//! second here.

use super::svg::{AMBER, BLUE, INK, Svg, WIDTH};

const SECOND: u32 = 10;
const LONG: u32 = 25;
const SHORT: u32 = 4;
/// The end of the drawn timeline.
const END: u32 = 77;

/// What happens to missed runs.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Burst,
    Skip,
    Delay,
    AfterEach,
}

/// One run: when it was due, began and ended.
struct Run {
    due: u32,
    began: u32,
    ended: u32,
}

/// The runs of a timer that starts at zero, and the skipped moments.
fn runs(rule: Rule) -> (Vec<Run>, Vec<u32>) {
    let (mut runs, mut left_out) = (Vec::new(), Vec::new());
    let (mut due, mut free) = (SECOND, 0);
    while due.max(free) < END {
        let began = due.max(free);
        let ended = began + if runs.len() == 1 { LONG } else { SHORT };
        runs.push(Run { due, began, ended });
        free = ended;
        let missed = (1..).map(|nth| due + nth * SECOND).take_while(|&moment| moment < ended);
        let missed: Vec<u32> = missed.collect();
        due = match rule {
            Rule::AfterEach => ended + SECOND,
            Rule::Delay if !missed.is_empty() => ended + SECOND,
            Rule::Skip => due + SECOND * (missed.len() as u32 + 1),
            Rule::Burst | Rule::Delay => due + SECOND,
        };
        if matches!(rule, Rule::Skip | Rule::Delay) {
            left_out.extend(missed);
        }
    }
    (runs, left_out)
}

pub(super) fn draw() -> String {
    let title = "Timelines of a repeating timer whose second run takes 2.5 seconds. At a fixed rate of one second, \
         Burst makes up for the missed runs at once, Skip leaves them out and keeps the rhythm, Delay leaves them out \
         and begins a new rhythm. With a fixed delay, one second passes between two runs.";
    let mut svg = Svg::new(374.0, title);
    heading(&mut svg, 18.0, "Fixed rate", "Repeat::every(second)");
    for second in 0..=END / SECOND {
        let x = across(second * SECOND);
        let anchor = if second == 0 { "" } else { "text-anchor=\"middle\" " };
        let unit = if second == 0 { " s" } else { "" };
        svg.text((x, 38.0), &format!("{anchor}font-size=\"12\""), &format!("{second}{unit}"));
    }
    row(&mut svg, 58.0, "Missed::Burst", "late runs follow at once", Rule::Burst);
    row(&mut svg, 120.0, "Missed::Skip", "the rhythm stays", Rule::Skip);
    row(&mut svg, 182.0, "Missed::Delay", "a new rhythm begins", Rule::Delay);
    heading(&mut svg, 264.0, "Fixed delay", "Repeat::after_each(second)");
    row(&mut svg, 286.0, "", "one second between two runs", Rule::AfterEach);
    legend(&mut svg, 356.0);
    svg.finish()
}

/// The horizontal position of a moment.
fn across(tenths: u32) -> f64 {
    10.0 + f64::from(tenths) * (WIDTH - 20.0) / f64::from(END)
}

fn heading(svg: &mut Svg, y: f64, name: &str, code: &str) {
    svg.text((10.0, y), "font-size=\"15\" font-weight=\"bold\"", name);
    svg.text((104.0, y), "font-family=\"monospace\" font-size=\"13\"", code);
}

/// Draws the name of a rule, and the runs under it.
fn row(svg: &mut Svg, y: f64, name: &str, words: &str, rule: Rule) {
    let mut x = 10.0;
    if !name.is_empty() {
        svg.text((x, y), "font-family=\"monospace\" font-size=\"13\"", name);
        x = 122.0;
    }
    svg.text((x, y), "", words);
    let (runs, left_out) = runs(rule);
    let top = y + 18.0;
    for second in (1..=END / SECOND).filter(|_| rule != Rule::AfterEach) {
        let (x, faint) =
            (across(second * SECOND), "stroke-opacity=\".4\" stroke-dasharray=\"2 3\"");
        svg.line((x, top - 11.0), (x, top + 20.0), &format!("stroke=\"{INK}\" {faint}"));
    }
    for run in &runs {
        bar(svg, (across(run.began), across(run.ended.min(END))), top, run.began > run.due);
    }
    for moment in left_out {
        cross(svg, (across(moment), top - 6.0));
    }
    if rule == Rule::AfterEach {
        let mut from = 0;
        for run in &runs {
            pause(svg, across(from), across(run.began), top + 7.0);
            from = run.ended;
        }
    }
}

/// A run: filled if it is on time, an outline if it is late.
fn bar(svg: &mut Svg, (from, to): (f64, f64), top: f64, late: bool) {
    let (inset, fill) = if late { (1.0, "none") } else { (0.0, BLUE) };
    let stroke =
        if late { format!(" stroke=\"{AMBER}\" stroke-width=\"2\"") } else { String::new() };
    let [x, y, width, height] =
        [from + inset, top + inset, to - from - 2.0 * inset, 14.0 - 2.0 * inset]
            .map(super::svg::short);
    svg.element(&format!(
        "rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\" fill=\"{fill}\"{stroke}"
    ));
}

/// A skipped moment.
fn cross(svg: &mut Svg, (x, y): (f64, f64)) {
    for side in [-3.5, 3.5] {
        let stroke = format!("stroke=\"{AMBER}\" stroke-width=\"2\"");
        svg.line((x - 3.5, y - side), (x + 3.5, y + side), &stroke);
    }
}

/// The pause between two runs.
fn pause(svg: &mut Svg, from: f64, to: f64, y: f64) {
    svg.arrow(&[(from + 2.0, y), (to - 2.0, y)], INK);
}

fn legend(svg: &mut Svg, y: f64) {
    let top = y - 11.0;
    bar(svg, (10.0, 30.0), top, false);
    svg.text((36.0, y), "", "a run");
    bar(svg, (100.0, 120.0), top, true);
    svg.text((126.0, y), "", "a late run");
    cross(svg, (222.0, y - 4.5));
    svg.text((232.0, y), "", "a run left out");
}
