//! Tokens: the identity of a delivery, the verdicts of its holder, and their outcomes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Generation, Key, Moment, Span, ValueError};

/// The permanent identity of a delivery.
///
/// Its text form is `generation.occurrence.attempt.key`, which can be parsed again.
///
/// ```
/// use tourbillon_durable::Token;
/// let token: Token = "4711.1.2.order-17".parse()?;
/// assert_eq!((token.generation.0, token.occurrence, token.attempt), (4711, 1, 2));
/// assert_eq!((token.key.as_str(), &*token.to_string()), ("order-17", "4711.1.2.order-17"));
/// assert!("4711.1.02.order-17".parse::<Token>().is_err());
/// # Ok::<(), tourbillon_durable::values::ValueError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// The key.
    pub key: Key,
    /// The generation of the timer.
    pub generation: Generation,
    /// Its occurrence.
    pub occurrence: u64,
    /// Its attempt.
    pub attempt: u32,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { key, generation, occurrence, attempt } = self;
        write!(f, "{}.{occurrence}.{attempt}.{key}", generation.0)
    }
}

/// Accepts only the form that `Display` writes.
impl FromStr for Token {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let mut parts = text.splitn(4, '.');
        let mut part = || parts.next().unwrap_or_default();
        let numbers = [part(), part(), part()].map(number);
        let (key, [generation, occurrence, attempt]) = (Key::new(part()), numbers);
        let attempt = attempt.and_then(|attempt| u32::try_from(attempt).ok());
        match (generation, occurrence, attempt, key) {
            (Some(generation), Some(occurrence), Some(attempt), Ok(key)) => {
                Ok(Token { key, generation: Generation(generation), occurrence, attempt })
            }
            _ => Err(ValueError::new("token", text, "the token of a delivery, as it was received")),
        }
    }
}

/// A number below 2^53, without a sign or a leading zero.
fn number(text: &str) -> Option<u64> {
    let strict = text.bytes().all(|byte| byte.is_ascii_digit());
    let strict = strict && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|&number: &u64| strict && number < 1 << 53)
}

/// The verdict of a delivery's holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The work is done.
    Ack,
    /// The work failed: retry after this delay, or with the timer's backoff.
    Nack(Option<Span>, Option<Arc<str>>),
    /// Gives the timer up at once, however many attempts are left. A recurring timer ends, too: it is dead.
    GiveUp(Option<Arc<str>>),
    /// Extends the lease to end this long from now.
    Extend(Span),
    /// Releases the delivery: it is due again after this delay, and the attempt does not count as failed.
    Release(Span),
}

/// The outcome for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Done; a recurring timer is due again at this moment.
    Acked(Option<Moment>),
    /// The next attempt is due at this moment.
    Again(Moment),
    /// The occurrence was given up; a recurring timer is due again at this moment.
    GivenUp(Option<Moment>),
    /// The lease ends at this moment, by the wall clock.
    Extended(Moment),
}

/// Why a token is no longer valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// It was already acknowledged with this token.
    Acked,
    /// It was already nacked.
    Nacked,
    /// Its lease has ended.
    Lapsed,
    /// The timer was moved.
    Moved,
    /// The occurrence was handed out again.
    HandedAgain,
    /// The timer was cancelled.
    Cancelled,
    /// The timer was replaced.
    Replaced,
    /// The occurrence was given up.
    GivenUp,
    /// The store no longer knows the reason.
    Unknown,
}

impl Stale {
    /// Its name, as in the HTTP interface.
    pub const fn name(self) -> &'static str {
        match self {
            Stale::Acked => "acked",
            Stale::Nacked => "nacked",
            Stale::Lapsed => "lapsed",
            Stale::Moved => "moved",
            Stale::HandedAgain => "handed_again",
            Stale::Cancelled => "cancelled",
            Stale::Replaced => "replaced",
            Stale::GivenUp => "given_up",
            Stale::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_one_form() {
        for key in ["a", "a.b", "1.2.3", "~1f-2a", "schlüssel 17"] {
            let (key, generation) = (Key::new(key).unwrap(), Generation((1 << 53) - 1));
            let token = Token { key, generation, occurrence: 3, attempt: u32::MAX };
            assert_eq!(token.to_string().parse(), Ok(token));
        }
        let long = format!("1.1.1.{}", "k".repeat(257));
        for bad in [
            "",
            "1",
            "1.1.1",
            "1.1.1.",
            "1.1.1..",
            "x.1.1.a",
            "+1.1.1.a",
            "01.1.1.a",
            "1. 1.1.a",
            "1.1.4294967296.a",
            "9007199254740992.1.1.a",
            "1.1.1.a\nb",
            "-1.1.1.a",
            &long,
        ] {
            let wrong = bad.parse::<Token>().unwrap_err();
            assert_eq!(wrong.field, "token", "{bad:?}");
        }
    }
}
