//! The rings of a wheel as strips of text: one row for each level, the top one first.
//!
//! ```text
//!   L3  ▲  1        |·▲······················|
//!   L2  ▲  0  ● 30  |▲·····························
//!                    ●·····························|
//!   L1  ▲  0        |▲·····························
//!                    ······························|
//! ```
//! `▲` is the hand, `●` the timer, `◉` both in one slot. A ring of more than 36 slots takes two rows; a ring of more
//! than 72 shows only the slots near the two marks. So every row fits in 60 columns.

use std::io::{self, Write};

use tourbillon_wheel::{LevelView, Place};

use super::{HAND, TIMER};

/// The widest ring that is shown completely, in two rows.
const WIDEST: u32 = 72;
/// The maximum number of slots in a row.
const ROW: u32 = 36;
/// In a wider ring: the number of slots shown on each side of the hand and of the timer.
const NEARBY: u32 = 5;
/// Up to this many levels are all shown. With more, only the lowest, the top, and the timer's with its neighbours.
const MOST_LEVELS: usize = 5;

/// Draws the rings at a tick, up to level `top`.
pub(super) fn draw(
    out: &mut impl Write,
    levels: &[LevelView],
    top: usize,
    tick: u64,
    place: Option<Place>,
) -> io::Result<()> {
    let timer_level = match place {
        Some(Place::Level { level, .. }) => level as usize,
        _ => 1,
    };
    let width = levels[..top].iter().map(|level| digits(level.slots - 1)).max().unwrap_or(1);
    let mut gap = false;
    for number in (1..=top).rev() {
        let near = number.abs_diff(timer_level) <= 1 || number == top || number == 1;
        if top > MOST_LEVELS && !near {
            if !gap {
                writeln!(out, "    ⋮")?;
            }
            gap = true;
            continue;
        }
        gap = false;
        let level = levels[number - 1];
        let hand = slot_at(tick, level);
        let timer = match place {
            Some(Place::Level { level, slot }) if level as usize == number => Some(slot),
            Some(Place::Ring { slot, .. }) => Some(slot),
            _ => None,
        };
        // A hashed wheel has one ring, so it has no level numbers.
        match levels {
            [_] => write!(out, "  ")?,
            _ => write!(out, "  L{number:<2} ")?,
        }
        write!(out, "{HAND}▲{HAND:#} {hand:<width$} ")?;
        match timer {
            Some(slot) => write!(out, "{TIMER}●{TIMER:#} {slot:<width$} ")?,
            None => write!(out, "  {:width$} ", "")?,
        }
        let indent = 2 * width + if levels.len() == 1 { 8 } else { 12 };
        strip(out, level.slots, hand, timer, indent)?;
    }
    Ok(())
}

/// The slot of a level that the hand is in at a tick.
pub(super) fn slot_at(tick: u64, level: LevelView) -> u32 {
    let slot = tick / level.ticks_a_slot % u64::from(level.slots);
    u32::try_from(slot).expect("below the number of slots")
}

fn strip(
    out: &mut impl Write,
    slots: u32,
    hand: u32,
    timer: Option<u32>,
    indent: usize,
) -> io::Result<()> {
    let half = slots.div_ceil(2);
    write!(out, "|")?;
    let mut shown_to = 0;
    for (from, to) in windows(slots, hand, timer) {
        if from > shown_to {
            write!(out, " … ")?;
        }
        for slot in from..to {
            if (ROW + 1..=WIDEST).contains(&slots) && slot == half {
                write!(out, "\n{:indent$} ", "")?;
            }
            match (slot == hand, Some(slot) == timer) {
                (true, true) => write!(out, "{TIMER}◉{TIMER:#}")?,
                (true, false) => write!(out, "{HAND}▲{HAND:#}")?,
                (false, true) => write!(out, "{TIMER}●{TIMER:#}")?,
                (false, false) => write!(out, "·")?,
            }
        }
        shown_to = to;
    }
    if shown_to < slots {
        write!(out, " … ")?;
    }
    writeln!(out, "|")
}

/// The ranges of slots to show, each as a half-open interval.
fn windows(slots: u32, hand: u32, timer: Option<u32>) -> Vec<(u32, u32)> {
    if slots <= WIDEST {
        return vec![(0, slots)];
    }
    let mut marks = vec![hand];
    marks.extend(timer);
    marks.sort_unstable();
    let mut windows: Vec<(u32, u32)> = Vec::new();
    for mark in marks {
        let (from, to) = (mark.saturating_sub(NEARBY), (mark + NEARBY + 1).min(slots));
        match windows.last_mut() {
            Some(last) if from <= last.1 + 3 => last.1 = to,
            _ => windows.push((from, to)),
        }
    }
    windows
}

fn digits(number: u32) -> usize {
    number.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_ring_shows_what_is_near_the_marks() {
        assert_eq!(windows(60, 0, Some(59)), [(0, 60)]);
        assert_eq!(windows(256, 100, None), [(95, 106)]);
        assert_eq!(windows(256, 100, Some(110)), [(95, 116)]);
        assert_eq!(windows(256, 255, Some(0)), [(0, 6), (250, 256)]);
        assert_eq!(windows(1 << 20, 0, Some((1 << 20) - 1)), [(0, 6), ((1 << 20) - 6, 1 << 20)]);
    }
}
