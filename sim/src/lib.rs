//! A deterministic simulator of one durable shard, and the ledger that checks its promises.
//!
//! A seed decides everything: the requests of clients; when the disk writes, syncs, fails or loses data; when the
//! process dies; and how both clocks move. The shard and its store trait are production code. The ledger shares no code
//! with the shard: it records what was acknowledged, and checks each promise after every step.
//!
//! | module | what it holds |
//! |---|---|
//! | [`random`] | numbers from a seed, biased to edges |
//! | [`world`] | the runtime, the disk and the clocks of one shard |
//! | [`clients`] | the requests of clients |
//! | [`ledger`] | the promises, and the check of each |
//! | [`run`] | one run of a seed, many runs, and shortening a failing run |
//! | [`planted`] | faults that must be caught |

#![forbid(unsafe_code)]

#[macro_use]
pub mod planted;

pub mod clients;
pub mod ledger;
pub mod random;
pub mod run;
pub mod world;
