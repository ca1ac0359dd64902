//! Typed reads from a JSON tree: numbers, strings, lists and objects, each with its place.
//!
//! Every error says what was found and what would be right.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use super::ScenarioError;
use super::json::{Json, clip};
use super::place::Place;

type Result<T> = std::result::Result<T, ScenarioError>;

pub(super) const U64: RangeInclusive<i128> = 0..=u64::MAX as i128;

pub(super) fn integer(
    json: &Json<'_>,
    place: &Place<'_>,
    range: RangeInclusive<i128>,
) -> Result<i128> {
    match json {
        Json::Int(value) if range.contains(value) => Ok(*value),
        other => {
            let (least, most, found) = (range.start(), range.end(), other.describe());
            Err(place.error(format!("must be an integer {least} to {most}, not {found}")))
        }
    }
}

pub(super) fn unsigned(json: &Json<'_>, place: &Place<'_>) -> Result<u64> {
    let value = integer(json, place, U64)?;
    Ok(u64::try_from(value).expect("it is in the range"))
}

pub(super) fn positive(json: &Json<'_>, place: &Place<'_>) -> Result<NonZeroU64> {
    let value = integer(json, place, 1..=u64::MAX.into())?;
    Ok(u64::try_from(value).ok().and_then(NonZeroU64::new).expect("it is in the range"))
}

pub(super) fn string<'j>(json: &'j Json<'_>, place: &Place<'_>) -> Result<&'j str> {
    match json {
        Json::String(text) => Ok(text),
        other => Err(place.error(format!("must be a string, not {}", other.describe()))),
    }
}

/// Reads one of a few words.
pub(super) fn word<T: Copy>(json: &Json<'_>, place: &Place<'_>, words: &[(&str, T)]) -> Result<T> {
    let found = match json {
        Json::String(text) => words.iter().find(|(word, _)| word == text),
        _ => None,
    };
    found.map(|&(_, value)| value).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        place.error(format!("must be {}, not {}", words.join(" or "), json.describe()))
    })
}

pub(super) fn array<'j, 'a>(
    json: &'j Json<'a>,
    place: &Place<'_>,
    of: &str,
) -> Result<&'j [Json<'a>]> {
    match json {
        Json::Array(items) => Ok(items),
        other => Err(place.error(format!("must be an array of {of}, not {}", other.describe()))),
    }
}

pub(super) type Entries<'j, 'a> = &'j [(std::borrow::Cow<'a, str>, Json<'a>)];

pub(super) fn entries<'j, 'a>(
    json: &'j Json<'a>,
    place: &Place<'_>,
    what: &str,
) -> Result<Entries<'j, 'a>> {
    match json {
        Json::Object(entries) => Ok(entries),
        other => Err(place.error(format!("must be an object {what}, not {}", other.describe()))),
    }
}

/// An object with a fixed set of fields: no others, none twice.
pub(super) struct Fields<'j, 'a> {
    entries: Entries<'j, 'a>,
}

impl<'j, 'a> Fields<'j, 'a> {
    pub(super) fn new(
        json: &'j Json<'a>,
        place: &Place<'_>,
        what: &str,
        known: &[&str],
    ) -> Result<Self> {
        let entries = entries(json, place, what)?;
        for (i, (key, _)) in entries.iter().enumerate() {
            if !known.contains(&&**key) {
                let known = known.join(", ");
                return Err(place
                    .key(key)
                    .error(format!("unknown field {:?}: known here are {known}", clip(key))));
            }
            // Quadratic, but only known fields get this far, and the first repetition ends the loop.
            if entries[..i].iter().any(|(earlier, _)| earlier == key) {
                return Err(place.key(key).error("given twice: leave one"));
            }
        }
        Ok(Fields { entries })
    }

    pub(super) fn get(&self, key: &str) -> Option<&'j Json<'a>> {
        self.entries.iter().find(|(k, _)| k == key).map(|(_, value)| value)
    }

    pub(super) fn require(&self, key: &str, place: &Place<'_>) -> Result<&'j Json<'a>> {
        self.get(key).ok_or_else(|| place.key(key).error("is missing"))
    }

    /// The fields among `keys` that are present, in the order of the file.
    pub(super) fn present<'k>(&self, keys: &'k [&'k str]) -> Vec<&'k str> {
        let known = |key: &str| keys.iter().copied().find(|k| *k == key);
        self.entries.iter().filter_map(|(key, _)| known(key)).collect()
    }

    /// All fields, in the order of the file.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'j str, &'j Json<'a>)> + use<'j, 'a> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }
}
