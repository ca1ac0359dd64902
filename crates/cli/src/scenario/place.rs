//! Places in a scenario file, written as paths: `steps[3].then[0].delay`.

use std::borrow::Cow;
use std::fmt::Write;

use super::ScenarioError;

/// One segment of the path from the top of the file.
#[derive(Clone, Debug)]
pub(super) enum Segment<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

/// A place, as a chain from the inside to the top: a deeper place needs no allocation.
pub(super) struct Place<'p> {
    up: Option<(&'p Place<'p>, Segment<'p>)>,
}

/// A longer path is cut in the middle when shown.
const SHOWN: usize = 16;

impl<'p> Place<'p> {
    pub(super) const TOP: Place<'static> = Place { up: None };

    pub(super) fn key<'q>(&'q self, key: &'q str) -> Place<'q> {
        Place { up: Some((self, Segment::Key(Cow::Borrowed(key)))) }
    }

    pub(super) fn index<'q>(&'q self, index: usize) -> Place<'q> {
        Place { up: Some((self, Segment::Index(index))) }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ScenarioError {
        ScenarioError { place: self.to_string(), message: message.into() }
    }

    pub(super) fn show(segments: &[Segment<'_>]) -> String {
        let mut shown = String::new();
        let cut = segments.len() > SHOWN;
        for (i, segment) in segments.iter().enumerate() {
            if cut && i == SHOWN / 2 {
                shown.push_str(".…");
            }
            if cut && i >= SHOWN / 2 && i < segments.len() - SHOWN / 4 {
                continue;
            }
            match segment {
                Segment::Index(index) => write!(shown, "[{index}]").expect("writing to a string"),
                Segment::Key(key) if is_plain(key) => {
                    let dot = if shown.is_empty() { "" } else { "." };
                    write!(shown, "{dot}{key}").expect("writing to a string");
                }
                Segment::Key(key) => {
                    write!(shown, "[{:?}]", super::json::clip(key)).expect("writing to a string");
                }
            }
        }
        shown
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut segments = Vec::new();
        let mut place = self;
        while let Some((up, segment)) = &place.up {
            segments.push(segment.clone());
            place = up;
        }
        segments.reverse();
        f.write_str(&Place::show(&segments))
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.len() <= 40 && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
