//! Judges the answer to a post.

use std::time::{Duration, SystemTime};

/// How to settle a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Acknowledge it.
    Ack,
    /// Retry it after this delay, or with the timer's backoff.
    Nack(Option<Duration>, String),
    /// Give the timer up at once.
    GiveUp(String),
}

/// The longest delay that a receiver may request, unless the timer's own longest delay is longer.
const LONGEST: Duration = Duration::from_secs(3600);

/// Judges a status and a `Retry-After`. `longest` is the longest delay of the timer's retry.
pub(super) fn judge(
    status: u16,
    retry_after: Option<&str>,
    now: SystemTime,
    longest: Duration,
) -> Verdict {
    match status {
        200..=299 => Verdict::Ack,
        410 => Verdict::GiveUp("the receiver answered 410".into()),
        _ => {
            let asked = retry_after.filter(|_| matches!(status, 429 | 503));
            let after = asked.and_then(|text| delay(text.trim(), now));
            let after = after.map(|after| after.min(longest.max(LONGEST)));
            Verdict::Nack(after, format!("the receiver answered {status}"))
        }
    }
}

/// Parses a `Retry-After`: seconds, or a date.
fn delay(text: &str, now: SystemTime) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let minute = Duration::from_secs(60);
        for (status, retry_after, longest, expected) in [
            (503, Some("7"), minute, seconds(7)),
            (429, Some("7"), minute, seconds(7)),
            (429, None, minute, None),
            (500, Some("7"), minute, None),
            (302, Some("7"), minute, None),
            (503, Some("86400"), minute, seconds(3600)),
            (503, Some("86400"), Duration::from_secs(7200), seconds(7200)),
            (503, Some("99999999999999999999"), minute, seconds(3600)),
            (503, Some("Sun, 06 Nov 1994 08:49:47 GMT"), minute, seconds(10)),
            (503, Some("Sun, 06 Nov 1994 08:49:27 GMT"), minute, seconds(0)),
            (503, Some("soon"), minute, None),
            (503, Some("-1"), minute, None),
            (503, Some(""), minute, None),
        ] {
            let Verdict::Nack(after, why) = judge(status, retry_after, now, longest) else {
                panic!("{status}");
            };
            assert_eq!(after, expected, "{status} {retry_after:?}");
            assert!(why.contains(&status.to_string()));
        }
        for status in [200, 201, 204, 299] {
            assert_eq!(judge(status, Some("7"), now, minute), Verdict::Ack);
        }
        assert!(matches!(judge(410, None, now, minute), Verdict::GiveUp(_)));
        for status in [100, 199, 300, 307, 404, 411, 599] {
            assert!(matches!(judge(status, None, now, minute), Verdict::Nack(None, _)), "{status}");
        }
    }
}
