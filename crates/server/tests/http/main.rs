//! The API over HTTP. `world.rs` has the router in this process, under virtual time; `sockets.rs`, `webhooks.rs` and
//! `slow.rs` use real time.

mod access;
mod bad;
mod conditions;
mod deliveries;
mod events;
mod gate;
mod many;
mod map;
mod posts;
mod queues;
mod random;
mod schema;
mod slow;
mod sockets;
mod timers;
mod webhooks;
mod world;
