//! Names: of a queue, and of a timer in its queue. Cheap to clone.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use super::{Moment, ValueError};

/// The name of a queue: 1 to 64 of `a-z A-Z 0-9 . _ -`, never `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Checks a name.
    ///
    /// # Errors
    /// It is empty, too long, reserved, or contains another character.
    ///
    /// ```
    /// use tourbillon_durable::values::QueueName;
    /// assert!(QueueName::new("orders.eu-1").is_ok());
    /// let wrong = QueueName::new("a b").unwrap_err();
    /// assert_eq!(wrong.to_string(), "queue is \"a b\": it must be 1 to 64 of a-z A-Z 0-9 . _ -, not . or ..");
    /// ```
    pub fn new(name: &str) -> Result<Self, ValueError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=64).contains(&name.len())
            && name.bytes().all(allowed)
            && name != "."
            && name != ".."
        {
            return Ok(QueueName(name.into()));
        }
        Err(ValueError::new("queue", name, "1 to 64 of a-z A-Z 0-9 . _ -, not . or .."))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of a timer, unique in its queue: 1 to 256 bytes without control characters, never `.` or `..`.
///
/// Keys that start with `~` are assigned by the shard. A caller may refer to an existing one, but not choose one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// Checks a key; assigned keys are accepted.
    ///
    /// # Errors
    /// It is empty, too long, reserved, or contains a control character.
    pub fn new(key: &str) -> Result<Self, ValueError> {
        let fits = (1..=256).contains(&key.len());
        if fits && !key.chars().any(char::is_control) && key != "." && key != ".." {
            return Ok(Key(key.into()));
        }
        Err(ValueError::new("key", key, "1 to 256 bytes without control characters, not . or .."))
    }

    /// Checks a key that a caller chooses for a new timer.
    ///
    /// # Errors
    /// As [`new`](Key::new), or it starts with `~`.
    ///
    /// ```
    /// use tourbillon_durable::values::Key;
    /// assert!(Key::chosen("order-17").is_ok());
    /// assert!(Key::chosen("~17").is_err());
    /// ```
    pub fn chosen(key: &str) -> Result<Self, ValueError> {
        if key.starts_with('~') {
            return Err(ValueError::new("key", key, "a key that does not begin with ~"));
        }
        Key::new(key)
    }

    /// The key of a timer scheduled without one. It encodes the generation and the first due moment, so that a store
    /// needs no index to find a timer that was never moved.
    pub(crate) fn assigned(generation: u64, due: u64) -> Self {
        Key(format!("~{generation:x}-{due:x}").into())
    }

    /// The generation and the first due moment of an assigned key.
    pub(crate) fn parts(&self) -> Option<(u64, u64)> {
        let text = self.0.as_bytes().strip_prefix(b"~")?;
        let dash = text.iter().position(|&byte| byte == b'-')?;
        Some((hex(&text[..dash])?, hex(&text[dash + 1..])?))
    }

    /// The first due moment, if this key was assigned to that generation; a store then needs no index entry for it. In
    /// a store loaded from a dump, a timer may have a key assigned to an earlier generation.
    pub(crate) fn home(&self, generation: u64) -> Option<Moment> {
        let (of, due) = self.parts()?;
        (of == generation && due <= Moment::MAX.millis()).then(|| Moment::from_millis(due))
    }

    /// Whether it has the form of an assigned key.
    pub fn is_assigned(&self) -> bool {
        self.0.starts_with('~')
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Parses a number in exactly the form that `{:x}` writes.
fn hex(text: &[u8]) -> Option<u64> {
    if !(1..=16).contains(&text.len()) || (text.len() > 1 && text[0] == b'0') {
        return None;
    }
    text.iter().try_fold(0, |number, &byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(digit))
    })
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_limits() {
        let long = "q".repeat(65);
        for (name, fine) in [
            ("a", true),
            ("", false),
            (".", false),
            ("..", false),
            ("...", true),
            (&long[1..], true),
            (&long, false),
        ] {
            assert_eq!(QueueName::new(name).is_ok(), fine, "{name}");
        }
        let long = "ä".repeat(129);
        for (key, fine) in [
            ("a/b", true),
            ("", false),
            ("..", false),
            ("a\nb", false),
            (&long[2..], true),
            (&long, false),
            ("~1", true),
        ] {
            assert_eq!(Key::new(key).is_ok(), fine, "{key}");
        }
    }

    #[test]
    fn an_assigned_key_has_one_form() {
        for (generation, due) in [(0, 0), (17, 0xab), (u64::MAX, u64::MAX)] {
            assert_eq!(Key::assigned(generation, due).parts(), Some((generation, due)));
        }
        for other in ["1-1", "~1", "~01-1", "~1-", "~-1", "~A-1", "~+1-1", "~10000000000000000-1"] {
            assert_eq!(Key::new(other).unwrap().parts(), None, "{other}");
        }
    }
}
