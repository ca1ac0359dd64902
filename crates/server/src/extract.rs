//! Extractors of handlers: the queue and the key of the path, the query, the body.

use axum::body::Body as Incoming;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tourbillon::tasks::timeout;
use tourbillon_durable::Queue;
use tourbillon_durable::values::Key;

use crate::app::App;
use crate::fields::check_depth;
use crate::problem::{Code, Problem, unknown_path};
use crate::room::{Place, Room, SMALL};

/// Maximum size of a body in bytes.
pub(crate) const LARGEST_BODY: usize = 16 << 20;

/// The queue in the path.
pub(crate) struct InQueue(pub(crate) Queue);

impl FromRequestParts<App> for InQueue {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let name = segment(parts, app, "queue").await?;
        let queue = app.durable.queue(&name);
        queue.map(InQueue).map_err(|wrong| Problem::refused("queue", &wrong))
    }
}

/// The key in the path.
pub(crate) struct AtKey(pub(crate) Key);

impl FromRequestParts<App> for AtKey {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let key = segment(parts, app, "key").await?;
        Key::new(&key).map(AtKey).map_err(|wrong| Problem::refused("key", &wrong))
    }
}

/// A segment of the path. Paths are split before they are decoded.
async fn segment(parts: &mut Parts, app: &App, name: &str) -> Result<String, Problem> {
    let params = RawPathParams::from_request_parts(parts, app).await.map_err(|wrong| {
        let wrong = wrong.body_text();
        let field = if wrong.contains("`key`") { "key" } else { "queue" };
        let detail = format!("the {field} in the path cannot be decoded: encode it as UTF-8");
        Problem::new(Code::BadValue, detail).field(field)
    })?;
    let found = params.iter().find(|(of, _)| *of == name).map(|(_, value)| value.to_owned());
    // A segment is empty if the path has two slashes in a row, or one at the end.
    found.filter(|segment| !segment.is_empty()).ok_or_else(unknown_path)
}

/// The raw query.
pub(crate) struct Query(pub(crate) String);

impl FromRequestParts<App> for Query {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(Query(parts.uri.query().unwrap_or_default().to_owned()))
    }
}

/// The text of a JSON body within the depth limit, and its permit. An empty body counts as an empty object.
pub(crate) struct Body(pub(crate) String, pub(crate) Place);

impl FromRequest<App> for Body {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let declared = length(&parts.headers)?;
        let (text, place) =
            match timeout(app.settings.body_time, read(body, declared, &app.room)).await {
                Ok(read) => read?,
                Err(_) => {
                    let detail = "the body did not arrive in time: send it faster, or in pieces";
                    return Err(Problem::new(Code::Timeout, detail));
                }
            };
        if text.is_empty() && declared.is_none_or(|length| length == 0) {
            return Ok(Body("{}".into(), place));
        }
        check_kind(&parts.headers)?;
        check_depth(&text)?;
        Ok(Body(text, place))
    }
}

/// The length that the request declares.
fn length(headers: &HeaderMap) -> Result<Option<usize>, Problem> {
    let declared =
        headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match declared {
        Some(length) if length > LARGEST_BODY => Err(too_large()),
        declared => Ok(declared),
    }
}

fn too_large() -> Problem {
    let detail = format!("the body has more than {LARGEST_BODY} bytes: split the request");
    Problem::new(Code::BodyTooLarge, detail)
}

/// Reads a body. The permit for each piece is taken before the piece is stored.
async fn read(
    body: Incoming,
    declared: Option<usize>,
    room: &Room,
) -> Result<(String, Place), Problem> {
    let mut body = Limited::new(body, LARGEST_BODY);
    // A client may declare more than it sends, so only uncounted bytes are reserved.
    let mut bytes = Vec::with_capacity(declared.unwrap_or_default().min(SMALL));
    let mut place = Place::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return too_large();
            }
            Problem::new(Code::BadJson, format!("the body did not arrive: {error}"))
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        room.grow(&mut place, bytes.len() + piece.len())?;
        bytes.extend_from_slice(&piece);
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        Problem::new(Code::BadJson, format!("the body is not UTF-8: {}", error.utf8_error()))
    })?;
    Ok((text, place))
}

/// Checks that the body's type is JSON, and that it has no content encoding.
fn check_kind(headers: &HeaderMap) -> Result<(), Problem> {
    let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let detail = "the Content-Type must be application/json";
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    if !headers.get_all(CONTENT_ENCODING).iter().all(plain) {
        let detail = "a body is taken as it is: send it without Content-Encoding";
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    Ok(())
}
