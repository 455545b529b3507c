//! The execution contract of Raincheck as pure data and functions.
//!
//! Nothing in this crate reads a clock, draws a random number, spawns, logs or touches a file: every
//! function takes `now` and returns a value. [`lifecycle::TABLE`] is the only list of transitions,
//! [`decide::decide`] the only decider, [`ledger::Ledger`] the whole engine as a value, and
//! [`store::TaskStore`] the boundary that durable stores implement.
//!
//! Requirement ids in brackets (`[CANCEL-3]`) refer to `docs/spec`.

pub mod time;

pub mod ids;

pub mod scope;

pub mod lifecycle;

pub mod error;

pub mod content;

pub mod progress;

pub mod input;

pub mod trace;

pub mod deadline;

pub mod reply;

pub mod retry;

pub mod cancel;

pub mod idempotency;

pub mod lane;

pub mod slot;

pub mod worker;

pub mod tool;

pub mod task;

pub mod decide;

pub mod ledger;

pub mod log;

pub mod mac;

pub mod store;

pub mod shortage;

pub mod text;
