//! Time: moments of the wall clock, readings of the steady clock, and spans, all in whole milliseconds.
//!
//! A [`Moment`] and a [`Steady`] are different types: the wall clock decides what is due and can be set; the steady
//! clock runs leases and cannot be set. Arithmetic never wraps: a moment saturates at the end of the year 9999.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

use super::ValueError;

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// A moment of the wall clock: milliseconds since 1970 in UTC, up to the end of the year 9999.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The beginning of 1970.
    pub const ZERO: Moment = Moment(0);
    /// The last millisecond of the year 9999.
    pub const MAX: Moment = Moment(253_402_300_799_999);

    /// This many milliseconds after the beginning of 1970, at most [`MAX`](Moment::MAX).
    pub const fn from_millis(millis: u64) -> Self {
        if millis > Moment::MAX.0 { Moment::MAX } else { Moment(millis) }
    }

    /// Milliseconds since the beginning of 1970.
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this moment; zero if `earlier` is later.
    pub fn since(self, earlier: Moment) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The moment `span` before this one, not before 1970.
    pub fn back(self, span: Span) -> Moment {
        Moment(self.0.saturating_sub(span.0))
    }
}

/// Rounds up, so that nothing is early. Clamps to the range from 1970 to the end of 9999.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tourbillon_durable::values::Moment;
/// let moment = Moment::from(SystemTime::UNIX_EPOCH + Duration::from_micros(1001));
/// assert_eq!(moment.millis(), 2);
/// ```
impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Moment::from_millis(millis_up(since))
    }
}

impl From<Moment> for SystemTime {
    fn from(moment: Moment) -> Self {
        SystemTime::UNIX_EPOCH + Duration::from_millis(moment.0)
    }
}

fn millis_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Saturates at [`Moment::MAX`].
impl Add<Span> for Moment {
    type Output = Moment;
    fn add(self, span: Span) -> Moment {
        Moment::from_millis(self.0.saturating_add(span.0))
    }
}

/// Parses RFC 3339 with an offset or `Z`. Digits beyond milliseconds round up: a timer is never early.
///
/// ```
/// use tourbillon_durable::values::Moment;
/// let moment: Moment = "2026-11-16T19:30:00.2501+01:00".parse()?;
/// assert_eq!(moment.to_string(), "2026-11-16T18:30:00.251Z");
/// # Ok::<(), tourbillon_durable::values::ValueError>(())
/// ```
impl FromStr for Moment {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let must = "RFC 3339 with an offset or Z, as 2026-11-16T18:30:00.250Z, from 1970 to 9999";
        parse(text).ok_or_else(|| ValueError::new("moment", text, must))
    }
}

/// Checks the form and parses the offset by hand; jiff parses only the civil date and time. Two reasons: jiff's
/// timestamps end a day before the end of the year 9999, and jiff accepts more forms than RFC 3339 (a space for the T,
/// no seconds, a zone in brackets).
fn parse(text: &str) -> Option<Moment> {
    let form = b"dddd-dd-ddTdd:dd:dd";
    let fits = |(&byte, &form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        _ => byte.eq_ignore_ascii_case(&form),
    };
    let rest = text.get(form.len()..)?;
    if !text.as_bytes().iter().zip(form).all(fits) {
        return None;
    }
    let digits = rest
        .strip_prefix('.')
        .map_or(0, |digits| 1 + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
    let offset = match rest.get(digits..)? {
        "Z" | "z" => 0,
        offset => seconds(offset)?,
    };
    let local: DateTime = text[..form.len() + digits].parse().ok()?;
    let nanos = local.duration_since(EPOCH).as_nanos() - i128::from(offset) * 1_000_000_000;
    let millis = u64::try_from(u128::try_from(nanos).ok()?.div_ceil(1_000_000)).ok()?;
    (millis <= Moment::MAX.0).then_some(Moment(millis))
}

/// Parses an offset such as `+01:00` into seconds.
fn seconds(offset: &str) -> Option<i64> {
    let bytes = offset.as_bytes();
    let digit = |at: usize| bytes[at].is_ascii_digit().then(|| i64::from(bytes[at] - b'0'));
    if bytes.len() != 6 || bytes[3] != b':' {
        return None;
    }
    let (hours, minutes) = (digit(1)? * 10 + digit(2)?, digit(4)? * 10 + digit(5)?);
    let sign = match bytes[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// RFC 3339 in UTC, with three digits of milliseconds.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = SignedDuration::from_millis(self.0 as i64);
        let civil = EPOCH.checked_add(since).expect("a moment lies before the year 10000");
        write!(f, "{civil:.3}Z")
    }
}

/// A reading of the monotonic clock, in milliseconds since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Steady(u64);

impl Steady {
    /// This many milliseconds after the clock was started.
    pub const fn from_millis(millis: u64) -> Self {
        Steady(millis)
    }

    /// Milliseconds since the clock was started.
    pub const fn millis(self) -> u64 {
        self.0
    }
}

/// Saturates.
impl Add<Span> for Steady {
    type Output = Steady;
    fn add(self, span: Span) -> Steady {
        Steady(self.0.saturating_add(span.0))
    }
}

/// A length of time in milliseconds, at most 1000 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

const SECOND: u64 = 1000;
const UNITS: [(&str, u64); 6] = [
    ("w", 7 * 86_400 * SECOND),
    ("d", 86_400 * SECOND),
    ("h", 3600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1),
];

impl Span {
    /// A span of zero.
    pub const ZERO: Span = Span(0);
    /// 1000 years of 365.25 days.
    pub const MAX: Span = Span(365_250 * 86_400 * SECOND);

    /// This many milliseconds, at most [`MAX`](Span::MAX).
    pub const fn from_millis(millis: u64) -> Self {
        if millis > Span::MAX.0 { Span::MAX } else { Span(millis) }
    }

    /// This many seconds, at most [`MAX`](Span::MAX).
    pub const fn from_secs(secs: u64) -> Self {
        Span::from_millis(secs.saturating_mul(SECOND))
    }

    /// Its length in milliseconds.
    pub const fn millis(self) -> u64 {
        self.0
    }
}

/// Rounds up to a millisecond, and saturates at [`Span::MAX`].
impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Span::from_millis(millis_up(duration))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Duration::from_millis(span.0)
    }
}

/// Parses numbers with units `ms s m h d w`, each unit at most once, largest first.
///
/// ```
/// use tourbillon_durable::values::Span;
/// let span: Span = "1h30m".parse()?;
/// assert_eq!(span, Span::from_secs(5400));
/// assert!("-5s".parse::<Span>().is_err());
/// # Ok::<(), tourbillon_durable::values::ValueError>(())
/// ```
impl FromStr for Span {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let must = "numbers with units ms s m h d w, as 90s or 1h30m, at most 1000 years";
        let wrong = || ValueError::new("duration", text, must);
        let (mut rest, mut total, mut last) = (text, 0_u64, u64::MAX);
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let unit = UNITS.iter().find(|unit| unit.0 == &rest[..letters]).ok_or_else(wrong)?.1;
            rest = &rest[letters..];
            let more = number.checked_mul(unit).and_then(|more| more.checked_add(total));
            total = more.filter(|&total| total <= Span::MAX.0 && unit < last).ok_or_else(wrong)?;
            last = unit;
        }
        if text.is_empty() { Err(wrong()) } else { Ok(Span(total)) }
    }
}

/// Uses as few units as possible: `1h30m`, `0s`. Uses weeks only for whole weeks: `2w`, but `30d`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let weeks = usize::from(!self.0.is_multiple_of(UNITS[0].1));
        for (name, unit) in &UNITS[weeks..] {
            if rest >= *unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        if self.0 == 0 { f.write_str("0s") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_strict_and_round_up() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01t00:00:00.0000001z", 1),
            ("1970-01-01T01:00:00.999+01:00", 999),
            ("9999-12-31T23:59:59.999Z", Moment::MAX.0),
        ] {
            assert_eq!(text.parse(), Ok(Moment(millis)), "{text}");
        }
        for text in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01 00:00:00Z",
            "1969-12-31T23:59:59Z",
            "9999-12-31T23:59:59.9995Z",
            "1970-01-01T00:00Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00+0100",
            "1970-01-01T00:00:00+24:00",
            "1970-02-30T00:00:00Z",
            "1970-01-01T00:00:00+01:00[Europe/Berlin]",
        ] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
        assert_eq!(Moment::MAX.to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Moment::MAX + Span::MAX, Moment::MAX);
    }

    #[test]
    fn spans_are_strict_and_print_what_they_read() {
        for text in ["250ms", "90s", "1h30m", "2d", "1w", "365250d", "1w2d3h4m5s6ms"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string().parse(), Ok(span), "{text}");
        }
        for text in [
            "",
            "s",
            "5",
            "-5s",
            "1.5s",
            "5 s",
            "1m1h",
            "1s1s",
            "365250d1ms",
            "99999999999999999999s",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert_eq!(
            (Span(5_400_000).to_string(), Span(0).to_string()),
            ("1h30m".into(), "0s".into())
        );
        for text in ["30d", "2w", "8d", "1w", "365250d"] {
            assert_eq!(text.parse().map(|span: Span| span.to_string()), Ok(text.into()));
        }
    }
}
