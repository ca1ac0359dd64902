//! Tokens: the rights of clients, and the queues to which they apply. Pure.
//!
//! A file has one token per line, `NAME:TOKEN:RIGHT[:SCOPE]`. A right is `read`, `write` or `admin`; each includes the
//! rights before it in this list. A scope is the name of a queue, or a prefix of names that ends with a dot. Empty
//! lines and lines that start with `#` are ignored.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

/// The right that a call needs and a token grants. Each right includes the rights listed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// No token is needed.
    Open,
    Read,
    Write,
    Admin,
}

impl Right {
    /// Its name, as in a file of tokens.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Right::Open => "none",
            Right::Read => "read",
            Right::Write => "write",
            Right::Admin => "admin",
        }
    }
}

/// The rights of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The name of the token, for logs.
    pub(crate) name: Arc<str>,
    pub(crate) right: Right,
    /// The queues that it covers; `None` for all.
    pub(crate) scope: Option<Arc<str>>,
}

impl Grant {
    /// The grant of every request if there are no tokens.
    pub(crate) fn everything() -> Self {
        Grant { name: "".into(), right: Right::Admin, scope: None }
    }

    /// Whether it covers a queue.
    pub(crate) fn sees(&self, queue: &str) -> bool {
        self.scope
            .as_deref()
            .is_none_or(|scope| queue == scope || scope.ends_with('.') && queue.starts_with(scope))
    }
}

/// The tokens and their rights.
#[derive(Clone, Default)]
pub struct Tokens(Vec<(Box<[u8]>, Grant)>);

/// Prints names and rights, not the tokens.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, grant)| grant)).finish()
    }
}

impl Tokens {
    /// Parses the lines of a file.
    ///
    /// # Errors
    /// The number of the first invalid line and what is wrong; never a token.
    ///
    /// ```
    /// use tourbillon_server::Tokens;
    /// assert!(Tokens::parse("ann:secret-1:admin\nshop:secret-2:write:orders.").is_ok());
    /// assert_eq!(Tokens::parse("ann:secret-1:root").unwrap_err(), "line 1: the right is not read, write or admin");
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens: Vec<(Box<[u8]>, Grant)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (token, grant) =
                parse(line).map_err(|wrong| format!("line {}: {wrong}", number + 1))?;
            if tokens.iter().any(|(other, _)| **other == *token.as_bytes()) {
                return Err(format!("line {}: the token is there twice", number + 1));
            }
            tokens.push((token.as_bytes().into(), grant));
        }
        if tokens.is_empty() {
            return Err("it contains no token, so no client could use the server".into());
        }
        Ok(Tokens(tokens))
    }

    /// The grant of a token. Compares it with every known token, in a time that does not depend on where they differ.
    pub(crate) fn grant(&self, token: &[u8]) -> Option<&Grant> {
        let mut found = None;
        for (known, grant) in &self.0 {
            if same(known, token) {
                found = Some(grant);
            }
        }
        found
    }
}

fn parse(line: &str) -> Result<(&str, Grant), &'static str> {
    let mut parts = line.split(':');
    let mut part = || parts.next().unwrap_or_default();
    let (name, token, right) = (part(), part(), part());
    let (scope, rest) = (parts.next(), parts.next());
    if name.is_empty() {
        return Err("the name is missing: NAME:TOKEN:RIGHT[:SCOPE]");
    }
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the token is not visible ASCII characters without a colon");
    }
    let right = match right {
        "read" => Right::Read,
        "write" => Right::Write,
        "admin" => Right::Admin,
        _ => return Err("the right is not read, write or admin"),
    };
    let named = |scope: &str| {
        (1..=64).contains(&scope.len())
            && scope.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    if rest.is_some() || scope.is_some_and(|scope| !named(scope)) {
        return Err("the scope is not the name of a queue, or its beginning with a dot at the end");
    }
    Ok((token, Grant { name: name.into(), right, scope: scope.map(Into::into) }))
}

/// Whether two texts are equal, in a time that depends only on their lengths.
fn same(known: &[u8], given: &[u8]) -> bool {
    let differ = |at: usize| known[at] ^ given.get(at).copied().unwrap_or(!known[at]);
    let differences = (0..known.len()).fold(0, |sum, at| black_box(sum | differ(at)));
    differences == 0 && known.len() == given.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let text = "# people\n\nann:12345678:read\nshop:87654321:write:orders.\nops:abcdefgh:admin:orders\n";
        let tokens = Tokens::parse(text).unwrap();
        let grant = |token: &str| tokens.grant(token.as_bytes());
        assert_eq!(grant("12345678").map(|grant| grant.right), Some(Right::Read));
        for wrong in ["", "1234567", "123456789", "12345679", "x2345678"] {
            assert_eq!(grant(wrong), None, "{wrong}");
        }
        for (token, queue, sees) in [
            ("12345678", "anything", true),
            ("87654321", "orders.eu", true),
            ("87654321", "orders.", true),
            ("87654321", "orders", false),
            ("87654321", "ordersX", false),
            ("abcdefgh", "orders", true),
            ("abcdefgh", "orders.eu", false),
            ("abcdefgh", "order", false),
        ] {
            assert_eq!(grant(token).unwrap().sees(queue), sees, "{token} {queue}");
        }
        assert!(!format!("{tokens:?}").contains("12345678"));
    }

    #[test]
    fn wrong_lines_are_refused_without_their_tokens() {
        for line in [
            "",
            "# nothing",
            "hush-hush",
            ":hush-hush:read",
            "ann::read",
            "ann:hush hush:read",
            "ann:hush-hush",
            "ann:hush-hush:",
            "ann:hush-hush:Read",
            "ann:hush-hush:read:",
            "ann:hush-hush:read:a b",
            "ann:hush-hush:read:a:b",
            "ann:hush-hush:read\nbob:hush-hush:read",
        ] {
            let wrong = Tokens::parse(line).unwrap_err();
            assert!(!wrong.contains("hush"), "{wrong}");
        }
    }
}
