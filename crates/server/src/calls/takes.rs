//! What a call takes. Anything else in a request is refused: a client that sends it expects an effect.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::{HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use tourbillon::tasks::timeout;

use super::table::Call;
use crate::app::App;
use crate::params::Params;
use crate::problem::{Code, Problem};

/// Passes a request on if it has nothing that its call does not take.
pub(super) async fn takes(
    State((app, call)): State<(App, &'static Call)>,
    mut request: Request,
    next: Next,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let wrong = Params::read(query, call.query).err();
    let wrong = wrong.or_else(|| condition(call, request.method(), request.headers()));
    let wrong = match wrong {
        None if call.bodies.is_empty() => no_body(&app, request.body_mut()).await,
        wrong => wrong,
    };
    match wrong {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn condition(call: &Call, method: &Method, headers: &HeaderMap) -> Option<Problem> {
    let refuse = |name: &HeaderName, known: &str| {
        let detail = format!("{known} is not for this call: it would have no effect");
        headers.contains_key(name).then(|| Problem::new(Code::BadValue, detail).field(known))
    };
    if call.conditional {
        return None;
    }
    // A read may ignore If-None-Match, which only spares an answer that the client has already.
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let absent = if reads { None } else { refuse(&IF_NONE_MATCH, "If-None-Match") };
    refuse(&IF_MATCH, "If-Match").or(absent)
}

async fn no_body(app: &App, body: &mut Body) -> Option<Problem> {
    // Some clients send the end of a body in pieces without any.
    let empty = async {
        while !body.is_end_stream() {
            match body.frame().await {
                None => break,
                Some(Ok(frame)) if frame.data_ref().is_none_or(|data| data.is_empty()) => {}
                Some(_) => return false,
            }
        }
        true
    };
    let empty = timeout(app.settings.body_time, empty).await.unwrap_or(false);
    (!empty).then(|| Problem::new(Code::BadJson, "this call takes no body: leave it out"))
}

#[cfg(test)]
mod tests {
    use tourbillon_durable::Durable;
    use tower::ServiceExt;

    use super::super::table::{CALLS, TEST_CLOCK};
    use crate::{Api, Settings};

    use super::*;

    #[test]
    fn a_call_refuses_what_it_does_not_take() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let router = Api::new(Durable::memory().unwrap(), Settings::default()).router();
        let refused = |call: &Call, query: &str, header: Option<&str>, body: &str| {
            let path = call.path.replace("{queue}", "q").replace("{key}", "a");
            let method = call.method.to_uppercase();
            let request = Request::builder().method(&*method).uri(path + query);
            let request = request.header("host", "localhost");
            let request =
                header.into_iter().fold(request, |request, name| request.header(name, "\"1\""));
            let answer = router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap());
            let status = runtime.block_on(answer).unwrap().status();
            assert_eq!(status, 400, "{method} {} {query} {header:?} {body:?}", call.path);
        };
        for call in CALLS.iter().filter(|call| call.path != TEST_CLOCK) {
            refused(call, "?nonsense=1", None, "");
            if call.bodies.is_empty() {
                refused(call, "", None, "{}");
            }
            if !call.conditional {
                refused(call, "", Some("if-match"), "");
            }
            if !call.conditional && call.method != "get" {
                refused(call, "", Some("if-none-match"), "");
            }
        }
        let conditional: Vec<&str> =
            CALLS.iter().filter(|call| call.conditional).map(|call| call.method).collect();
        assert_eq!(conditional, ["put", "patch", "delete"]);
    }
}
