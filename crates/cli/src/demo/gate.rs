//! Which requests are accepted, and the headers of every answer.
//!
//! A page of a foreign site can make a browser send requests to this server in two ways. It can point its own name at
//! this machine (DNS rebinding); then the `Host` is a name, and only IP addresses and `localhost` are accepted. Or it
//! can open a WebSocket across sites, which browsers allow; then the `Origin` differs from the `Host`.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// No content from elsewhere, no inline scripts, no embedding in frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: &[(HeaderName, &str)] = &[
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    // Another version of this program may later serve other files at the same address.
    (header::CACHE_CONTROL, "no-store"),
];

/// Passes a request on, or refuses it.
pub(super) async fn gate(request: Request, next: Next) -> Response {
    match refusal(&request) {
        Some(refusal) => with_headers(refusal.into_response()),
        None => next.run(request).await,
    }
}

/// Adds the headers of every answer.
pub(super) async fn headers(request: Request, next: Next) -> Response {
    with_headers(next.run(request).await)
}

fn with_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refusal(request: &Request) -> Option<(StatusCode, &'static str)> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Some((
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET: the page sends its steps to /live\n",
        ));
    }
    let host = text(request.headers(), header::HOST);
    if !host.is_some_and(is_number_or_localhost) {
        return Some((
            StatusCode::FORBIDDEN,
            "come by the address that was printed: a number or localhost\n",
        ));
    }
    let origin = text(request.headers(), header::ORIGIN);
    let foreign = request.headers().contains_key(header::ORIGIN)
        && origin.and_then(|origin| origin.split_once("://")).map(|(_, host)| host) != host;
    foreign.then_some((StatusCode::FORBIDDEN, "a page of another site may not come here\n"))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Whether a host, with or without a port, cannot be a foreign name that resolves to this machine.
fn is_number_or_localhost(host: &str) -> bool {
    if let Some((six, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return six.parse::<Ipv6Addr>().is_ok();
    }
    let name = host.split(':').next().unwrap_or_default();
    name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_numbers() {
        for host in ["localhost", "LOCALHOST:7420", "127.0.0.1", "192.168.1.7:80", "[::1]:7420"] {
            assert!(is_number_or_localhost(host), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org:80", "127.0.0.1.example.org", "[x]", "::"]
        {
            assert!(!is_number_or_localhost(host), "{host}");
        }
    }
}
