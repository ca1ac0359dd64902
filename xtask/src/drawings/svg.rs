//! The subset of SVG that the pictures need.
//!
//! Text and lines take `currentColor`, which is the theme's; the other colours have a contrast of at least 3 on white
//! and on rustdoc's dark pages. A picture is 360 units wide, so that its text can be read on a phone.

use std::fmt::Write as _;

pub(super) const WIDTH: f64 = 360.0;
/// Three colours that colour-blind readers can distinguish.
pub(super) const BLUE: &str = "#2b8fd0";
pub(super) const AMBER: &str = "#c67f12";
pub(super) const GREEN: &str = "#1b9e77";
pub(super) const INK: &str = "currentColor";

/// A picture under construction.
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// Begins a picture. `title` describes it for screen readers.
    pub(super) fn new(height: f64, title: &str) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{title}\" \
             style=\"display:block;width:100%;max-width:30rem;margin:1rem auto\" \
             font-family=\"Fira Sans,Arial,sans-serif\" font-size=\"14\" fill=\"{INK}\">\n"
        );
        Svg { text }
    }

    /// An element without content: its name and attributes.
    pub(super) fn element(&mut self, element: &str) {
        let _ = writeln!(self.text, "<{element}/>");
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), attributes: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(short);
        self.element(&format!("line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {attributes}"));
    }

    /// A line of text that begins at a point, unless the attributes say otherwise.
    pub(super) fn text(&mut self, at: (f64, f64), attributes: &str, text: &str) {
        let [x, y] = [at.0, at.1].map(short);
        let space = if attributes.is_empty() { "" } else { " " };
        let _ = writeln!(self.text, "<text x=\"{x}\" y=\"{y}\"{space}{attributes}>{text}</text>");
    }

    /// A path through these points, with an arrow head of the same colour at its end.
    pub(super) fn arrow(&mut self, points: &[(f64, f64)], colour: &str) {
        let [.., before, end] = points else { return };
        let (across, down) = (end.0 - before.0, end.1 - before.1);
        let length = across.hypot(down);
        let (x, y) = (across / length, down / length);
        let corner = |back: f64, side: f64| {
            let (x, y) = (end.0 - x * back - y * side, end.1 - y * back + x * side);
            format!("{},{}", short(x), short(y))
        };
        let tip = corner(0.0, 0.0);
        let head = format!("M{}L{tip}L{}", corner(7.0, 4.0), corner(7.0, -4.0));
        let path = polyline(points);
        self.element(&format!(
            "path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\""
        ));
        self.element(&format!("path d=\"{head}Z\" fill=\"{colour}\""));
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// The `d` of a path through these points.
pub(super) fn polyline(points: &[(f64, f64)]) -> String {
    let points: Vec<String> =
        points.iter().map(|point| format!("{},{}", short(point.0), short(point.1))).collect();
    format!("M{}", points.join("L"))
}

/// A coordinate with at most one decimal.
pub(super) fn short(number: f64) -> String {
    let tenths = (number * 10.0).round() / 10.0;
    // Not `-0`.
    format!("{}", tenths + 0.0)
}
