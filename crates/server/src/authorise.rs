//! Checks the token of every request before its handler runs.

use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::tokens::{Grant, Right};

/// Admits a request if its token grants the right that the call needs, in the queue of its path.
pub(crate) async fn authorise(
    State((app, needed)): State<(App, Right)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    match check(&app, needed, &mut parts).await {
        Ok(grant) => {
            parts.extensions.insert(grant);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Moves the token of a WebSocket to the header `Authorization`, unless there is one.
pub(crate) async fn token_of_socket(mut request: Request, next: Next) -> Response {
    let headers = request.headers_mut();
    if !headers.contains_key(AUTHORIZATION) {
        let names = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
        let names =
            names.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        let token = names.filter_map(|name| name.trim().strip_prefix("token.")).next();
        let token = token.and_then(|token| BASE64.decode(token).ok());
        let bearer = token.map(|token| [b"Bearer ", &*token].concat());
        if let Some(mut bearer) = bearer.and_then(|bearer| HeaderValue::from_bytes(&bearer).ok()) {
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
    }
    next.run(request).await
}

async fn check(app: &App, needed: Right, parts: &mut Parts) -> Result<Grant, Problem> {
    if needed == Right::Open {
        return Ok(Grant::everything());
    }
    let grant = app.access.grant(&parts.headers)?;
    if let Some(rate) = app.settings.token_rate {
        app.access.count(&grant.name, rate)?;
    }
    grant.must(needed)?;
    // If the path cannot be decoded, the handler refuses it.
    if let Ok(params) = RawPathParams::from_request_parts(parts, app).await {
        let queue = params.iter().find(|(name, _)| *name == "queue").map(|(_, queue)| queue);
        if queue.is_some_and(|queue| !grant.sees(queue)) {
            let detail = "the token is for other queues: use one of this queue";
            return Err(Problem::new(Code::Forbidden, detail));
        }
    }
    Ok(grant)
}

impl FromRequestParts<App> for Grant {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let missing = || Problem::new(Code::Internal, "the call was not authorised");
        parts.extensions.get().cloned().ok_or_else(missing)
    }
}
