//! Webhooks, as data: where a timer is posted when it is due. Nothing here connects or parses a URL.

use std::fmt;
use std::sync::Arc;

use super::{Span, ValueError};

const LONGEST_URL: usize = 2048;
const MOST_HEADERS: usize = 64;
const LARGEST_HEADERS: usize = 16 << 10;

/// The URL to which a timer is posted, its headers, and its timeout.
///
/// A delivery agent interprets it; only its form is checked here.
///
/// ```
/// use tourbillon_durable::values::{Secret, Webhook};
/// let mut hook = Webhook::new("https://example.com/orders")?;
/// hook.headers.push(("authorization".into(), Secret::new("Bearer 17")));
/// let hook = hook.checked()?;
/// assert!(!format!("{hook:?}").contains("17"));
/// # Ok::<(), tourbillon_durable::values::ValueError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The address, at most 2048 bytes.
    pub url: String,
    /// Names and values of headers, at most 64 and together 16 KiB.
    pub headers: Vec<(String, Secret)>,
    /// How long an attempt may take, 1 s to 60 s.
    pub timeout: Span,
}

impl Webhook {
    /// A webhook without headers and with a timeout of 10 s.
    ///
    /// # Errors
    /// As [`checked`](Webhook::checked).
    pub fn new(url: impl Into<String>) -> Result<Self, ValueError> {
        let (url, timeout) = (url.into(), Span::from_secs(10));
        Webhook { url, headers: Vec::new(), timeout }.checked()
    }

    /// Checks its form.
    ///
    /// # Errors
    /// The URL is empty, too long, or contains a space or a control character; the headers are too many or too large; a
    /// header has an invalid name or a line break; or the timeout is out of its limits.
    pub fn checked(self) -> Result<Self, ValueError> {
        let odd = |char: char| char.is_whitespace() || char.is_control();
        if !(1..=LONGEST_URL).contains(&self.url.len()) || self.url.contains(odd) {
            let must = "1 to 2048 bytes without spaces or control characters";
            return Err(ValueError::new("webhook.url", &self.url, must));
        }
        if !(Span::from_secs(1)..=Span::from_secs(60)).contains(&self.timeout) {
            let text = self.timeout.to_string();
            return Err(ValueError::new("webhook.timeout", &text, "1s to 60s"));
        }
        let named = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
        };
        for (name, value) in &self.headers {
            // The error names only the header, because its value is a secret.
            if !named(name) || value.reveal().contains(['\r', '\n', '\0']) {
                let must = "a name without spaces or colons, and a value without line breaks";
                return Err(ValueError::new("webhook.headers", name, must));
            }
        }
        if self.headers.len() > MOST_HEADERS || self.size() - self.url.len() > LARGEST_HEADERS {
            let text = self.headers.len().to_string();
            return Err(ValueError::new("webhook.headers", &text, "at most 64, and 16 KiB"));
        }
        Ok(self)
    }

    /// The bytes of its texts.
    pub(crate) fn size(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.reveal().len());
        self.url.len() + headers.sum::<usize>()
    }
}

/// A text that is stored and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Secret(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_has_limits() {
        let hook = |url: &str| Webhook::new(url).map(drop);
        assert!(hook(&"x".repeat(LONGEST_URL)).is_ok());
        for url in ["", "a b", "a\n", &"x".repeat(LONGEST_URL + 1)] {
            assert!(hook(url).is_err(), "{url}");
        }
        let with = |timeout, headers: &[(&str, &str)]| {
            let header = |(name, value): &(&str, &str)| (name.to_string(), Secret::new(*value));
            let headers = headers.iter().map(header).collect();
            Webhook { url: "x".into(), headers, timeout: Span::from_millis(timeout) }.checked()
        };
        assert_eq!(
            [999, 1000, 60_000, 60_001].map(|timeout| with(timeout, &[]).is_ok()),
            [false, true, true, false]
        );
        let large = "v".repeat(LARGEST_HEADERS - 1);
        assert!(with(1000, &[("n", &large)]).is_ok());
        assert!(with(1000, &[("nn", &large)]).is_err());
        assert!(with(1000, &[("n", ""); MOST_HEADERS]).is_ok());
        assert!(with(1000, &[("n", ""); MOST_HEADERS + 1]).is_err());
        for header in [("", "v"), ("a b", "v"), ("a:", "v"), ("n", "hush\r\nx: y"), ("n", "hush\0")]
        {
            let wrong = with(1000, &[header]).unwrap_err().to_string();
            assert!(!wrong.contains("hush"), "{wrong}");
        }
    }
}
