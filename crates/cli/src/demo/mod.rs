//! `tourbillon demo`: a page on which the wheels turn, and the small server behind it.
//!
//! ```text
//!   browser                          server
//!   GET /, /*.js, /*.css     ──────► the files of the page, from memory      (assets)
//!   WebSocket /live          ──────► one connection is one run               (session)
//!     1st message: a scenario ─────► runs the steps that it has
//!     then: arrays of steps   ─────► runs each array on arrival
//!                            ◄────── an answer for each message: the lines of `replay`, and what changed
//! ```
//!
//! The page keeps the list of its steps, and the server keeps none: after a lost connection, an opened link, a change
//! of the drive or a restart of the server, the page sends the whole scenario as a first message.
//!
//! The server serves this page and nothing else, to browsers that use its IP address or `localhost`. Every request is
//! bounded, or refused with a message: see the limits of [`serve`] and of the session.

mod answer;
mod assets;
mod gate;
mod serve;
mod session;

pub use assets::page;
pub use serve::{MOST_CONNECTIONS, listen, serve};
pub use session::{MOST_MESSAGE, MOST_SESSIONS, MOST_SLOTS, MOST_TIMERS};

/// The default port, unless it is taken.
pub const PORT: u16 = 7420;
