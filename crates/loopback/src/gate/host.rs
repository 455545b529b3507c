//! The names a listener goes by. A page that has its own name point here still sends its own name [SEC-2].

use std::net::{IpAddr, SocketAddr};

use http::uri::Authority;

use crate::refusal::Refusal;

/// The names and the port that clients may call a listener by.
///
/// A name that was given is the listener's on any port: a proxy in front of it has a port of its own,
/// and passes on what its clients wrote.
#[derive(Debug)]
pub(crate) struct Hosts {
    address: IpAddr,
    port: u16,
    names: Vec<String>,
}

impl Hosts {
    pub(crate) fn new(address: SocketAddr, names: Vec<String>) -> Self {
        Self { address: address.ip(), port: address.port(), names }
    }

    /// Returns whether other machines reach the listener.
    pub(crate) const fn is_remote(&self) -> bool {
        !self.address.is_loopback()
    }

    /// Checks a `Host` value or the authority of a target.
    pub(crate) fn check(&self, value: &[u8]) -> Result<(), Refusal> {
        let authority = Authority::try_from(value).map_err(|_| Refusal::MalformedHost)?;
        let text = authority.as_str();
        if text.contains('@') || text.ends_with(':') || authority.host().is_empty() {
            return Err(Refusal::MalformedHost);
        }
        if has_port(&authority) && authority.port_u16().is_none() {
            return Err(Refusal::MalformedHost);
        }
        let is_port = authority.port_u16().unwrap_or(80) == self.port;
        if self.is_given(authority.host()) || is_port && self.is_own_name(authority.host()) {
            Ok(())
        } else {
            Err(Refusal::ForeignHost)
        }
    }

    /// Tells whether the name is one that the owner wrote down.
    fn is_given(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Tells whether the name is one that everybody knows.
    fn is_own_name(&self, name: &str) -> bool {
        let number = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match number {
            // A number cannot be made to point elsewhere, so that a remote listener takes any.
            Ok(number) => is_own_loopback(number) || self.is_remote(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// Returns whether the number is one of the two that a loopback listener listens on.
fn is_own_loopback(number: IpAddr) -> bool {
    match number {
        IpAddr::V4(number) => number == std::net::Ipv4Addr::LOCALHOST,
        IpAddr::V6(number) => number == std::net::Ipv6Addr::LOCALHOST,
    }
}

fn has_port(authority: &Authority) -> bool {
    authority.as_str().len() > authority.host().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, host: &str) -> Result<(), Refusal> {
        let address = address.parse().expect("an address");
        Hosts::new(address, vec!["box.example".to_owned()]).check(host.as_bytes())
    }

    #[test]
    fn a_loopback_listener_is_called_by_its_loopback_names_and_port() {
        for good in ["127.0.0.1:4711", "localhost:4711", "LOCALHOST:4711", "[::1]:4711"] {
            assert_eq!(check("127.0.0.1:4711", good), Ok(()), "[SEC-2] {good}");
        }
        let foreign = [
            "evil.example",
            "evil.example:4711",
            "127.0.0.1.evil.example:4711",
            "localhost.evil.example:4711",
            "localhost",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.0.0.2:4711",
            "0.0.0.0:4711",
            "2130706433:4711",
            "0x7f000001:4711",
            "[::]:4711",
            "box.example.evil.example",
            "10.0.0.7:4711",
        ];
        for host in foreign {
            assert_eq!(check("127.0.0.1:4711", host), Err(Refusal::ForeignHost), "[SEC-2] {host}");
        }
        let malformed = [
            "",
            ":4711",
            "localhost:",
            "localhost:port",
            "localhost:99999",
            "a@localhost:4711",
            "a b",
        ];
        for host in malformed {
            assert_eq!(
                check("127.0.0.1:4711", host),
                Err(Refusal::MalformedHost),
                "[SEC-2] {host}"
            );
        }
    }

    #[test]
    fn the_port_may_be_left_out_only_where_it_is_the_one_of_the_scheme() {
        assert_eq!(check("127.0.0.1:80", "localhost"), Ok(()));
        assert_eq!(check("127.0.0.1:80", "evil.example"), Err(Refusal::ForeignHost));
    }

    #[test]
    fn a_remote_listener_is_called_by_numbers_and_by_the_names_it_was_given() {
        for good in ["10.0.0.7:4711", "[fe80::1]:4711", "box.example:4711", "localhost:4711"] {
            assert_eq!(check("0.0.0.0:4711", good), Ok(()), "{good}");
        }
        for host in ["evil.example:4711", "10.0.0.7:1", "localhost", "evil.example"] {
            assert_eq!(check("0.0.0.0:4711", host), Err(Refusal::ForeignHost), "[SEC-2] {host}");
        }
    }

    #[test]
    fn behind_a_proxy_a_name_that_was_given_is_good_with_the_port_of_the_proxy() {
        for address in ["127.0.0.1:4711", "0.0.0.0:4711"] {
            for host in ["box.example", "BOX.example:443", "box.example:4711"] {
                assert_eq!(check(address, host), Ok(()), "[SEC-2] {address} {host}");
            }
        }
    }
}
