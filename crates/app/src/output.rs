//! What a command prints.

use std::io;

use crate::failure::Failure;
use crate::terminal;

/// Prints the output of a command.
///
/// # Errors
/// Why nothing could be printed.
pub fn print(text: &str) -> Result<(), Failure> {
    terminal::print(text).map_err(|error: io::Error| {
        Failure::failed(
            format!("cannot write to standard output: {error}"),
            "check where the output goes, such as a full disk",
        )
    })
}
