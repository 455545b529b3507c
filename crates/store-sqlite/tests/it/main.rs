//! The store against real files: what it promises to every caller, and across restarts.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets something else has failed"
)]

mod apart;
mod conformance;
mod content;
mod crash;
mod damage;
mod fixture;
mod kit;
mod owner;
#[cfg(target_os = "linux")]
mod power;
mod reader;
mod reopen;
mod settled;
#[cfg(target_os = "linux")]
mod syncs;
#[cfg(target_os = "linux")]
mod work;
