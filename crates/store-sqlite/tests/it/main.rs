//! The store against real files: what it promises to every caller, and across restarts.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets something else has failed"
)]

mod conformance;
mod content;
mod crash;
mod damage;
mod fixture;
mod kit;
mod owner;
mod reopen;
