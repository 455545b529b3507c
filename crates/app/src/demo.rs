//! What the demos of the binaries share: a server as a child process, and what a person sees.
//!
//! A demo prints only what its server answered, and checks it first: it ends with 0 only if all of it
//! happened.

mod answer;
mod child;
mod transcript;

use std::fmt;
use std::future::Future;

use tokio::runtime;

use crate::failure::Failure;

pub use answer::Answer;
pub use child::Child;
pub use transcript::Transcript;

/// Something that did not happen as it should.
#[derive(Debug)]
pub struct Unmet(pub String);

impl<E: std::error::Error> From<E> for Unmet {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Goes on only if something holds.
///
/// # Errors
/// What is missing, when it does not hold.
pub fn expect(holds: bool, what: impl FnOnce() -> String) -> Result<(), Unmet> {
    if holds { Ok(()) } else { Err(Unmet(what())) }
}

/// Runs the demo of a binary.
///
/// # Errors
/// What did not happen, with the next step.
pub fn run(binary: &str, show: impl Future<Output = Result<(), Unmet>>) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let shown = match runtime {
        Ok(runtime) => runtime.block_on(show),
        Err(error) => Err(error.into()),
    };
    shown.map_err(|unmet| {
        let next =
            format!("run: {binary} doctor, and the demo again with RAINCHECK_LOG_LEVEL=debug");
        Failure::failed(format!("the demo did not go as it should: {unmet}"), next)
    })
}
