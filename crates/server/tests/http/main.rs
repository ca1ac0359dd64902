//! The API through HTTP. `world.rs` is the router in process, under virtual time; `sockets.rs` and `webhooks.rs`
//! alone need real time.

mod access;
mod bad;
mod conditions;
mod deliveries;
mod events;
mod gate;
mod many;
mod map;
mod queues;
mod random;
mod schema;
mod slow;
mod sockets;
mod timers;
mod webhooks;
mod world;
