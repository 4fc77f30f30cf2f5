//! Which names a request may ask for. A web page of another origin can make its own name lead to this machine (DNS rebinding)
//! and then read whatever is served here; but its requests still carry its name in the field `Host`. Addresses cannot be rebound.

use std::net::{IpAddr, Ipv6Addr};

/// Whether a request that came to `local` may carry this `Host` (RFC 9110, section 7.2): loopback names and addresses, and the
/// address that it came to. The port may be any: a tunnel changes it.
pub(crate) fn is_ours(host: &str, local: IpAddr) -> bool {
    let Some(name) = name_of(host) else { return false };
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let address = match name.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').and_then(|a| a.parse::<Ipv6Addr>().ok()).map(IpAddr::V6),
        None => name.parse().ok().filter(IpAddr::is_ipv4),
    };
    address.is_some_and(|a| a.to_canonical().is_loopback() || a.to_canonical() == local.to_canonical())
}

/// The field without its port; none where it is malformed.
fn name_of(host: &str) -> Option<&str> {
    let end = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let (name, port) = host.split_at(end);
    let digits = match port {
        "" => "",
        _ => port.strip_prefix(':')?,
    };
    digits.bytes().all(|b| b.is_ascii_digit()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_the_bound_address_are_ours() {
        let local = "192.168.7.4".parse().unwrap();
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:1",
            "[::1]",
            "192.168.7.4:9",
            "localhost:",
        ] {
            assert!(is_ours(host, local), "{host}");
        }
        assert!(is_ours("192.168.7.4", "::ffff:192.168.7.4".parse().unwrap()), "one address, in two ways");
    }

    #[test]
    fn other_names_and_addresses_are_not() {
        let local = "127.0.0.1".parse().unwrap();
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.7.4",
            "[::2]",
            "::1",
            "[::1",
            "localhost:80:80",
            "localhost:x",
            "localhost@evil.example",
            "[::1]x",
            "localhost ",
            "0.0.0.0",
        ] {
            assert!(!is_ours(host, local), "{host}");
        }
    }
}
