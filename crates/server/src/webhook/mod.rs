//! Webhooks: posting timers when they are due.
//!
//! | file | owns |
//! |---|---|
//! | `address.rs` | which addresses may be connected to. Pure |
//! | `target.rs` | which URLs and headers a webhook may have. Pure |
//! | `sign.rs` | secrets and signatures, by Standard Webhooks. Pure |
//! | `judge.rs` | the meaning of an answer. Pure |
//! | `hosts.rs` | the posts and connections per host, and the deliveries that wait for one |
//! | `connect.rs` | resolving, checking and connecting |
//! | `agent.rs` | takes due timers, posts and settles them |

mod address;
mod agent;
mod connect;
mod hosts;
mod judge;
mod sign;
mod target;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use address::Allow;
pub(crate) use agent::Agent;
pub use sign::Secrets;
pub(crate) use target::check;

/// Settings of webhooks.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// Hosts and networks that may be posted to, in addition to public addresses.
    pub allow: Vec<Allow>,
    /// The secrets that sign posts.
    pub secrets: Secrets,
    /// Maximum number of posts at once. There are at most twice as many connections, counting the idle ones.
    pub most: usize,
    /// Maximum number of connections to one host, counting the idle ones.
    pub per_host: usize,
    /// How long an idle connection is kept.
    pub idle: Duration,
}

/// Public addresses only, no signatures, 4096 posts at once, 64 connections per host, kept idle for 5 s.
impl Default for Webhooks {
    fn default() -> Self {
        // A connection to another host may have to wait until an idle one is closed.
        let (secrets, idle) = (Secrets::default(), Duration::from_secs(5));
        Webhooks { allow: Vec::new(), secrets, most: 4096, per_host: 64, idle }
    }
}
