//! Reading an object by its schema, a [`Shape`].

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use tourbillon_durable::values::{Moment, Span};

use crate::json::{DEPTH, Field, Form, Shape};
use crate::problem::{Code, Problem};

/// The fields of an object that are not yet read.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    shape: &'static Shape,
    /// The prefix of field names in problems, such as `retry.`.
    within: &'static str,
    given: Given<'a>,
}

/// The fields that a body gives, in its order.
type Given<'a> = Vec<(&'static Field, &'a RawValue)>;

impl<'a> Fields<'a> {
    /// Reads the object of a body.
    pub(crate) fn read(text: &'a str, shape: &'static Shape) -> Result<Self, Problem> {
        Fields::read_within(text, shape, "")
    }

    /// Reads an object that is the value of a field.
    fn read_within(
        text: &'a str,
        shape: &'static Shape,
        within: &'static str,
    ) -> Result<Self, Problem> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let entries = Entries { shape, within }.deserialize(&mut reader);
        let entries = entries.and_then(|entries| reader.end().map(|()| entries));
        let given = entries.map_err(|error| {
            let detail = format!("the body cannot be read: {error}");
            Problem::new(Code::BadJson, detail)
        })??;
        Ok(Fields { shape, within, given })
    }

    /// The name of a field as shown in problems.
    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.within)
    }

    fn take(&mut self, name: &str) -> Option<(&'a RawValue, &'static Form)> {
        let known = || self.shape.fields.iter().any(|field| field.name == name);
        debug_assert!(known(), "{name} is no field of {}", self.shape.name);
        let at = self.given.iter().position(|(field, _)| field.name == name)?;
        let (field, raw) = self.given.swap_remove(at);
        Some((raw, &field.form))
    }

    /// Whether a field is given and not yet read.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(field, _)| field.name == name)
    }

    /// The problem of a missing field.
    pub(crate) fn missing(&self, name: &str, why: &str) -> Problem {
        let name = self.full(name);
        Problem::new(Code::MissingField, format!("{name} is missing: {why}")).field(name)
    }

    /// A value, deserialized by serde.
    fn plain<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(None) };
        let read = serde_json::from_str(raw.get()).map(Some);
        read.map_err(|_| Problem::value(&self.full(name), raw.get(), &form.must()))
    }

    /// A value, parsed from a text.
    fn parsed<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(None) };
        let value = text_of(raw).and_then(|text| text.parse().ok());
        let wrong = || Problem::value(&self.full(name), raw.get(), &form.must());
        value.map(Some).ok_or_else(wrong)
    }

    pub(crate) fn span(&mut self, name: &str) -> Result<Option<Span>, Problem> {
        self.parsed(name)
    }

    pub(crate) fn moment(&mut self, name: &str) -> Result<Option<Moment>, Problem> {
        self.parsed(name)
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(None) };
        let wrong = || Problem::value(&self.full(name), raw.get(), &form.must());
        text_of(raw).map(|text| Some(text.into_owned())).ok_or_else(wrong)
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        self.plain(name)
    }

    pub(crate) fn number(&mut self, name: &str) -> Result<Option<f64>, Problem> {
        self.plain(name)
    }

    /// A whole number within the limits of its form.
    pub(crate) fn whole(&mut self, name: &str) -> Result<Option<u64>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(None) };
        whole(&self.full(name), raw, form).map(Some)
    }

    /// As `whole`. `Some(None)` for null.
    pub(crate) fn whole_or_null(&mut self, name: &str) -> Result<Option<Option<u64>>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(None) };
        if raw.get() == "null" {
            return Ok(Some(None));
        }
        whole(&self.full(name), raw, form).map(|number| Some(Some(number)))
    }

    /// One of the names of its form, as an index into them.
    pub(crate) fn one_of(&mut self, name: &str) -> Result<Option<usize>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(None) };
        let names = if let Form::OneOf(names) = form { *names } else { &[] };
        let found = text_of(raw).and_then(|text| names.iter().position(|name| *name == text));
        found.map(Some).ok_or_else(|| Problem::value(&self.full(name), raw.get(), &form.must()))
    }

    /// The raw text of a value.
    pub(crate) fn any(&mut self, name: &str) -> Option<&'a str> {
        self.take(name).map(|(raw, _)| raw.get())
    }

    /// An object. `within` is its name followed by a dot.
    pub(crate) fn object(
        &mut self,
        name: &str,
        within: &'static str,
    ) -> Result<Option<Fields<'a>>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(None) };
        let wrong = || Problem::value(&self.full(name), raw.get(), &form.must());
        let Form::Object(shape) = form else { return Err(wrong()) };
        if !raw.get().starts_with('{') {
            return Err(wrong());
        }
        Fields::read_within(raw.get(), shape, within).map(Some)
    }

    /// As `object`. `Some(None)` for null.
    pub(crate) fn object_or_null(
        &mut self,
        name: &str,
        within: &'static str,
    ) -> Result<Option<Option<Fields<'a>>>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(None) };
        if raw.get() == "null" {
            return Ok(Some(None));
        }
        let wrong = || Problem::value(&self.full(name), raw.get(), &form.must());
        match form {
            Form::OrNull(Form::Object(shape)) if raw.get().starts_with('{') => {
                Fields::read_within(raw.get(), shape, within).map(|fields| Some(Some(fields)))
            }
            _ => Err(wrong()),
        }
    }

    /// An object of texts, in order; each name at most once. Problems never contain a value, because it may be a
    /// secret.
    pub(crate) fn texts_by_name(&mut self, name: &str) -> Result<Vec<(String, String)>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(Vec::new()) };
        let full = self.full(name);
        let wrong = || Problem::value(&full, "something else", &form.must());
        let mut reader = serde_json::Deserializer::from_str(raw.get());
        let pairs = reader.deserialize_map(Pairs).map_err(|_| wrong())?;
        let mut names: Vec<String> = pairs.iter().map(|(name, _)| name.to_lowercase()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let detail = format!("{:?} of {full} is given twice: leave one out", twice[0]);
            return Err(Problem::new(Code::DuplicateField, detail).field(full));
        }
        Ok(pairs)
    }

    /// The raw texts of a list's values.
    pub(crate) fn list(&mut self, name: &str) -> Result<Option<Vec<&'a str>>, Problem> {
        let Some((raw, form)) = self.take(name) else { return Ok(None) };
        let wrong = || Problem::value(&self.full(name), raw.get(), &form.must());
        let list: Vec<&'a RawValue> = serde_json::from_str(raw.get()).map_err(|_| wrong())?;
        let Form::List(_, most) = form else { return Err(wrong()) };
        if list.len() > *most {
            let detail = format!("{name} has {} entries: at most {most} fit", list.len());
            return Err(Problem::new(Code::BadValue, detail).field(self.full(name)));
        }
        Ok(Some(list.into_iter().map(RawValue::get).collect()))
    }

    /// A list of texts. The problem names the index of the first value that is not a text.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Problem> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let full = self.full(name);
        let one = |(index, text): (usize, &str)| {
            serde_json::from_str(text)
                .map_err(|_| Problem::value(&full, text, "a list of texts").index(index))
        };
        list.into_iter().enumerate().map(one).collect::<Result<_, _>>().map(Some)
    }
}

/// The text of a string; `None` if the value is no string. It is copied only if it contains an escape.
fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    match text.strip_prefix('"')?.strip_suffix('"') {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(text).ok().map(Cow::Owned),
    }
}

/// A whole number within its limits.
fn whole(name: &str, raw: &RawValue, form: &Form) -> Result<u64, Problem> {
    let (least, most) = match form {
        Form::Whole(least, most) | Form::OrNull(Form::Whole(least, most)) => (*least, *most),
        _ => (0, u64::MAX),
    };
    let number = serde_json::from_str(raw.get()).ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| Problem::value(name, raw.get(), &form.must()))
}

/// Checks that brackets nest at most [`DEPTH`] deep. The parser checks whether they match.
pub(crate) fn check_depth(text: &str) -> Result<(), Problem> {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            let detail = format!("the body is more than {DEPTH} deep: flatten it");
            return Err(Problem::new(Code::BadJson, detail));
        }
    }
    Ok(())
}

/// Reads the fields of an object. The first invalid field decides the outcome.
struct Entries {
    shape: &'static Shape,
    within: &'static str,
}

impl<'de> DeserializeSeed<'de> for Entries {
    type Value = Result<Given<'de>, Problem>;
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries {
    type Value = Result<Given<'de>, Problem>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut given = Given::new();
        let mut wrong = None;
        while let Some(name) = map.next_key_seed(Name(self.shape.fields))? {
            let value = map.next_value()?;
            let problem = match name {
                Ok(field) if given.iter().any(|(other, _)| other.name == field.name) => {
                    Some((Code::DuplicateField, field.name.to_owned()))
                }
                Ok(field) => {
                    given.push((field, value));
                    None
                }
                Err(name) => Some((Code::UnknownField, name)),
            };
            wrong = wrong.or(problem);
        }
        Ok(match wrong {
            None => Ok(given),
            Some((code, name)) => {
                let name = format!("{}{name}", self.within);
                Err(self.wrong(code, name))
            }
        })
    }
}

impl Entries {
    fn wrong(&self, code: Code, name: String) -> Problem {
        let detail = match code {
            Code::DuplicateField => format!("{name} is given twice: leave one out"),
            _ => {
                let known: Vec<&str> = self.shape.fields.iter().map(|field| field.name).collect();
                let shown: String = name.chars().take(80).collect();
                format!("{shown:?} is no field here: there are {}", known.join(", "))
            }
        };
        Problem::new(code, detail).field(name.chars().take(256).collect::<String>())
    }
}

/// Reads an object of texts.
struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

/// Reads the name of a field. Yields the field, or the name itself if the field is unknown.
struct Name(&'static [Field]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Result<&'static Field, String>;
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Result<&'static Field, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|field| field.name == name).ok_or_else(|| name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: Shape =
        Shape { name: "Inner", fields: &[Field { name: "deep", form: Form::Flag, about: "" }] };
    const SHAPE: Shape = Shape {
        name: "Outer",
        fields: &[
            Field { name: "n", form: Form::Whole(1, 9), about: "" },
            Field { name: "span", form: Form::Duration, about: "" },
            Field { name: "any", form: Form::Any, about: "" },
            Field { name: "list", form: Form::List(&Form::Text, 2), about: "" },
            Field { name: "inner", form: Form::Object(&INNER), about: "" },
            Field { name: "limit", form: Form::OrNull(&Form::Whole(1, 9)), about: "" },
        ],
    };

    /// The code and the field of a problem.
    fn wrong(problem: Problem) -> (Code, String) {
        (problem.code, problem.field.unwrap_or_default())
    }

    #[test]
    fn only_an_object_with_known_fields_is_read() {
        use Code::{BadJson, DuplicateField, UnknownField};
        for (text, code, field) in [
            ("", BadJson, ""),
            ("[]", BadJson, ""),
            ("null", BadJson, ""),
            ("{", BadJson, ""),
            ("{} {}", BadJson, ""),
            ("{\"n\":1,}", BadJson, ""),
            ("{'n':1}", BadJson, ""),
            ("{\"n\":01}", BadJson, ""),
            ("{\"any\":\"\n\"}", BadJson, ""),
            ("\u{feff}{}", BadJson, ""),
            ("{\"\\ud800\":1}", BadJson, ""),
            ("{\"m\":1}", UnknownField, "m"),
            ("{\"N\":1}", UnknownField, "N"),
            ("{\"n\":1,\"n\":1}", DuplicateField, "n"),
            ("{\"n\":1,\"\\u006e\":1}", DuplicateField, "n"),
        ] {
            let problem = Fields::read(text, &SHAPE).unwrap_err();
            assert_eq!(wrong(problem), (code, field.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_value_is_of_its_form() {
        fn reads(text: &str) -> Result<(), Problem> {
            let mut fields = Fields::read(text, &SHAPE)?;
            fields.whole("n")?;
            fields.span("span")?;
            fields.texts("list")?;
            fields.whole_or_null("limit")?;
            if let Some(mut inner) = fields.object("inner", "inner.")? {
                inner.flag("deep")?;
            }
            Ok(())
        }
        for text in [
            r#"{"n":9,"span":"1h30m","any":{"a":[1e999]},"list":["a"],"inner":{"deep":true}}"#,
            r#"{"limit":null}"#,
            r#"{"limit":1}"#,
        ] {
            assert_eq!(reads(text), Ok(()), "{text}");
        }
        for (text, field) in [
            (r#"{"n":0}"#, "n"),
            (r#"{"n":10}"#, "n"),
            (r#"{"n":1.5}"#, "n"),
            (r#"{"n":"1"}"#, "n"),
            (r#"{"n":null}"#, "n"),
            (r#"{"n":-1}"#, "n"),
            (r#"{"n":99999999999999999999}"#, "n"),
            (r#"{"span":5}"#, "span"),
            (r#"{"span":"5"}"#, "span"),
            (r#"{"span":"-5s"}"#, "span"),
            (r#"{"list":"a"}"#, "list"),
            (r#"{"list":[1]}"#, "list"),
            (r#"{"list":["a","b","c"]}"#, "list"),
            (r#"{"inner":1}"#, "inner"),
            (r#"{"inner":null}"#, "inner"),
            (r#"{"inner":{"deep":1}}"#, "inner.deep"),
            (r#"{"inner":{"more":1}}"#, "inner.more"),
            (r#"{"limit":0}"#, "limit"),
        ] {
            assert_eq!(wrong(reads(text).unwrap_err()).1, field, "{text}");
        }
    }

    #[test]
    fn any_is_kept_as_it_came() {
        let mut fields = Fields::read(r#"{"any": { "a" : 1.0e2 ,"a":2} }"#, &SHAPE).unwrap();
        assert_eq!(fields.any("any"), Some(r#"{ "a" : 1.0e2 ,"a":2}"#));
    }

    #[test]
    fn depth_is_limited() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(check_depth(&deep(DEPTH)).is_ok());
        assert!(check_depth(&deep(DEPTH + 1)).is_err());
        assert!(check_depth(&format!("\"{}\\\"[\"", "[".repeat(99))).is_ok());
    }
}
