//! What every Raincheck binary shares: flags, `raincheck.toml`, logging, process manners, `doctor`,
//! `status`, and what demos are made of.
//!
//! Nothing here knows a bridge or a tool set, and no word of MCP but how its cache is set up. A binary parses its flags with [`cli`], reads its
//! file with [`config`], prepares the process with [`logging`] and [`lifecycle`], and then composes
//! its parts from plain data.

pub mod checking;
pub mod cli;

mod binary;

pub mod config;

pub mod caching;

pub mod paths;

pub mod placed;

pub mod redact;

pub mod listeners;

pub mod instance;

pub mod standing;

pub mod logging;

pub mod lifecycle;

mod address;

mod http;

mod output;

pub mod host;

pub mod doctor;

pub mod status;

pub mod setup;

pub mod wrapped;

pub mod demo;

pub mod failure;

pub mod terminal;

mod suggest;

pub use binary::Binary;
pub use failure::{Exit, Failure};
