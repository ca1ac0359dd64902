//! One request, and whether it may be repeated.

use std::time::Duration;

use hyper::Method;
use serde::Serialize;

use crate::error::Error;

/// A request that was not sent yet.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The path and the query.
    pub(crate) path: String,
    pub(crate) body: Option<String>,
    /// A condition: the name and the value of a header.
    pub(crate) condition: Option<(&'static str, String)>,
    /// How long after the first try a repetition is safe according to the API, even if that try was carried out.
    pub(crate) safe_for: Duration,
    /// How long the request lets the server wait before it answers.
    pub(crate) wait: Duration,
}

impl Request {
    pub(crate) fn new(method: Method, path: String) -> Self {
        let safe_for = if method == Method::GET { Duration::MAX } else { Duration::ZERO };
        Request { method, path, body: None, condition: None, safe_for, wait: Duration::ZERO }
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let text = serde_json::to_string(body);
        self.body = Some(text.map_err(|wrong| Error::Argument(wrong.to_string()))?);
        Ok(self)
    }

    /// Safe to repeat at any time.
    pub(crate) fn safe(self) -> Self {
        self.safe_for(Duration::MAX)
    }

    pub(crate) fn safe_for(mut self, time: Duration) -> Self {
        self.safe_for = time;
        self
    }
}

/// Percent-encodes all but unreserved characters, for a part of a path or a value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte as char);
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The query string of the parameters that have a value.
pub(crate) fn query(pairs: &[(&str, Option<String>)]) -> String {
    let given = pairs.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let all: Vec<String> = given.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    if all.is_empty() { String::new() } else { format!("?{}", all.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded() {
        assert_eq!(encode("a b/ä?~"), "a%20b%2F%C3%A4%3F~");
        assert_eq!(query(&[("a", None)]), "");
        assert_eq!(query(&[("a", Some("x&y".into())), ("b", Some("1".into()))]), "?a=x%26y&b=1");
    }
}
