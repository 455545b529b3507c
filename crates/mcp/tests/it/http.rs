//! The face at an HTTP endpoint, called as a `tower` service.

mod alone;
mod rig;
mod sessions;
