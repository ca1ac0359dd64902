//! Expectations: what a scenario may check, and how it is written.

use std::collections::HashSet;

use super::json::Json;
use super::parse::Names;
use super::place::Place;
use super::read::{Fields, array, entries, string, unsigned};
use super::{Id, ScenarioError};

type Result<T> = std::result::Result<T, ScenarioError>;

/// The checks of an expectation, in the order of the file.
#[derive(Clone, Debug)]
pub struct Expect {
    /// The checks.
    pub checks: Vec<Check>,
}

/// One key of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The number of pending timers.
    Pending(u64),
    /// When the next timer will fire, if one ever will.
    NextDue(Option<u64>),
    /// Where timers are, such as `L2[1]` or `[6]`.
    Place(Vec<(Id, String)>),
    /// The number of full turns that remained for a timer when it was filed.
    Rounds(Vec<(Id, u64)>),
    /// The timers fired since the previous expectation, and the clock of each.
    Fired(Vec<(Id, u64)>),
    /// The number of stops of the clock since the previous expectation.
    Wakes(u64),
    /// The number of cascades since the previous expectation.
    Cascades(u64),
}

impl Expect {
    /// Whether it checks the fired timers.
    pub fn wants_fired(&self) -> bool {
        self.checks.iter().any(|check| matches!(check, Check::Fired(_)))
    }
}

const KEYS: &[&str] = &["pending", "next_due", "place", "rounds", "fired", "wakes", "cascades"];

pub(super) fn expect(json: &Json<'_>, place: &Place<'_>, names: &mut Names) -> Result<Expect> {
    let fields = Fields::new(json, place, "of what must hold", KEYS)?;
    let checks = fields.iter().map(|(key, value)| check(key, value, &place.key(key), names));
    Ok(Expect { checks: checks.collect::<Result<_>>()? })
}

fn check(key: &str, value: &Json<'_>, place: &Place<'_>, names: &mut Names) -> Result<Check> {
    Ok(match key {
        "pending" => Check::Pending(unsigned(value, place)?),
        "next_due" => Check::NextDue(match value {
            Json::Null => None,
            value => Some(unsigned(value, place)?),
        }),
        "place" => Check::Place(by_timer(
            value,
            place,
            names,
            "of places such as {\"A\": \"L2[1]\"}",
            slot,
        )?),
        "rounds" => {
            Check::Rounds(by_timer(value, place, names, "of rounds such as {\"A\": 1}", unsigned)?)
        }
        "fired" => Check::Fired(fired(value, place, names)?),
        "wakes" => Check::Wakes(unsigned(value, place)?),
        "cascades" => Check::Cascades(unsigned(value, place)?),
        other => unreachable!("{other} is not one of the known keys"),
    })
}

/// Reads an object with one entry for each timer.
fn by_timer<T>(
    json: &Json<'_>,
    place: &Place<'_>,
    names: &mut Names,
    what: &str,
    read: impl Fn(&Json<'_>, &Place<'_>) -> Result<T>,
) -> Result<Vec<(Id, T)>> {
    let mut seen = HashSet::new();
    let mut list = Vec::new();
    for (name, value) in entries(json, place, what)? {
        let place = place.key(name);
        let id = names.id(name, &place)?;
        if !seen.insert(id) {
            return Err(place.error("given twice: leave one"));
        }
        list.push((id, read(value, &place)?));
    }
    Ok(list)
}

fn fired(json: &Json<'_>, place: &Place<'_>, names: &mut Names) -> Result<Vec<(Id, u64)>> {
    let mut list = Vec::new();
    for (i, pair) in array(json, place, "pairs such as [\"A\", 24]")?.iter().enumerate() {
        let place = place.index(i);
        let Json::Array(pair) = pair else {
            return Err(
                place.error(format!("must be a pair such as [\"A\", 24], not {}", pair.describe()))
            );
        };
        let [name, clock] = &pair[..] else {
            return Err(place
                .error(format!("must be a pair such as [\"A\", 24], not {} values", pair.len())));
        };
        let id = names.id(string(name, &place.index(0))?, &place)?;
        list.push((id, unsigned(clock, &place.index(1))?));
    }
    Ok(list)
}

/// Reads a place as `replay` writes it.
///
/// A place that no wheel has is an error of the file, which distinguishes a typing mistake from a timer that is
/// elsewhere.
fn slot(json: &Json<'_>, place: &Place<'_>) -> Result<String> {
    let text = string(json, place)?;
    let number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let inside = text.strip_suffix(']').and_then(|rest| rest.split_once('['));
    match inside {
        Some(("", slot)) if number(slot) => Ok(text.to_owned()),
        Some((level, slot)) if level.strip_prefix('L').is_some_and(number) && number(slot) => {
            Ok(text.to_owned())
        }
        _ => Err(place.error(format!(
            "must be a place such as \"L2[1]\" (hierarchical) or \"[6]\" (hashed), not {}",
            json.describe()
        ))),
    }
}
