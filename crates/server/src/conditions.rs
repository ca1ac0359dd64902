//! Conditions of a request: `If-Match` and `If-None-Match`, by generation. Pure.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use tourbillon_durable::values::Generation;

use crate::app::App;
use crate::problem::{Code, Problem};

/// The condition under which a timer is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// No condition.
    None,
    /// No timer has the key.
    Absent,
    /// One of these timers has the key.
    Match(Tags),
}

/// The timers that a condition accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tags {
    /// Any existing timer.
    Any,
    /// The timers with these generations.
    These(Vec<Generation>),
}

impl Tags {
    /// The accepted generation, if there is exactly one.
    pub(crate) fn only(&self) -> Option<Generation> {
        match self {
            Tags::These(tags) if tags.len() == 1 => tags.first().copied(),
            _ => None,
        }
    }

    pub(crate) fn have(&self, generation: Generation) -> bool {
        match self {
            Tags::Any => true,
            Tags::These(tags) => tags.contains(&generation),
        }
    }
}

impl FromRequestParts<App> for Condition {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        condition(&parts.headers)
    }
}

fn condition(headers: &HeaderMap) -> Result<Condition, Problem> {
    let value = |name| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().map(|value| value.to_str().unwrap_or("?").trim());
        value.map(|value| if values.next().is_some() { "?" } else { value })
    };
    match (value(IF_MATCH), value(IF_NONE_MATCH)) {
        (None, None) => Ok(Condition::None),
        (None, Some("*")) => Ok(Condition::Absent),
        (None, Some(_)) => Err(wrong("If-None-Match", "*, or left out")),
        (Some("*"), None) => Ok(Condition::Match(Tags::Any)),
        (Some(tags), None) => {
            let tags = tags.split(',').map(|tag| generation(tag.trim())).collect();
            let tags: Option<Vec<Option<Generation>>> = tags;
            let tags = tags.ok_or_else(|| wrong("If-Match", "the ETag of a timer in quotes"))?;
            Ok(Condition::Match(Tags::These(tags.into_iter().flatten().collect())))
        }
        (Some(_), Some(_)) => Err(wrong("If-None-Match", "left out when there is If-Match")),
    }
}

fn wrong(name: &str, must: &str) -> Problem {
    Problem::new(Code::BadValue, format!("{name} must be {must}")).field(name)
}

/// The generation of a tag. `Some(None)`: a valid tag that no timer has. `None`: not a tag.
fn generation(tag: &str) -> Option<Option<Generation>> {
    let (weak, tag) = tag.strip_prefix("W/").map_or((false, tag), |tag| (true, tag));
    let tag = tag.strip_prefix('"')?.strip_suffix('"')?;
    let plain =
        tag.bytes().all(|byte| byte.is_ascii_digit()) && (tag == "0" || !tag.starts_with('0'));
    Some(tag.parse().ok().filter(|_| plain && !weak).map(Generation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let these = |tags: &[u64]| {
            Ok(Condition::Match(Tags::These(tags.iter().copied().map(Generation).collect())))
        };
        let wrong = Err(Code::BadValue);
        for (if_match, if_none_match, expected) in [
            (&[][..], &[][..], Ok(Condition::None)),
            (&[], &["*"], Ok(Condition::Absent)),
            (&["*"], &[], Ok(Condition::Match(Tags::Any))),
            (&["\"17\""], &[], these(&[17])),
            (&["\"0\", \"17\""], &[], these(&[0, 17])),
            (&["W/\"17\""], &[], these(&[])),
            (&["\"x\""], &[], these(&[])),
            (&["\"017\""], &[], these(&[])),
            (&["17"], &[], wrong.clone()),
            (&["\"17"], &[], wrong.clone()),
            (&["\"1\"", "\"2\""], &[], wrong.clone()),
            (&[], &["\"17\""], wrong.clone()),
            (&["\"17\""], &["*"], wrong.clone()),
        ] {
            let mut headers = HeaderMap::new();
            for value in if_match {
                headers.append(IF_MATCH, value.parse().unwrap());
            }
            for value in if_none_match {
                headers.append(IF_NONE_MATCH, value.parse().unwrap());
            }
            let read = condition(&headers).map_err(|problem| problem.code);
            assert_eq!(read, expected, "{if_match:?} {if_none_match:?}");
        }
    }
}
