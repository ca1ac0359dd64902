//! Checks the token of every request before its handler runs.

use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

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

async fn check(app: &App, needed: Right, parts: &mut Parts) -> Result<Grant, Problem> {
    if needed == Right::Open {
        return Ok(Grant::everything());
    }
    let grant = app.access.grant(parts)?;
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
