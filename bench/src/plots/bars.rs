//! Horizontal bars, one for each contestant, each with its name and its value.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{FAINT, INK, OURS, PAPER, THEIRS};

pub struct Bar {
    pub name: String,
    pub value: f64,
    pub ours: bool,
}

pub struct Bars {
    pub title: String,
    pub unit: String,
    pub bars: Vec<Bar>,
    pub source: String,
}

const WIDTH: u32 = 720;
const TOP: i32 = 92;
const EACH: i32 = 38;
/// The positions where the bars begin and where the widest one ends.
const LEFT: i32 = 290;
const RIGHT: i32 = 620;

pub fn colour((red, green, blue): (u8, u8, u8)) -> RGBColor {
    RGBColor(red, green, blue)
}

pub fn text(size: i32, ink: (u8, u8, u8)) -> TextStyle<'static> {
    ("system-ui, sans-serif", size).into_font().color(&colour(ink))
}

impl Bars {
    /// # Errors
    ///
    /// The drawing library has failed.
    pub fn draw(&self) -> Result<String, String> {
        let mut svg = String::new();
        let height = TOP + EACH * self.bars.len() as i32 + 44;
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
        self.paint(&area, height).map_err(|error| error.to_string())?;
        drop(area);
        Ok(svg)
    }

    fn paint(
        &self,
        area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
        height: i32,
    ) -> Result<(), Box<dyn std::error::Error>> {
        area.fill(&colour(PAPER))?;
        area.draw_text(&self.title, &text(28, INK), (16, 14))?;
        area.draw_text(&self.unit, &text(20, FAINT), (16, 50))?;
        let most = self.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        for (nth, bar) in self.bars.iter().enumerate() {
            let top = TOP + EACH * nth as i32;
            let share = if most > 0.0 { bar.value / most } else { 0.0 };
            let end = LEFT + (share * f64::from(RIGHT - LEFT)) as i32;
            let paint = if bar.ours { OURS } else { THEIRS };
            let name = text(19, if bar.ours { OURS } else { INK });
            let middle = top + EACH / 2 - 4;
            let right = name.pos(Pos::new(HPos::Right, VPos::Center));
            area.draw_text(&bar.name, &right, (LEFT - 10, middle))?;
            let corners = [(LEFT, top), (end.max(LEFT + 2), top + EACH - 10)];
            area.draw(&Rectangle::new(corners, colour(paint).filled()))?;
            let left = text(19, INK).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw_text(&written(bar.value), &left, (end.max(LEFT + 2) + 8, middle))?;
        }
        area.draw_text(&self.source, &text(16, FAINT), (16, height - 28))?;
        area.present()?;
        Ok(())
    }
}

pub fn written(value: f64) -> String {
    match value.abs() {
        large if large >= 1e6 => format!("{:.1} M", value / 1e6),
        large if large >= 1e4 => format!("{:.0} k", value / 1e3),
        small if small < 10.0 && small != small.trunc() => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
