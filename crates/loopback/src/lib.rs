//! Everything of Raincheck that listens.
//!
//! A listener is [`Options`], from which [`bind`] makes a [`Service`] to run and an [`Info`] to tell others.
//! It serves [`Surface`]s: routers, each with the [`Policy`] that every request to them must satisfy before
//! a handler sees it. What holds for all of them cannot be turned off: the `Host` must be this listener's,
//! pages of other sites are refused, heads and bodies have limits in size and time, connections are
//! counted, and nobody gets an `Access-Control` header [SEC-1, SEC-2, SEC-3, SEC-6].
//!
//! Clients find the listener through an [`endpoint`] file that only its owner can read [SEC-4].
//! [`client`] is how they call it.
//! [`websocket`] is for peers that stay connected.
//! [`attach`] is for processes that are served by another one of their binary.
//! [`artifacts`] serves files by signed links [ART-2], [`control`] takes calls of its owner's own programs.
//!
//! The crate reads no clock. Timers run on tokio's time and count only what the process could run
//! ([`awake`]), and any network that is an [`Accept`] can stand
//! in for real sockets, so that a simulation drives all of it.

pub mod awake;

mod error;

mod keys;

mod options;

mod secret;

pub mod port;

pub mod endpoint;

mod service;

mod gate;

mod health;

mod refusal;

pub mod artifacts;

mod mount;

pub mod control;

pub mod attach;

mod folder;

pub mod private;

pub mod ownership;

pub mod keeper;

pub mod client;

pub mod websocket;

pub use error::{Error, ErrorKind};
pub use keys::{Denied, Issued, Keys};
pub use mount::at;
pub use options::{Bearer, Later, Limits, Options, Origin, Policy, Surface};
pub use secret::Secret;
pub use service::{Accept, Info, Service, Sockets, bind, can_listen, over};
