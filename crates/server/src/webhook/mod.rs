//! Webhooks: timers that are posted when they are due.
//!
//! | file | owns |
//! |---|---|
//! | `address.rs` | which addresses may be connected to. Pure |
//! | `target.rs` | which URLs and headers a webhook may have. Pure |
//! | `sign.rs` | secrets and signatures, after Standard Webhooks. Pure |
//! | `judge.rs` | what an answer means. Pure |
//! | `hosts.rs` | how many connections a host has, and what waits for one |
//! | `connect.rs` | resolving, checking and connecting |
//! | `agent.rs` | takes what is due, posts it, settles it |

mod address;
mod agent;
mod connect;
mod hosts;
mod judge;
mod sign;
mod target;

pub use address::Allow;
pub(crate) use agent::Agent;
pub use sign::Secrets;
pub(crate) use target::check;

/// Settings of webhooks.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// Which hosts may be posted to, beside public addresses.
    pub allow: Vec<Allow>,
    /// What signs the posts.
    pub secrets: Secrets,
    /// The most posts at once.
    pub most: usize,
    /// The most connections to a host.
    pub per_host: usize,
}

/// Public addresses only, unsigned, 4096 at once, 64 to a host.
impl Default for Webhooks {
    fn default() -> Self {
        Webhooks { allow: Vec::new(), secrets: Secrets::default(), most: 4096, per_host: 64 }
    }
}
