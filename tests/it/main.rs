//! End-to-end tests and model checking.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on says why and ends"
)]

mod input;
mod model;
mod model_check;
mod model_tasks;

#[cfg(target_os = "linux")]
mod attach;

#[cfg(target_os = "linux")]
mod cached;
mod disk;
#[cfg(target_os = "linux")]
mod durable;
#[cfg(target_os = "linux")]
mod kill;
#[cfg(unix)]
mod leftovers;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod manners;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod programs;
mod rounds;
#[cfg(target_os = "linux")]
mod sdk;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod shortage;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod status;
#[cfg(target_os = "linux")]
mod stopped;
#[cfg(target_os = "linux")]
mod tasks;
#[cfg(target_os = "linux")]
mod tasks_command;
#[cfg(target_os = "linux")]
mod web;
#[cfg(target_os = "linux")]
mod wrapped;
#[cfg(target_os = "linux")]
mod wraps;
