//! The files of the page, which are part of the program, and the way to each.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::gate::{gate, headers};
use super::session::{self, Sessions};

/// Path, kind and text of each file; what it shares with the page of the server is there.
macro_rules! files {
    ($($kind:literal: $($name:literal)*;)*) => {
        &[$($(($name, $kind, include_str!(concat!("page/", $name)))),*),*]
    };
}

const FILES: &[(&str, &str, &str)] = files! {
    "text/html; charset=utf-8": "index.html";
    "text/css; charset=utf-8": "page.css";
    "text/javascript; charset=utf-8": "dial.js" "dots.js" "forms.js" "keeping.js"
        "lessons.js" "log.js" "main.js" "model.js" "panel.js" "player.js" "run.js" "scenarios.js"
        "shapes.js" "sparks.js" "story.js" "touch.js" "wire.js" "words.js";
};

/// The page on its own server.
pub(super) fn router() -> Router {
    page().layer(from_fn(gate))
}

/// The page, to mount where somebody else looks at the `Host` and the `Origin`. Its files name each other relatively.
pub fn page() -> Router {
    Router::new()
        .route("/live", get(session::upgrade))
        .with_state(Sessions::default())
        .fallback(file)
        .layer(from_fn(headers))
}

async fn file(uri: Uri) -> Response {
    let name = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    match FILES.iter().chain(tourbillon_server::SHARED).find(|file| file.0 == name) {
        Some((_, kind, text)) => ([(CONTENT_TYPE, *kind)], *text).into_response(),
        None => {
            (StatusCode::NOT_FOUND, "there is no such file: the page is at /\n").into_response()
        }
    }
}
