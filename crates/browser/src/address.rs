//! Which addresses a browser may be sent to [SEC-7].
//!
//! The address is read as browsers read it, so that `0xA9FEA9FE` is the address it is. Names are not
//! looked up: the browser does that, and what a name stands for can change in between.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use raincheck_core::error::{Error, Kind};
use url::{Host, Url};

/// Names of the metadata services of clouds.
const METADATA_NAMES: &[&str] = &["metadata.google.internal", "metadata.goog", "metadata"];

/// Addresses of metadata services beyond the link-local ones.
const METADATA_ADDRESSES: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Checks an address.
///
/// # Errors
/// `url_blocked` when it may not be opened, `invalid_params` when it is no address.
pub(crate) fn check(field: &str, address: &str, own_port: Option<u16>) -> Result<(), Error> {
    let url = Url::parse(address).map_err(|error| {
        let words = format!("`{field}` is no whole address: {error}");
        Error::new(Kind::InvalidParams, words).with_hint("write it with its scheme: https://…")
    })?;
    let blocked = |why: &str| Err(Error::new(Kind::UrlBlocked, format!("`{field}` {why}")));
    match url.scheme() {
        "http" | "https" => {}
        "about" if url.path() == "blank" => return Ok(()),
        scheme => return blocked(&format!("has the scheme `{scheme}:`, which may not be opened")),
    }
    let address = match url.host() {
        None => return blocked("names no host"),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            if METADATA_NAMES.contains(&name) {
                return blocked("is a metadata service");
            }
            let is_here = name == "localhost" || name.ends_with(".localhost");
            is_here.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))
        }
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(plain(address)),
    };
    let Some(address) = address else { return Ok(()) };
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    };
    if is_link_local || METADATA_ADDRESSES.contains(&address) {
        return blocked("is a link-local address or a metadata service");
    }
    let is_here = address.is_loopback() || address.is_unspecified();
    if is_here && own_port.is_some() && url.port_or_known_default() == own_port {
        return blocked("is this server's own listener");
    }
    Ok(())
}

/// Unwraps an IPv4 address that is written as one of IPv6.
fn plain(address: Ipv6Addr) -> IpAddr {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let is_mapped = [a, b, c, d, e] == [0; 5] && (f == 0xffff || f == 0 && high != 0);
    let is_translated = [a, b, c, d, e, f] == [0x64, 0xff9b, 0, 0, 0, 0];
    if is_mapped || is_translated {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    }
    IpAddr::V6(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(address: &str) -> Option<Kind> {
        check("url", address, Some(4711)).err().map(|error| error.kind)
    }

    #[test]
    fn what_may_not_be_opened_is_refused_however_it_is_spelled() {
        // [SEC-7, BROWSER-16]
        for address in [
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            " file:///etc/passwd",
            "chrome://settings",
            "javascript:alert(1)",
            "java\nscript:alert(1)",
            "data:text/html,hi",
            "view-source:file:///etc/passwd",
            "blob:https://example.com/1",
            "ftp://example.com/",
            "about:config",
            "http://169.254.169.254/latest",
            "http://2852039166/",
            "http://0xA9FEA9FE/",
            "http://0251.0376.0251.0376/",
            "http://[fe80::1]/",
            "http://[::ffff:169.254.169.254]/",
            "http://[64:ff9b::169.254.169.254]/",
            "http://[fd00:ec2::254]/",
            "http://metadata.google.internal./",
            "http://127.0.0.1:4711/health",
            "http://localhost:4711/",
            "http://LOCALHOST.:4711/",
            "http://a.localhost:4711/",
            "http://[::1]:4711/",
            "http://[::ffff:127.0.0.1]:4711/",
            "http://0.0.0.0:4711/",
            "http://127.1:4711/",
        ] {
            assert_eq!(kind(address), Some(Kind::UrlBlocked), "{address}");
        }
    }

    #[test]
    fn ordinary_addresses_may_be_opened_also_on_this_machine() {
        for address in [
            "https://example.com/",
            "http://127.0.0.1:8080/page",
            "http://localhost/",
            "about:blank",
            "http://[2001:db8::1]/",
            "http://10.0.0.1/",
        ] {
            assert_eq!(kind(address), None, "{address}");
        }
        assert_eq!(kind("example.com"), Some(Kind::InvalidParams));
        assert_eq!(kind(""), Some(Kind::InvalidParams));
    }
}
