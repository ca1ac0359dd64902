//! Parameters of a query, read as strictly as the fields of a body. Pure.

use std::str::FromStr;

use tourbillon_durable::values::Moment;

use crate::json::{Field, Form};
use crate::percent;
use crate::problem::{Code, Problem};

/// The parameters of a request that are not yet read.
#[derive(Debug)]
pub(crate) struct Params {
    known: &'static [Field],
    values: Vec<Option<String>>,
}

impl Params {
    /// Parses a query that may have these parameters.
    pub(crate) fn read(query: &str, known: &'static [Field]) -> Result<Self, Problem> {
        let mut values: Vec<Option<String>> = vec![None; known.len()];
        for (name, value) in percent::query(query)? {
            let Some(at) = known.iter().position(|field| field.name == name) else {
                let names: Vec<&str> = known.iter().map(|field| field.name).collect();
                let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                let detail = format!("{name:?} is no parameter here: there are {there}");
                return Err(Problem::new(Code::UnknownField, detail).field(name));
            };
            if values[at].replace(value).is_some() {
                let detail = format!("{name} is given twice: leave one out");
                return Err(Problem::new(Code::DuplicateField, detail).field(name));
            }
        }
        Ok(Params { known, values })
    }

    fn take(&mut self, name: &str) -> Option<(String, &'static Form)> {
        let at = self.known.iter().position(|field| field.name == name);
        debug_assert!(at.is_some(), "{name} is no parameter");
        let at = at?;
        Some((self.values[at].take()?, &self.known[at].form))
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.take(name).map(|(text, _)| text)
    }

    fn parsed<T: FromStr>(
        &mut self,
        name: &str,
        fits: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, Problem> {
        let Some((text, form)) = self.take(name) else { return Ok(None) };
        let value = text.parse().ok().filter(fits);
        value.map(Some).ok_or_else(|| Problem::value(name, &format!("{text:?}"), &form.must()))
    }

    /// A moment. Decoding may have replaced the plus sign of its offset with a space.
    pub(crate) fn moment(&mut self, name: &str) -> Result<Option<Moment>, Problem> {
        if let Some(text) = self.known.iter().position(|field| field.name == name) {
            self.values[text] = self.values[text].take().map(|text| text.replace(' ', "+"));
        }
        self.parsed(name, |_| true)
    }

    /// `true` or `false`; `false` if not given.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        Ok(self.parsed(name, |_| true)?.unwrap_or(false))
    }

    /// A whole number within the limits of its form.
    pub(crate) fn whole(&mut self, name: &str) -> Result<Option<usize>, Problem> {
        let form = self.known.iter().find(|field| field.name == name).map(|field| &field.form);
        let limits = if let Some(Form::Whole(least, most)) = form { *least..=*most } else { 0..=0 };
        self.parsed(name, |number: &usize| limits.contains(&(*number as u64)))
    }

    /// One of the names of its form, as an index into them.
    pub(crate) fn one_of(&mut self, name: &str) -> Result<Option<usize>, Problem> {
        let Some((text, form)) = self.take(name) else { return Ok(None) };
        let names = if let Form::OneOf(names) = form { *names } else { &[] };
        let found = names.iter().position(|name| **name == text);
        let wrong = || Problem::value(name, &format!("{text:?}"), &form.must());
        found.map(Some).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Field] = &[
        Field { name: "from", form: Form::Moment, about: "" },
        Field { name: "limit", form: Form::Whole(1, 10), about: "" },
        Field { name: "state", form: Form::OneOf(&["due", "dead"]), about: "" },
        Field { name: "payload", form: Form::Flag, about: "" },
    ];

    fn reads(query: &str) -> Result<(), Problem> {
        let mut params = Params::read(query, KNOWN)?;
        params.moment("from")?;
        params.whole("limit")?;
        params.one_of("state")?;
        params.flag("payload")?;
        Ok(())
    }

    #[test]
    fn parameters_are_known_and_of_their_form() {
        for fine in [
            "",
            "from=2026-11-16T18:30:00%2B01:00&limit=10",
            "from=2026-11-16T18:30:00+01:00",
            "state=dead&payload=true",
        ] {
            assert_eq!(reads(fine), Ok(()), "{fine}");
        }
        for (wrong, field) in [
            ("form=1", "form"),
            ("from=", "from"),
            ("from=2026-11-16", "from"),
            ("limit=0", "limit"),
            ("limit=11", "limit"),
            ("limit=1&limit=2", "limit"),
            ("limit=-1", "limit"),
            ("state=Due", "state"),
            ("state=", "state"),
            ("payload=1", "payload"),
            ("payload", "payload"),
        ] {
            assert_eq!(reads(wrong).unwrap_err().field.as_deref(), Some(field), "{wrong}");
        }
    }
}
