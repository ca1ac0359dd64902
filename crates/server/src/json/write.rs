//! Writing JSON: objects and lists into a string, with fields in the order given.

use std::fmt::{Display, Write as _};

/// An object being written.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Object(String::from("{"))
    }

    fn name(&mut self, name: &str) -> &mut String {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
        &mut self.0
    }

    /// Writes a value whose `Display` form is JSON.
    pub(crate) fn raw(&mut self, name: &str, value: impl Display) -> &mut Self {
        let _ = write!(self.name(name), "{value}");
        self
    }

    /// Writes a text.
    pub(crate) fn text(&mut self, name: &str, value: impl Display) -> &mut Self {
        let value = quoted(&value.to_string());
        self.name(name).push_str(&value);
        self
    }

    /// Writes a text, or null.
    pub(crate) fn text_or_null(&mut self, name: &str, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.text(name, value),
            None => self.raw(name, "null"),
        }
    }

    /// Writes JSON, or null.
    pub(crate) fn raw_or_null(&mut self, name: &str, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.raw(name, value),
            None => self.raw(name, "null"),
        }
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// A list being written.
pub(crate) struct List(String);

impl List {
    pub(crate) fn of<T: Display>(values: impl IntoIterator<Item = T>) -> String {
        let mut list = List(String::from("["));
        for value in values {
            if list.0.len() > 1 {
                list.0.push(',');
            }
            let _ = write!(list.0, "{value}");
        }
        list.0.push(']');
        list.0
    }
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_lists() {
        let mut object = Object::new();
        object.raw("a", 1).text("b", "\"\n").text_or_null("c", None::<&str>);
        assert_eq!(object.end(), r#"{"a":1,"b":"\"\n","c":null}"#);
        assert_eq!(List::of([1, 2]), "[1,2]");
        assert_eq!(List::of::<u8>([]), "[]");
    }
}
