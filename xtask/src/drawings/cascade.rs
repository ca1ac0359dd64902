//! The dial of a cascade: a timer due at 247, on three levels of ten slots.
//!
//! With ten slots per level, the numbers of the slots that the timer waits in are the digits of its deadline. The
//! outermost ring is the lowest level, as on the live page.

use super::svg::{AMBER, BLUE, GREEN, INK, Svg, WIDTH, polyline, short};

const DUE: u32 = 247;
const SLOTS: u32 = 10;
const CENTRE: (f64, f64) = (WIDTH / 2.0, 180.0);
/// The inner and the outer radius of each level, lowest first, its colour, and the ticks that one slot covers.
const RINGS: [(f64, f64, &str, u32); 3] =
    [(125.0, 173.0, BLUE, 1), (74.0, 121.0, AMBER, 10), (28.0, 70.0, GREEN, 100)];

pub(super) fn draw() -> String {
    let title = "A dial of three rings with ten slots each. A timer due at 247 waits in slot 2 of the innermost \
         ring until 200, in slot 4 of the middle ring until 240, and in slot 7 of the outermost ring until it fires.";
    let mut svg = Svg::new(500.0, title);
    for (number, ring) in RINGS.iter().enumerate() {
        level(&mut svg, number + 1, *ring);
    }
    svg.text((CENTRE.0, CENTRE.1 - 2.0), "text-anchor=\"middle\" font-size=\"10\"", "due");
    let number = "text-anchor=\"middle\" font-size=\"14\" font-weight=\"bold\"";
    svg.text((CENTRE.0, CENTRE.1 + 12.0), number, &DUE.to_string());
    let places: Vec<(f64, f64)> = RINGS.iter().map(|&ring| place(ring)).collect();
    for upper in [2, 1] {
        way(&mut svg, places[upper], places[upper - 1], RINGS[upper - 1].2);
    }
    out(&mut svg, places[0]);
    for (upper, step) in [(2, 1), (1, 2), (0, 3)] {
        mark(&mut svg, at(places[upper]), RINGS[upper].2, step);
    }
    words(&mut svg);
    svg.finish()
}

/// The slot in which the timer waits on a level.
fn slot(ticks: u32) -> u32 {
    DUE / ticks % SLOTS
}

/// The middle of that slot: its radius, and its angle in turns from the top.
fn place((inner, outer, _, ticks): (f64, f64, &str, u32)) -> (f64, f64) {
    ((inner + outer) / 2.0, (f64::from(slot(ticks)) + 0.5) / f64::from(SLOTS))
}

/// The point at a radius and an angle, in turns from the top.
fn at((radius, turns): (f64, f64)) -> (f64, f64) {
    let (sin, cos) = (turns * std::f64::consts::TAU).sin_cos();
    (CENTRE.0 + radius * sin, CENTRE.1 - radius * cos)
}

/// Draws a ring: its numbered slots, with a shade over those that the hand has passed when the timer leaves.
fn level(svg: &mut Svg, number: usize, (inner, outer, colour, ticks): (f64, f64, &str, u32)) {
    let end = f64::from(slot(ticks)) / f64::from(SLOTS);
    let along = |radius: f64, from: f64, to: f64| {
        (0..=24).map(move |step| at((radius, from + (to - from) * f64::from(step) / 24.0)))
    };
    let sector = |from: f64, to: f64| {
        let points: Vec<_> = along(outer, from, to).chain(along(inner, to, from)).collect();
        polyline(&points)
    };
    let passed = sector(0.0, end);
    svg.element(&format!("path d=\"{passed}Z\" fill=\"{colour}\" fill-opacity=\".18\""));
    let here = sector(end, end + 1.0 / f64::from(SLOTS));
    svg.element(&format!("path d=\"{here}Z\" fill=\"{colour}\" fill-opacity=\".45\""));
    for radius in [inner, outer] {
        let (x, y, radius) = (short(CENTRE.0), short(CENTRE.1), short(radius));
        let circle = format!("circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"none\"");
        svg.element(&format!("{circle} stroke=\"{INK}\" stroke-opacity=\".35\""));
    }
    let small = if number == 3 { 10 } else { 12 };
    for slot in 0..SLOTS {
        let turns = f64::from(slot) / f64::from(SLOTS);
        let thin = format!("stroke=\"{INK}\" stroke-opacity=\".35\"");
        svg.line(at((inner, turns)), at((outer, turns)), &thin);
        // The level's name is in the middle of slot 0. The other slot numbers are off-centre, to leave room for marks
        // and arrows.
        let (name, middle) =
            if slot == 0 { (format!("L{number}[0]"), 0.5) } else { (slot.to_string(), 0.22) };
        let (x, y) = at((outer - 9.0, turns + middle / f64::from(SLOTS)));
        let middle = format!("text-anchor=\"middle\" font-size=\"{small}\"");
        svg.text((x, y + 4.0), &middle, &name);
    }
}

/// The path from one level to the next: a spiral that quickly moves away from the slot numbers, to leave them visible.
fn way(svg: &mut Svg, from: (f64, f64), to: (f64, f64), colour: &str) {
    let points: Vec<_> = (0..=40)
        .map(|step| f64::from(step) / 40.0)
        .map(|part| {
            let radius = from.0 + (to.0 - from.0) * part.powf(0.6);
            at((radius, from.1 + (to.1 - from.1) * part))
        })
        .collect();
    // The path ends at the rim of the mark.
    let end = at(to);
    let near = |point: &&(f64, f64)| (point.0 - end.0).hypot(point.1 - end.1) > 11.0;
    let points: Vec<_> = points.iter().filter(near).copied().collect();
    svg.arrow(&points, colour);
}

/// The path out of the lowest level, where the timer fires.
fn out(svg: &mut Svg, from: (f64, f64)) {
    svg.arrow(&[at(from), at((RINGS[0].1 + 6.0, from.1))], BLUE);
}

/// A mark with the number of a step.
fn mark(svg: &mut Svg, (x, y): (f64, f64), colour: &str, step: u32) {
    let circle = format!("circle cx=\"{}\" cy=\"{}\" r=\"9\"", short(x), short(y));
    svg.element(&format!("{circle} fill=\"{colour}\""));
    let white = "text-anchor=\"middle\" font-size=\"12\" font-weight=\"bold\" fill=\"#fff\"";
    svg.text((x, y + 4.0), white, &step.to_string());
}

/// What happens at each step.
fn words(svg: &mut Svg) {
    let mut line = 0;
    let mut say = |svg: &mut Svg, colour: Option<&str>, when: &str, what: &str| {
        line += 1;
        let y = 366.0 + 25.0 * f64::from(line);
        if let Some(colour) = colour {
            mark(svg, (22.0, y - 4.5), colour, line);
        }
        svg.text((40.0, y), "font-weight=\"bold\"", when);
        svg.text((90.0, y), "", what);
    };
    let mut now = 0;
    for (level, &(_, _, colour, ticks)) in RINGS.iter().enumerate().rev() {
        let name = format!("L{}[{}]", level + 1, slot(ticks));
        let verb = if now == 0 { "filed in" } else { "cascades to" };
        let covers = if ticks == 1 { "one tick".to_owned() } else { format!("{ticks} ticks") };
        say(svg, Some(colour), &format!("at {now}"), &format!("{verb} {name}, a slot of {covers}"));
        now += slot(ticks) * ticks;
    }
    say(svg, None, &format!("at {now}"), "fires");
    let y = 366.0 + 25.0 * 5.0;
    for (nth, (_, _, colour, _)) in RINGS.iter().rev().enumerate() {
        let x = short(13.0 + 6.0 * nth as f64);
        let swatch = format!("rect x=\"{x}\" y=\"{}\" width=\"6\" height=\"12\"", short(y - 10.5));
        svg.element(&format!("{swatch} fill=\"{colour}\" fill-opacity=\".3\""));
    }
    svg.text((40.0, y), "", "slots that the hand passes while the timer waits");
}
