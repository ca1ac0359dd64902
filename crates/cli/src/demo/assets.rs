//! The files of the page, which are compiled into the program, and their routes.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::gate::{gate, headers};
use super::session::{self, Sessions};

/// The path, content type and text of each file. Files shared with the server's page are in the server's crate.
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

/// The page as a server of its own.
pub(super) fn router() -> Router {
    page(|live| live).layer(from_fn(gate))
}

/// The page, to mount where another layer checks the `Host` and the `Origin`. Its files link to each other relatively.
/// `guard` adds checks to the WebSocket, through which a client makes the server work. The files need none.
pub fn page(guard: impl FnOnce(Router) -> Router) -> Router {
    let live = Router::new().route("/live", get(session::upgrade));
    guard(live.with_state(Sessions::default())).fallback(file).layer(from_fn(headers))
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
