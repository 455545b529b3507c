//! What tests of Raincheck and of its embedders share.
//!
//! [`conformance`] holds every store to the same behaviour, the bundled ones and anybody's.

pub mod conformance;
