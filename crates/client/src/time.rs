//! Moments and durations as the server writes them: RFC 3339 in UTC, and `1h30m`.
//!
//! Both round up to the millisecond on their way to the server, so that nothing is early.

use std::fmt::Display;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// The end of the year 9999, in seconds.
const END: u64 = 253_402_300_799;

/// A moment as text; `None` if it is before 1970 or after 9999.
pub(crate) fn moment(at: SystemTime) -> Option<String> {
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    let whole = since.subsec_nanos().checked_rem(1_000_000) == Some(0);
    (since.as_secs() < END).then(|| match whole {
        true => humantime::format_rfc3339_millis(at).to_string(),
        false => humantime::format_rfc3339_nanos(at).to_string(),
    })
}

const UNITS: [(&str, u128); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A duration as text.
pub(crate) fn duration(length: Duration) -> String {
    let mut rest = length.as_nanos().div_ceil(1_000_000);
    let mut text = String::new();
    for (name, unit) in UNITS {
        if rest >= unit {
            text.push_str(&format!("{}{name}", rest / unit));
            rest %= unit;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

fn read<'de, D: Deserializer<'de>, T, E: Display>(
    deserializer: D,
    parse: fn(&str) -> Result<T, E>,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| parse(&text).map_err(|wrong| D::Error::custom(format!("{text:?}: {wrong}"))))
        .transpose()
}

/// For `#[serde(with)]`: a moment.
pub(crate) mod at {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        super::at_or_null::serialize(&Some(*at), to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        super::at_or_null::deserialize(from)?.ok_or_else(|| D::Error::custom("null is no moment"))
    }
}

/// For `#[serde(with)]`: a moment, or null.
pub(crate) mod at_or_null {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        at: &Option<SystemTime>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let Some(at) = at else { return to.serialize_none() };
        let text = moment(*at);
        to.serialize_str(&text.ok_or_else(|| S::Error::custom("a moment is in 1970 to 9999"))?)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        read(from, humantime::parse_rfc3339)
    }
}

/// For `#[serde(with)]`: a duration.
pub(crate) mod span {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&duration(*span))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let span = super::span_or_null::deserialize(from)?;
        span.ok_or_else(|| D::Error::custom("null is no duration"))
    }
}

/// For `#[serde(with)]`: a duration, or null.
pub(crate) mod span_or_null {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => to.serialize_str(&duration(*span)),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        read(from, humantime::parse_duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_early() {
        assert_eq!(duration(Duration::from_nanos(1)), "1ms");
        assert_eq!(duration(Duration::from_millis(1500)), "1s500ms");
        assert_eq!(duration(Duration::ZERO), "0s");
        assert_eq!(duration(Duration::from_secs(90_061)), "1d1h1m1s");
        let at = UNIX_EPOCH + Duration::from_nanos(1_500_000_001);
        assert_eq!(moment(at).unwrap(), "1970-01-01T00:00:01.500000001Z");
    }

    #[test]
    fn moments_have_bounds() {
        assert_eq!(moment(UNIX_EPOCH - Duration::from_secs(1)), None);
        assert_eq!(moment(UNIX_EPOCH + Duration::from_secs(END + 1)), None);
    }
}
