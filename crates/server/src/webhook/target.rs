//! Which URLs and headers a webhook may have.

use axum::http::{HeaderName, HeaderValue, Uri};
use tourbillon_durable::Webhook;

use super::address::{Allow, literal, may_connect};
use crate::problem::{Code, Problem};

/// Headers that the connection sets, so that a timer may not set them.
const RESERVED: &[&str] = &[
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
];

/// Checks a webhook before it is stored.
pub(crate) fn check(webhook: &Webhook, allow: &[Allow]) -> Result<(), Problem> {
    let wrong = |field: &str, why: &str| {
        Problem::new(Code::BadValue, format!("{field}: {why}")).field(field)
    };
    target(&webhook.url, allow).map_err(|why| wrong("webhook.url", why))?;
    for (name, value) in &webhook.headers {
        header(name, value.reveal()).map_err(|why| wrong("webhook.headers", why))?;
    }
    Ok(())
}

/// Parses the URL of a webhook. Refuses it if its text alone shows that posting is not allowed.
pub(super) fn target(url: &str, allow: &[Allow]) -> Result<Uri, &'static str> {
    let uri: Uri = url.parse().map_err(|_| "it is no URL: give one as https://example.com/path")?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("only http and https are posted to");
    }
    let Some(authority) = uri.authority() else { return Err("it has no host") };
    if authority.as_str().contains('@') {
        return Err("it has a user: send a header `authorization` instead");
    }
    let host = authority.host();
    let port = authority.as_str().strip_prefix(host).unwrap_or_default();
    if host.is_empty() || !port.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
        return Err("its host or its port is wrong");
    }
    if literal(host).is_some_and(|address| !may_connect(host, address, allow)) {
        return Err("its address is not public: allow it with --webhook-allow");
    }
    Ok(uri)
}

/// Checks a header of a timer.
pub(super) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let name: HeaderName = name.parse().map_err(|_| "a name is no name of a header")?;
    let text = name.as_str();
    let ours = ["webhook-", "tourbillon-", "proxy-"].iter().any(|prefix| text.starts_with(prefix));
    if ours || RESERVED.contains(&text) {
        return Err("a header is not the timer's to set: Host, Content-Length, those of the \
             connection, webhook-* and tourbillon-*");
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| "a value has control characters")?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked() {
        let allow = ["127.0.0.1".parse().unwrap(), "localhost".parse().unwrap()];
        for url in [
            "http://example.com",
            "https://example.com:8443/path?query=1",
            "http://127.0.0.1:80/",
            "http://2130706433/",
            "http://1.1.1.1/",
            "https://[2606:4700::1111]/",
            "http://localhost:1/",
        ] {
            assert!(target(url, &allow).is_ok(), "{url}");
        }
        for url in [
            "",
            "example.com",
            "/path",
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "http://",
            "http:///path",
            "http://user@example.com/",
            "http://user:pass@example.com/",
            "http://127.0.0.1@example.com/",
            "http://example.com:0/",
            "http://example.com:99999/",
            "http://example.com:/",
            "http://127.0.0.2/",
            "http://127.2/",
            "http://0x7f.2/",
            "http://017700000002/",
            "http://2130706434/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[64:ff9b::10.0.0.1]/",
            "http://169.254.169.254/latest/meta-data",
            "http://0/",
        ] {
            assert!(target(url, &allow).is_err(), "{url}");
        }
    }

    #[test]
    fn headers_are_checked() {
        for name in ["authorization", "X-Mine", "content-type", "traceparent"] {
            assert!(header(name, "value").is_ok(), "{name}");
        }
        for name in [
            "Host",
            "content-LENGTH",
            "connection",
            "te",
            "transfer-encoding",
            "upgrade",
            "webhook-id",
            "Webhook-Signature",
            "tourbillon-key",
            "proxy-authorization",
            "",
            "a b",
            "a:b",
            "ä",
        ] {
            assert!(header(name, "value").is_err(), "{name}");
        }
        for value in ["a\r\nb: c", "a\nb", "\0"] {
            assert!(header("x", value).is_err(), "{value:?}");
        }
        assert!(!format!("{:?}", header("x", "hush").unwrap()).contains("hush"));
    }
}
