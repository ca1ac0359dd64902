//! The web page at `/`. Its files are part of the program.

use axum::http::Uri;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::IntoResponse;

use super::Reply;
use crate::problem::unknown_path;

/// Forbids all content from other origins, inline code and styles, and framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The name, content type and text of each file.
macro_rules! files {
    ($($kind:literal: $($name:literal)*;)*) => {
        &[$($(($name, $kind, include_str!(concat!("../page/", $name)))),*),*]
    };
}

/// Files shared with the pages beside this one, such as `base.css`: name, content type and text of each.
///
/// ```
/// assert!(tourbillon_server::SHARED.iter().any(|(name, ..)| *name == "base.css"));
/// ```
pub const SHARED: &[(&str, &str, &str)] = files! {
    "text/css; charset=utf-8": "base.css";
    "text/javascript; charset=utf-8": "shared.js";
    "image/svg+xml": "icon.svg";
};

const FILES: &[(&str, &str, &str)] = files! {
    "text/html; charset=utf-8": "index.html";
    "text/css; charset=utf-8": "page.css";
    "text/javascript; charset=utf-8": "api.js" "coming.js" "events.js" "main.js" "play.js" "queues.js" "rows.js"
        "timer.js" "timers.js" "words.js";
};

/// The paths of the files. The index is at `/`.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    let names = FILES.iter().chain(SHARED).map(|(name, ..)| *name);
    names.map(|name| if name == "index.html" { "/".into() } else { format!("/{name}") })
}

pub(crate) async fn file(uri: Uri) -> Reply {
    let name = if uri.path() == "/" { "index.html" } else { &uri.path()[1..] };
    let found = FILES.iter().chain(SHARED).find(|(known, ..)| *known == name);
    let (_, kind, text) = found.ok_or_else(unknown_path)?;
    let headers = [
        (CONTENT_TYPE, *kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
    ];
    Ok((headers, *text).into_response())
}
