//! A small broker. A produce request that asks for "all replicas" waits in the purgatory until the followers have
//! fetched the record, or is answered with a timeout; a fetch waits until a minimum number of bytes is available.
//!
//! Run it with `cargo run -p tourbillon --example replication`. Time is virtual: the output is the same every time, and
//! `tests/replication.rs` checks it.

#[path = "replication/broker.rs"]
mod broker;
#[path = "replication/story.rs"]
mod story;

fn main() {
    for line in story::tell() {
        println!("{line}");
    }
}
