//! The gate: checks `Host` and `Origin` of every request, and sets the headers of every answer.
//!
//! A page of a foreign site may make a browser send requests to this server in two ways. The site may point its own
//! name at this machine (DNS rebinding); then the `Host` is not an allowed one. Or the page may send cross-site
//! requests; then the `Origin` is not the `Host`, or not as secure.

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName};
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::hosts::Hosts;
use crate::problem::{Code, Problem};
use crate::room::Revocable;

/// The server's wall clock when the answer was written.
pub(crate) const NOW: HeaderName = HeaderName::from_static("tourbillon-now");

/// Marks a request that came over this server's TLS.
#[derive(Clone, Copy)]
pub(crate) struct Secure;

/// Admits or refuses a request.
pub(crate) async fn gate(State(app): State<App>, request: Request, next: Next) -> Response {
    let hosts = &app.settings.hosts;
    let secure = request.extensions().get::<Secure>().is_some();
    let mut response = match check(hosts, request.uri(), request.headers(), secure) {
        Err(problem) => problem.into_response(),
        Ok(()) => {
            let may_change = request.method() != Method::GET;
            let response = next.run(request).await;
            let changes = may_change && response.extensions().get::<Revocable>().is_none();
            app.room.hold(response, changes)
        }
    };
    let now = app.durable.now().to_string();
    let headers = response.headers_mut();
    headers.extend(HeaderValue::from_str(&now).ok().map(|now| (NOW, now)));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn check(hosts: &Hosts, uri: &Uri, headers: &HeaderMap, secure: bool) -> Result<(), Problem> {
    let host = only(headers, header::HOST);
    // The first line of a request may also name the host. Both hosts must be allowed.
    let named = uri.authority().map(|authority| authority.as_str());
    let fine = host.is_some_and(|host| hosts.allow(host)) && named.is_none_or(|it| hosts.allow(it));
    if !fine && matches!(hosts, Hosts::Only(_)) {
        let detail = "the Host is not one of this server: use its address, or start it with --host";
        return Err(Problem::new(Code::ForeignHost, detail));
    }
    if headers.contains_key(header::ORIGIN) {
        let origin = only(headers, header::ORIGIN).and_then(|origin| origin.split_once("://"));
        let ours = origin.is_some_and(|(scheme, of)| {
            // A server without TLS may be behind one with it, which the browser sees.
            (scheme == "https" || scheme == "http" && !secure)
                && host.is_some_and(|host| host.eq_ignore_ascii_case(of))
        });
        if !ours {
            let detail =
                "a page of another site may not use this server: ask from a server of yours";
            return Err(Problem::new(Code::ForeignOrigin, detail));
        }
    }
    Ok(())
}

/// The value of a header that occurs exactly once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none());
    value?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_host() {
        let ask_over = |secure: bool, host: &str, origin: Option<&str>, uri: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            let asked = check(&Hosts::default(), &uri.parse().unwrap(), &headers, secure);
            asked.err().map(|problem| problem.code)
        };
        let ask = |host: &str, origin: Option<&str>, uri: &str| ask_over(false, host, origin, uri);
        let (foreign, host) = (Some(Code::ForeignOrigin), Some(Code::ForeignHost));
        for (origin, uri, expected) in [
            (None, "/", None),
            (Some("http://localhost:1"), "/", None),
            (Some("http://localhost:2"), "/", foreign),
            (Some("http://example.org"), "/", foreign),
            (Some("null"), "/", foreign),
            (Some("file://localhost:1"), "/", foreign),
            (None, "http://example.org/", host),
            (None, "http://127.0.0.1/", None),
        ] {
            assert_eq!(ask("localhost:1", origin, uri), expected, "{origin:?} {uri}");
        }
        // An attacker on the network can serve a page over http.
        for (origin, secure, expected) in [
            ("https://localhost:1", true, None),
            ("http://localhost:1", true, foreign),
            ("https://localhost:1", false, None),
        ] {
            assert_eq!(ask_over(secure, "localhost:1", Some(origin), "/"), expected, "{origin}");
        }
    }
}
