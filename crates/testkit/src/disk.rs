//! A disk that loses power, fills up and fails, under an unchanged program.
//!
//! A small library stands between the program and the system ([`Shim`]). It can record every change
//! of the program's files, in order, with what the program said in between ([`Recording`]). From a
//! recording any number of disks can be made as a loss of power might have left them ([`Disk`]).

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says why and ends"
)]

mod image;
mod random;
mod recording;
mod shim;

pub use image::{Disk, Loss, Tree};
pub use random::{Random, number_from};
pub use recording::{Change, Recording};
pub use shim::Shim;

#[cfg(test)]
mod tests;
