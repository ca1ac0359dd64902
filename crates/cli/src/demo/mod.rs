//! `tourbillon demo`: a page on which the wheels turn, and the small server behind it.
//!
//! ```text
//!   browser                          server
//!   GET /, /*.js, /*.css     ──────► the files of the page, from memory      (assets)
//!   WebSocket /live          ──────► one connection is one run               (session)
//!     1st message: a scenario ─────► it runs as far as its steps go
//!     then: arrays of steps   ─────► each is run as it comes
//!                            ◄────── an answer for each message: the lines of `replay`, and what changed
//! ```
//!
//! The page keeps the list of its steps, and the server keeps none: a connection that is lost, a link that is
//! opened, another way to drive and a server that was started anew are all the same first message.
//!
//! Promises: it serves this page and nothing else, to browsers that came to it by its number or as `localhost`.
//! Whatever is sent to it is refused in words or bounded: see the limits of [`serve`] and of the session.

mod answer;
mod assets;
mod gate;
mod serve;
mod session;

pub use assets::page;
pub use serve::{MOST_CONNECTIONS, listen, serve};
pub use session::{MOST_MESSAGE, MOST_SESSIONS, MOST_SLOTS, MOST_TIMERS};

/// The port, unless told otherwise or taken.
pub const PORT: u16 = 7420;
