//! The hosts that a request may name.

use std::net::IpAddr;

/// The hosts that requests may name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Hosts {
    /// Any host. Use this only if something else checks the host.
    Any,
    /// `localhost`, loopback addresses, and these names and addresses, with any port.
    Only(Vec<String>),
}

/// Loopback only.
impl Default for Hosts {
    fn default() -> Self {
        Hosts::Only(Vec::new())
    }
}

impl Hosts {
    /// Whether a request may name this host, with or without a port.
    pub(crate) fn allow(&self, host: &str) -> bool {
        let Hosts::Only(names) = self else { return true };
        let Some(name) = without_port(host) else { return false };
        let address = name.parse::<IpAddr>().ok();
        name.eq_ignore_ascii_case("localhost")
            || address.is_some_and(|address| address.is_loopback())
            || names.iter().any(|allowed| {
                let allowed = allowed.trim_start_matches('[').trim_end_matches(']');
                allowed.eq_ignore_ascii_case(name)
                    || address.is_some() && allowed.parse().ok() == address
            })
    }
}

/// The host of `host` or `host:port`, without brackets; `None` if it is neither.
fn without_port(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(six) => six.split_once(']')?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = rest.strip_prefix(':');
    let fine = rest.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_ok());
    (fine && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_loopback_or_named() {
        let hosts =
            Hosts::Only(vec!["Timers.example".into(), "10.0.0.7".into(), "[fd00::1]".into()]);
        for host in [
            "localhost",
            "LOCALHOST:7420",
            "127.0.0.1:7420",
            "127.9.9.9",
            "[::1]:7420",
            "timers.example:443",
            "10.0.0.7",
            "[fd00:0::1]",
        ] {
            assert!(hosts.allow(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "127.0.0.1:x",
            "127.0.0.1:7420:1",
            "10.0.0.8",
            "::1",
            "[::1",
            "[::1]x",
            "0.0.0.0",
            "localhost@evil.example",
        ] {
            assert!(!hosts.allow(host), "{host}");
        }
    }
}
