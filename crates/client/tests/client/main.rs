//! The client against a real server on loopback, and against one that loses requests.

mod calls;
mod repeats;
mod served;
