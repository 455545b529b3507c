//! Where connections come from.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// A network that connections come from: real sockets, or a simulation.
pub trait Accept: Send + 'static {
    /// One connection.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next connection; `None` when none will ever come.
    ///
    /// # Cancel safety
    /// An implementation must lose no connection when the future is dropped.
    fn accept(&mut self) -> impl Future<Output = Option<Self::Io>> + Send;

    /// Tells whether the peer of a connection is on this machine.
    fn is_local(io: &Self::Io) -> bool;
}

/// How many ports are tried until one is free on both loopback addresses.
const TRIES: u32 = 16;

/// The sockets of this machine: one address, and for IPv4 loopback the same port of IPv6 loopback.
#[derive(Debug)]
pub struct Sockets {
    address: SocketAddr,
    first: TcpListener,
    second: Option<TcpListener>,
    pause: Duration,
}

impl Sockets {
    /// Listens on an address, or on another port of it when that one is taken.
    pub(super) async fn open(address: SocketAddr) -> io::Result<Self> {
        let any = SocketAddr::new(address.ip(), 0);
        let mut result = Self::open_exactly(address).await;
        for _ in 0..TRIES {
            match &result {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Ok(_) | Err(_) => break,
            }
            result = Self::open_exactly(any).await;
        }
        result
    }

    /// Listens on an address, and no other.
    pub(super) async fn open_exactly(address: SocketAddr) -> io::Result<Self> {
        let first = TcpListener::bind(address).await?;
        let address = first.local_addr()?;
        let is_localhost = address.ip() == std::net::Ipv4Addr::LOCALHOST;
        let second = if is_localhost { open_v6(address.port()).await? } else { None };
        Ok(Self { address, first, second, pause: Duration::ZERO })
    }

    /// Returns where it listens.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.second {
            None => self.first.accept().await,
            Some(second) => tokio::select! {
                one = self.first.accept() => one,
                one = second.accept() => one,
            },
        }
    }
}

/// Listens on IPv6 loopback: a client that writes `localhost` may try it first, and must not meet a
/// stranger there. A machine without IPv6 has no stranger either.
async fn open_v6(port: u16) -> io::Result<Option<TcpListener>> {
    match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        Err(error) => {
            tracing::debug!(%error, "no IPv6 loopback");
            Ok(None)
        }
    }
}

impl Accept for Sockets {
    type Io = TcpStream;

    fn is_local(io: &TcpStream) -> bool {
        io.peer_addr().is_ok_and(|peer| is_of_this_machine(peer.ip()))
    }

    async fn accept(&mut self) -> Option<TcpStream> {
        const FIRST: Duration = Duration::from_millis(10);
        const LAST: Duration = Duration::from_secs(1);
        loop {
            match self.next().await {
                Ok((stream, _)) => {
                    self.pause = Duration::ZERO;
                    // Small answers should not wait for more to send; without it they are only later.
                    stream.set_nodelay(true).ok();
                    return Some(stream);
                }
                Err(error) if is_of_one_peer(&error) => {}
                Err(error) => {
                    // Such as no more descriptors: trying at once would only burn the processor.
                    tracing::warn!(%error, "no connection can be accepted");
                    self.pause = (self.pause * 2).clamp(FIRST, LAST);
                    tokio::time::sleep(self.pause).await;
                }
            }
        }
    }
}

/// Returns whether only this machine can be behind an address.
fn is_of_this_machine(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Returns whether a failed accept tells of one peer only.
fn is_of_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_this_machine_however_it_is_written_and_nothing_else_is() {
        for (address, is_local) in [
            ("127.0.0.1", true),
            ("127.8.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.7", false),
            ("::ffff:10.0.0.7", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(is_of_this_machine(address), is_local, "[SEC-1] {address}");
        }
    }
}
