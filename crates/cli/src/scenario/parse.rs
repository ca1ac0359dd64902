//! From a JSON tree to a [`Scenario`]: the only file that knows the fields of the format.

use std::collections::HashMap;

use tourbillon_wheel::MAX_SLOTS;

use super::expect::expect;
use super::json::{self, Json};
use super::place::Place;
use super::read::{Fields, array, integer, positive, string, unsigned, word};
use super::{
    Callback, Drive, Id, Kind, MOST_NESTED, Scenario, ScenarioError, Schedule, Step, WheelSpec,
    When,
};

type Result<T> = std::result::Result<T, ScenarioError>;

pub(super) fn scenario(text: &str) -> Result<Scenario> {
    const KNOWN: &[&str] = &["name", "about", "wheel", "drive", "limit", "budget", "steps"];
    let json = json::parse(text)?;
    let top = &Place::TOP;
    let fields = Fields::new(&json, top, "with `name`, `wheel` and `steps`", KNOWN)?;
    let optional = |key| fields.get(key).map(|value| (value, top.key(key)));

    let name = string(fields.require("name", top)?, &top.key("name"))?.to_owned();
    let about = optional("about")
        .map(|(value, place)| string(value, &place).map(str::to_owned))
        .transpose()?;
    let wheel = wheel(fields.require("wheel", top)?, &top.key("wheel"))?;
    let drives = Drive::ALL.map(|drive| (drive.name(), drive));
    let drive = optional("drive").map(|(value, place)| word(value, &place, &drives)).transpose()?;
    let limit = optional("limit").map(|(value, place)| positive(value, &place)).transpose()?;
    let budget = optional("budget").map(|(value, place)| positive(value, &place)).transpose()?;

    let mut names = Names::default();
    let steps = steps(fields.require("steps", top)?, &top.key("steps"), 0, &mut names)?;
    Ok(Scenario {
        name,
        about,
        wheel,
        drive: drive.unwrap_or(Drive::Due),
        limit,
        budget,
        steps,
        ids: names.list,
    })
}

fn wheel(json: &Json<'_>, place: &Place<'_>) -> Result<WheelSpec> {
    let fields =
        Fields::new(json, place, "with `kind` and `slots`", &["kind", "tick", "slots", "start"])?;
    let kinds = [("hierarchical", Kind::Hierarchical), ("hashed", Kind::Hashed)];
    let kind = word(fields.require("kind", place)?, &place.key("kind"), &kinds)?;
    let tick = match fields.get("tick") {
        Some(tick) => positive(tick, &place.key("tick"))?,
        None => std::num::NonZeroU64::MIN,
    };
    let start = match fields.get("start") {
        Some(start) => unsigned(start, &place.key("start"))?,
        None => 0,
    };
    let slots = slots(fields.require("slots", place)?, &place.key("slots"), kind)?;
    Ok(WheelSpec { kind, tick, slots, start })
}

fn slots(json: &Json<'_>, place: &Place<'_>, kind: Kind) -> Result<Vec<u32>> {
    let list = array(json, place, "numbers of slots, lowest level first")?;
    let least = match kind {
        Kind::Hierarchical if list.is_empty() => {
            return Err(place.error("is empty: give one number a level"));
        }
        Kind::Hashed if list.len() != 1 => {
            return Err(place.error(format!(
                "a hashed wheel has one ring: give one number, not {}",
                list.len()
            )));
        }
        Kind::Hierarchical => 2,
        Kind::Hashed => 1,
    };
    let one = |(i, slots)| {
        let slots = integer(slots, &place.index(i), least..=MAX_SLOTS.into())?;
        Ok(u32::try_from(slots).expect("it is in the range"))
    };
    list.iter().enumerate().map(one).collect()
}

/// Reads a list of steps. `depth` is the number of `then`s around it.
fn steps(json: &Json<'_>, place: &Place<'_>, depth: usize, names: &mut Names) -> Result<Vec<Step>> {
    if depth > MOST_NESTED {
        return Err(place
            .error(format!("nested too deep: `then` may be nested at most {MOST_NESTED} deep")));
    }
    let list = array(json, place, "steps")?;
    list.iter().enumerate().map(|(i, json)| step(json, &place.index(i), depth, names)).collect()
}

const VERBS: &[&str] = &["schedule", "cancel", "reschedule", "advance", "stop", "expect"];
const STEP_FIELDS: &[&str] = &[
    "schedule",
    "cancel",
    "reschedule",
    "advance",
    "stop",
    "expect",
    "delay",
    "at",
    "every",
    "then",
];
const IN_CALLBACKS: &[&str] = &["schedule", "cancel", "reschedule", "stop"];

fn step(json: &Json<'_>, place: &Place<'_>, depth: usize, names: &mut Names) -> Result<Step> {
    let fields = Fields::new(json, place, "with one verb", STEP_FIELDS)?;
    let verb = match fields.present(VERBS)[..] {
        [verb] => verb,
        [] => return Err(place.error(format!("has no verb: give one of {}", VERBS.join(", ")))),
        [first, second, ..] => {
            return Err(
                place.error(format!("has two verbs, {first} and {second}: make it two steps"))
            );
        }
    };
    if depth > 0 && !IN_CALLBACKS.contains(&verb) {
        let verbs = IN_CALLBACKS.join(", ");
        return Err(place.key(verb).error(format!("not allowed inside `then`: only {verbs} are")));
    }
    let belongs: &[&str] = match verb {
        "schedule" => &["schedule", "delay", "at", "every", "then"],
        "reschedule" => &["reschedule", "delay", "at"],
        _ => &[verb],
    };
    if let Some((stray, _)) = fields.iter().find(|(key, _)| !belongs.contains(key)) {
        return Err(place.key(stray).error(format!("does not belong to {verb}: leave it out")));
    }
    let value = fields.require(verb, place)?;
    let at = &place.key(verb);
    Ok(match verb {
        "schedule" => {
            let id = names.id(string(value, at)?, at)?;
            Step::Schedule(schedule(&fields, id, place, depth, names)?.into())
        }
        "cancel" => Step::Cancel(names.id(string(value, at)?, at)?),
        "reschedule" => Step::Reschedule(names.id(string(value, at)?, at)?, when(&fields, place)?),
        "advance" => Step::Advance(unsigned(value, at)?),
        "stop" => match value {
            Json::Bool(true) => Step::Stop,
            other => return Err(at.error(format!("must be true, not {}", other.describe()))),
        },
        _ => Step::Expect(Box::new(expect(value, at, names)?)),
    })
}

fn schedule(
    fields: &Fields<'_, '_>,
    id: Id,
    place: &Place<'_>,
    depth: usize,
    names: &mut Names,
) -> Result<Schedule> {
    let when = when(fields, place)?;
    let every =
        fields.get("every").map(|every| positive(every, &place.key("every"))).transpose()?;
    let then = match fields.get("then") {
        None => None,
        Some(then) => {
            let place = place.key("then");
            let steps = steps(then, &place, depth + 1, names)?;
            Some(Box::new(Callback { place: place.to_string(), steps }))
        }
    };
    Ok(Schedule { id, when, every, then })
}

fn when(fields: &Fields<'_, '_>, place: &Place<'_>) -> Result<When> {
    const FURTHEST: i128 = u64::MAX as i128;
    match (fields.get("delay"), fields.get("at")) {
        (Some(delay), None) => {
            Ok(When::Delay(integer(delay, &place.key("delay"), -FURTHEST..=FURTHEST)?))
        }
        (None, Some(at)) => Ok(When::At(unsigned(at, &place.key("at"))?)),
        (Some(_), Some(_)) => Err(place.error("has both `delay` and `at`: leave one")),
        (None, None) => Err(place.error("has no due time: give `delay` (from now) or `at`")),
    }
}

/// Reads further steps of a scenario that is already running.
#[derive(Debug)]
pub struct Further {
    names: Names,
}

impl Further {
    /// Continues this scenario, whose timers keep their numbers.
    pub fn new(scenario: &Scenario) -> Self {
        let list = scenario.ids.clone();
        let ids = (0..).map(Id).zip(&list).map(|(id, name)| (name.clone(), id)).collect();
        Further { names: Names { list, ids } }
    }

    /// Reads the steps in a JSON array.
    ///
    /// # Errors
    /// The first error in the text, at a place such as `steps[0].delay`.
    pub fn read(&mut self, text: &str) -> Result<Vec<Step>> {
        let json = json::parse(text)?;
        steps(&json, &Place::TOP.key("steps"), 0, &mut self.names)
    }

    /// The names of all timers so far, by [`Id`].
    pub fn names(&self) -> &[String] {
        &self.names.list
    }
}

/// The names of the timers so far, each with its number.
#[derive(Debug, Default)]
pub(super) struct Names {
    list: Vec<String>,
    ids: HashMap<String, Id>,
}

impl Names {
    pub(super) fn id(&mut self, name: &str, place: &Place<'_>) -> Result<Id> {
        if let Some(&id) = self.ids.get(name) {
            return Ok(id);
        }
        let number =
            u32::try_from(self.list.len()).map_err(|_| place.error("too many different timers"))?;
        self.list.push(name.to_owned());
        self.ids.insert(name.to_owned(), Id(number));
        Ok(Id(number))
    }
}
