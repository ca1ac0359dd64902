//! Problems: every error of the API, as `application/problem+json`.
//!
//! A code is stable, so that clients can branch on it. All problems of a code have the same title. The detail states
//! what is wrong with this request, and what would be right.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tourbillon_durable::values::ValueError;
use tourbillon_durable::{Error, Refused, ScheduleError, State};

use crate::json::Object;

macro_rules! codes {
    ($($name:ident $status:literal $code:literal $title:literal)*) => {
        /// The stable name of a kind of problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($name),* }

        impl Code {
            /// All codes.
            pub(crate) const ALL: &[Code] = &[$(Code::$name),*];

            /// Its status, its name and its title.
            pub(crate) fn parts(self) -> (u16, &'static str, &'static str) {
                match self { $(Code::$name => ($status, $code, $title)),* }
            }
        }
    };
}

codes! {
    BadJson 400 "bad_json" "The body is not the JSON that the call takes"
    BadValue 400 "bad_value" "A value is not what it must be"
    UnknownField 400 "unknown_field" "A field that the call does not take"
    DuplicateField 400 "duplicate_field" "A field that is given twice"
    MissingField 400 "missing_field" "A field that the call needs is missing"
    ExclusiveFields 400 "exclusive_fields" "Fields that exclude each other"
    KeyTwice 400 "key_twice" "A key that is in the request twice"
    Never 400 "never" "A timer that would never be due"
    Unauthorized 401 "unauthorized" "A token is needed"
    Forbidden 403 "forbidden" "The token does not grant it"
    ForeignOrigin 403 "foreign_origin" "A page of another site"
    UnknownPath 404 "unknown_path" "There is no such path"
    UnknownQueue 404 "unknown_queue" "There is no such queue"
    UnknownTimer 404 "unknown_timer" "There is no such timer"
    MethodNotAllowed 405 "method_not_allowed" "The path does not take this method"
    Timeout 408 "timeout" "The request took too long to arrive"
    KeyTaken 409 "key_taken" "The key is taken"
    Delivering 409 "delivering" "A timer is handed out"
    Done 409 "done" "The timer is done"
    Cancelled 409 "cancelled" "The timer was cancelled"
    PreconditionFailed 412 "precondition_failed" "The timer is not the one that was meant"
    BodyTooLarge 413 "body_too_large" "The body is too large"
    PayloadTooLarge 413 "payload_too_large" "The payload is too large"
    UnsupportedMediaType 415 "unsupported_media_type" "The body is not application/json"
    ForeignHost 421 "foreign_host" "The request is for another host"
    TooMany 429 "too_many" "Too many at once"
    Damaged 500 "damaged" "A row of the store cannot be read"
    Internal 500 "internal" "The server has a bug"
    Unavailable 503 "unavailable" "Nothing happened: try again later"
    Unknown 503 "unknown" "It happened or not"
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) detail: String,
    /// The field that is wrong.
    pub(crate) field: Option<String>,
    /// The index of the timer in the request, from 0.
    pub(crate) index: Option<usize>,
    /// The state of the existing timer.
    pub(crate) state: Option<State>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Problem { code, detail: detail.into(), field: None, index: None, state: None }
    }

    /// Sets the field that is wrong.
    pub(crate) fn field(self, field: impl Into<String>) -> Self {
        Problem { field: Some(field.into()), ..self }
    }

    /// Sets the index of the timer that is wrong.
    pub(crate) fn index(self, index: usize) -> Self {
        Problem { index: Some(index), ..self }
    }

    fn state(self, state: State) -> Self {
        Problem { state: Some(state), ..self }
    }

    /// The problem of a request that has already made its change: it must not say that nothing happened.
    pub(crate) fn after_change(self) -> Self {
        match self.code {
            Code::Unavailable => Problem { code: Code::Unknown, ..self },
            _ => self,
        }
    }

    /// A value that violates the limits of its field.
    pub(crate) fn value(field: &str, text: &str, must: &str) -> Self {
        let mut shown: String = text.chars().take(80).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        let detail = format!("{field} is {shown}: it must be {must}");
        Problem::new(Code::BadValue, detail).field(field)
    }

    /// As [`value`](Problem::value), for a value that `tourbillon-durable` refused. `field` is its name in the request.
    pub(crate) fn refused(field: &str, wrong: &ValueError) -> Self {
        Problem::value(field, &format!("{:?}", wrong.text), &wrong.must)
    }

    /// The body of the answer.
    pub(crate) fn body(&self) -> String {
        let (status, code, title) = self.code.parts();
        let mut object = Object::new();
        object.text("title", title).raw("status", status).text("detail", &self.detail);
        object.text("code", code);
        if let Some(field) = &self.field {
            object.text("field", field);
        }
        if let Some(index) = self.index {
            object.raw("index", index);
        }
        if let Some(state) = self.state {
            object.text("state", state.name());
        }
        object.end()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.parts().0).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(CONTENT_TYPE, kind)], self.body()).into_response();
        if self.code == Code::Unauthorized {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        if matches!(self.code, Code::TooMany | Code::Unavailable) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match error {
            Error::Value(wrong) => Problem::refused(wrong.field, &wrong),
            Error::UnknownTimer => Problem::new(Code::UnknownTimer, detail),
            Error::State(state) => Problem::new(of_state(state), detail).state(state),
            Error::UnknownQueue => Problem::new(Code::UnknownQueue, detail),
            Error::Delivering(_) => Problem::new(Code::Delivering, detail),
            Error::Mismatch(None) => Problem::new(Code::UnknownTimer, detail),
            Error::Mismatch(Some(_)) => Problem::new(Code::PreconditionFailed, detail),
            Error::Unknown(_) => Problem::new(Code::Unknown, detail),
            Error::Damaged(_) => Problem::new(Code::Damaged, detail),
            Error::Unavailable(_) | Error::Full | Error::Stopped => {
                Problem::new(Code::Unavailable, detail)
            }
            _ => Problem::new(Code::Internal, detail),
        }
    }
}

/// The problem of a path that does not exist.
pub(crate) fn unknown_path() -> Problem {
    let detail = "there is no such path: calls are under /v1, without a slash at the end";
    Problem::new(Code::UnknownPath, detail)
}

/// Why a timer in that state cannot be moved or run.
fn of_state(state: State) -> Code {
    match state {
        State::Delivering => Code::Delivering,
        State::Cancelled => Code::Cancelled,
        _ => Code::Done,
    }
}

impl Problem {
    /// Timers that were not scheduled. `many`: the request had a list, so the problem has the index of the timer.
    pub(crate) fn of_schedule(error: ScheduleError, many: bool) -> Self {
        let detail = error.to_string();
        let (problem, index) = match error.reason {
            Refused::KeyTaken(index, state) => {
                (Problem::new(Code::KeyTaken, detail).field("key").state(state), index)
            }
            Refused::Mismatch(index, _) => (Problem::new(Code::PreconditionFailed, detail), index),
            Refused::NotAssigned(index) => {
                (Problem::new(Code::BadValue, detail).field("key"), index)
            }
            Refused::KeyTwice(index) => (Problem::new(Code::KeyTwice, detail).field("key"), index),
            Refused::Never(index) => (Problem::new(Code::Never, detail), index),
            Refused::PayloadTooLarge(index) => {
                (Problem::new(Code::PayloadTooLarge, detail).field("payload"), index)
            }
            Refused::Count => {
                return Problem::new(Code::BadValue, detail).field("timers");
            }
            Refused::TooMany => return Problem::new(Code::TooMany, detail),
            Refused::Request(error) => return error.into(),
            _ => return Problem::new(Code::Internal, detail),
        };
        if many { problem.index(index) } else { problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_names_what_is_wrong() {
        let problem = Problem::value("in", "\"5\"", "a duration").index(3);
        let rest = r#""detail":"in is \"5\": it must be a duration","code":"bad_value","field":"in","index":3}"#;
        let title = r#"{"title":"A value is not what it must be","status":400,"#;
        assert_eq!(problem.body(), format!("{title}{rest}"));
    }

    #[test]
    fn a_change_that_was_made_is_not_denied() {
        let stopped = || Problem::from(Error::Stopped);
        assert_eq!(
            (stopped().code, stopped().after_change().code),
            (Code::Unavailable, Code::Unknown)
        );
        assert_eq!(Problem::from(Error::UnknownTimer).after_change().code, Code::UnknownTimer);
    }

    #[test]
    fn codes_are_unique() {
        let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.parts().1).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
    }
}
