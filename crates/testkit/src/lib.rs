//! What tests of Raincheck and of its embedders share.
//!
//! [`conformance`] holds every store to the same behaviour, the bundled ones and anybody's.
//! [`disk`] is a disk that loses power, fills up and fails. [`editor`] is a Unity editor without
//! Unity, [`dice`] is what simulated worlds are drawn with.

pub mod conformance;

pub mod dice;

pub mod editor;

#[cfg(target_os = "linux")]
pub mod disk;
