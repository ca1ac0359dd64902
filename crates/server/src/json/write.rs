//! Writing JSON: objects and lists into a string, with fields in the order given.

use std::fmt::{self, Display, Write};

/// The bytes reserved for an object: enough for the outcome of a new timer.
const CAPACITY: usize = 128;

/// An object being written.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        let mut text = String::with_capacity(CAPACITY);
        text.push('{');
        Object(text)
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
        quote(self.name(name), value);
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
    let mut out = String::with_capacity(text.len() + 2);
    quote(&mut out, text);
    out
}

/// Appends a JSON string.
fn quote(out: &mut String, value: impl Display) {
    out.push('"');
    let _ = write!(Escaped(out), "{value}");
    out.push('"');
}

/// Appends text with the escapes of a JSON string.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        let special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
        while let Some(at) = text.bytes().position(special) {
            let (plain, rest) = text.split_at(at);
            self.0.push_str(plain);
            match rest.as_bytes()[0] {
                b'"' => self.0.push_str("\\\""),
                b'\\' => self.0.push_str("\\\\"),
                b'\n' => self.0.push_str("\\n"),
                b'\r' => self.0.push_str("\\r"),
                b'\t' => self.0.push_str("\\t"),
                byte => write!(self.0, "\\u{byte:04x}")?,
            }
            text = &rest[1..];
        }
        self.0.push_str(text);
        Ok(())
    }
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

    #[test]
    fn a_text_is_read_back() {
        let texts = (0..0x80).map(|code| format!("a{}\u{e9}", char::from(code)));
        for text in texts.chain([String::new(), "\u{7f}\u{2028}\u{1f980}".into()]) {
            assert_eq!(serde_json::from_str(&quoted(&text)).ok(), Some(text));
        }
    }
}
