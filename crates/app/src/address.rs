//! Addresses to listen on, as people write them.

use std::net::{Ipv4Addr, SocketAddr};

/// Reads the address that `--http` names: a port of loopback, or a host and a port.
pub(crate) fn http_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    local.as_deref().unwrap_or(text).parse().map_err(|_| {
        "write a port, or a numeric host and a port, such as 127.0.0.1:7700".to_owned()
    })
}
