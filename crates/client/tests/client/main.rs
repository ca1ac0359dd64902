//! The client against a real server on loopback, and against one that loses what it is sent.

mod calls;
mod repeats;
mod served;
