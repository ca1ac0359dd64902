//! Which addresses webhooks may connect to: public ones, and those explicitly allowed.
//!
//! A webhook's URL comes from a client, and must not give that client access to hosts that only the server can reach.
//! So the address of each connection is checked, in every form: an IPv4 address may be written with fewer parts or in
//! other bases, and may be embedded in an IPv6 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A host or a network that may be posted to, such as `hooks.internal`, `10.0.0.7` or `10.0.0.0/8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Host(String),
    Net(IpAddr, u8),
}

impl FromStr for Allow {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no host, no address and no network as 10.0.0.0/8");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let plain = address.trim_start_matches('[').trim_end_matches(']');
        let Ok(address) = plain.parse::<IpAddr>() else {
            let named = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            let fine = length.is_none() && !text.is_empty() && text.bytes().all(named);
            let host = text.trim_end_matches('.').to_ascii_lowercase();
            return if fine { Ok(Allow(Rule::Host(host))) } else { Err(wrong()) };
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Some(most), |length| length.parse().ok());
        let length = length.filter(|length| *length <= most).ok_or_else(wrong)?;
        Ok(Allow(Rule::Net(address, length)))
    }
}

impl Allow {
    /// Whether it names this host.
    pub(super) fn is_host(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        matches!(&self.0, Rule::Host(name) if name.eq_ignore_ascii_case(host))
    }

    /// Whether it contains this address.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        let Rule::Net(net, length) = &self.0 else { return false };
        let (net, address, width) = match (net, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(address)) => {
                (u128::from(net.to_bits()), u128::from(address.to_bits()), 32)
            }
            (IpAddr::V6(net), IpAddr::V6(address)) => (net.to_bits(), address.to_bits(), 128),
            _ => return false,
        };
        let rest = width - u32::from(*length);
        net.checked_shr(rest).unwrap_or(0) == address.checked_shr(rest).unwrap_or(0)
    }
}

/// Whether webhooks may connect to an address of a host.
pub(super) fn may_connect(host: &str, address: IpAddr, allow: &[Allow]) -> bool {
    is_public(address) || allow.iter().any(|allow| allow.is_host(host) || allow.has(address))
}

/// Whether an address is publicly reachable.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network, private, loopback, multicast and reserved.
        (0 | 10 | 127 | 224..=255, ..) => true,
        // Carrier-grade NAT.
        (100, 64..=127, _) => true,
        // Link-local, including the metadata services of clouds.
        (169, 254, _) => true,
        (172, 16..=31, _) | (192, 168, _) => true,
        // Protocol assignments, documentation, 6to4 relays, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) => true,
        (198, 51, 100) | (203, 0, 113) => true,
        _ => false,
    };
    // Azure's virtual machines reach a service of their host at this public address.
    !special && address.octets() != [168, 63, 129, 16]
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let inner = |at: usize| {
        Ipv4Addr::from_bits(u32::from(segments[at]) << 16 | u32::from(segments[at + 1]))
    };
    match segments {
        // An embedded IPv4 address: mapped, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(inner(6)),
        [0x2002, ..] => is_public_v4(inner(1)),
        // Teredo and other protocols, documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // In the rest, only 2000::/3 is allocated for public use.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// The address that a URL's host denotes, in any form a resolver accepts: `127.1`, `0x7f000001`, `017700000001`.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    if let Some(six) = host.strip_prefix('[') {
        return six.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let parts: Vec<&str> = host.strip_suffix('.').unwrap_or(host).split('.').collect();
    let numbers: Vec<u64> = parts.iter().map(|part| number(part)).collect::<Option<_>>()?;
    let (last, first) = numbers.split_last()?;
    let room = 4_usize.checked_sub(first.len())?;
    if room == 0 || first.iter().any(|number| *number > 255) || last >> (8 * room) != 0 {
        return None;
    }
    let high = first.iter().enumerate().map(|(at, number)| number << (24 - 8 * at)).sum::<u64>();
    u32::try_from(high | last).ok().map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)))
}

/// A number in decimal, in hexadecimal with `0x`, or in octal with `0`.
fn number(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, base) = match lower.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(hex) => (hex, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&*lower, 10),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, base).ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_public() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "4000::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "9.9.9.9",
            "100.63.255.255",
            "100.128.0.0",
            "168.63.129.17",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn every_spelling_of_an_address() {
        let loopback = Some("127.0.0.1".parse().unwrap());
        for host in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0X7F.1",
            "0177.0.0.1",
            "017700000001",
            "127.0.0.1.",
            "0x7f.0x0.0x0.0x1",
            "127.0x1",
        ] {
            assert_eq!(literal(host), loopback, "{host}");
        }
        assert_eq!(literal("[::1]"), Some("::1".parse().unwrap()));
        assert_eq!(literal("[::ffff:127.0.0.1]"), Some("::ffff:127.0.0.1".parse().unwrap()));
        for host in [
            "example.org",
            "1.2.3.4.5",
            "256.1.1.1",
            "4294967296",
            "1.1.65536",
            "a.1",
            "",
            "[::1",
            "08.1",
        ] {
            assert_eq!(literal(host), None, "{host}");
        }
    }

    #[test]
    fn hosts_and_networks_are_allowed() {
        let allow = |text: &str| text.parse::<Allow>();
        for (rule, host, address, may) in [
            ("hooks.internal", "HOOKS.internal.", "10.0.0.1", true),
            ("hooks.internal", "other.internal", "10.0.0.1", false),
            ("10.0.0.0/8", "any", "10.9.9.9", true),
            ("10.0.0.0/8", "any", "::ffff:10.9.9.9", true),
            ("10.0.0.0/8", "any", "11.0.0.1", true),
            ("10.0.0.0/8", "any", "192.168.0.1", false),
            ("127.0.0.1", "any", "127.0.0.1", true),
            ("127.0.0.1", "any", "127.0.0.2", false),
            ("0.0.0.0/0", "any", "127.0.0.2", true),
            ("::/0", "any", "::1", true),
            ("fd00::/8", "any", "fd12::1", true),
            ("[::1]", "any", "::1", true),
        ] {
            let rules = [allow(rule).unwrap()];
            assert_eq!(
                may_connect(host, address.parse().unwrap(), &rules),
                may,
                "{rule} {host} {address}"
            );
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/x", "a/8", "http://a", "a b", "::/129", "*"] {
            assert!(allow(wrong).is_err(), "{wrong}");
        }
    }
}
