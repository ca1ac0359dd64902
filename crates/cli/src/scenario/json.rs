//! Reads JSON text into a small tree, and reports the place of the first error.
//!
//! The text is untrusted. An error names its place (`steps[3].then`). A text nested ten thousand deep is an error and
//! not a stack overflow. The tree is bounded by [`MOST_VALUES`]. An integer of any size keeps every digit where a
//! scenario may hold one (`delay` is wider than `i64` and `u64` together).
//!
//! `serde_json::Value` was the tempting alternative: it turns large integers into floats, silently keeps the last of
//! two equal keys, and does not report the place of an error.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::place::{Place, Segment};
use super::{MOST_NESTED, ScenarioError};

/// The maximum number of values (numbers, strings, arrays, objects) in one text.
const MOST_VALUES: usize = 5_000_000;

/// The deepest nesting of arrays and objects: enough for the deepest `then` and its contents.
///
/// Each `then` takes two levels, and three surround them. It is below the 128 at which serde_json gives up without a
/// helpful message.
const DEEPEST: usize = 2 * MOST_NESTED + 10;

#[derive(Debug)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Int(i128),
    /// A number with a point or an exponent, or an integer too large for any field.
    Float(f64),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the order of the text, including repeated keys.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl Json<'_> {
    /// Describes it in an error message.
    pub(super) fn describe(&self) -> String {
        match self {
            Json::Null => "null".into(),
            Json::Bool(value) => value.to_string(),
            Json::Int(value) => value.to_string(),
            Json::Float(value) => value.to_string(),
            Json::String(text) => format!("the string {:?}", clip(text)),
            Json::Array(_) => "an array".into(),
            Json::Object(_) => "an object".into(),
        }
    }
}

/// Shortens a text to what a message can hold.
pub(super) fn clip(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Reads one JSON value that fills the whole text.
pub(super) fn parse(text: &str) -> Result<Json<'_>, ScenarioError> {
    if let Some(message) = not_even_close(text) {
        return Err(ScenarioError { place: String::new(), message: message.into() });
    }
    let mut state = State { path: Vec::new(), values: 0 };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Seed(&mut state).deserialize(&mut deserializer);
    read.and_then(|json| deserializer.end().map(|()| json)).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = match error.classify() {
            Category::Eof => format!(
                "the text ends in the middle of this, at line {line} column {column}: is it cut off?"
            ),
            Category::Syntax | Category::Io => format!("not JSON: {error}"),
            Category::Data => error.to_string(),
        };
        ScenarioError { place: Place::show(&state.path), message }
    })
}

/// A helpful message for two kinds of file that are not JSON.
fn not_even_close(text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        return Some(
            "the file is empty: a scenario is a JSON object with `name`, `wheel` and `steps`",
        );
    }
    text.starts_with('\u{feff}')
        .then_some("begins with a byte order mark: save it as UTF-8 without one")
}

/// Where the reader is, and how much it has read. After an error, the path still points at it.
struct State<'de> {
    path: Vec<Segment<'de>>,
    values: usize,
}

/// Reads one value below `path`.
struct Seed<'s, 'de>(&'s mut State<'de>);

impl<'de> DeserializeSeed<'de> for Seed<'_, 'de> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        self.0.values += 1;
        if self.0.values > MOST_VALUES {
            return Err(de::Error::custom(format_args!(
                "more than {MOST_VALUES} values: split the scenario"
            )));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, 'de> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Int(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json<'de>, E> {
        Ok(Json::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let state = self.0;
        state.check_depth()?;
        let mut array = Vec::new();
        loop {
            state.path.push(Segment::Index(array.len()));
            let Some(item) = items.next_element_seed(Seed(state))? else { break };
            state.path.pop();
            array.push(item);
        }
        state.path.pop();
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json<'de>, A::Error> {
        let state = self.0;
        state.check_depth()?;
        let mut object = Vec::new();
        while let Some(key) = entries.next_key_seed(Seed(state))? {
            let Json::String(key) = key else { return Err(de::Error::custom("a key is a string")) };
            state.path.push(Segment::Key(key.clone()));
            let value = match &*key {
                "delay" => wide(entries.next_value()?, state)?,
                _ => entries.next_value_seed(Seed(state))?,
            };
            state.path.pop();
            object.push((key, value));
        }
        Ok(Json::Object(object))
    }
}

/// Reads a value that may be an integer of more than 64 bits: from its raw text, as serde_json would make it a float.
fn wide<'de, E: de::Error>(raw: &'de RawValue, state: &mut State<'de>) -> Result<Json<'de>, E> {
    let text = raw.get();
    if let Ok(value) = text.parse() {
        return Ok(Json::Int(value));
    }
    match text.as_bytes()[0] {
        // Arrays and objects are wrong here, so their contents do not matter: reading them again at every level of
        // nested `delay`s would be quadratic.
        b'[' => Ok(Json::Array(Vec::new())),
        b'{' => Ok(Json::Object(Vec::new())),
        _ => Seed(state)
            .deserialize(&mut serde_json::Deserializer::from_str(text))
            .map_err(E::custom),
    }
}

impl State<'_> {
    /// Checks the depth: the path has one segment for each array or object around the place.
    fn check_depth<E: de::Error>(&self) -> Result<(), E> {
        if self.path.len() < DEEPEST {
            return Ok(());
        }
        Err(E::custom(format_args!(
            "nested too deep: `then` may be nested at most {MOST_NESTED} deep"
        )))
    }
}
