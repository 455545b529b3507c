//! The engine: the kernel, the tools, and what is done with both.

mod agenda;
mod drive;
mod jobs;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::kernel::Kernel;
use crate::tools::Tools;

pub(crate) use agenda::{Agenda, Done, Kind as JobKind};

/// The kernel and the tools.
pub(crate) struct Engine {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) tools: Tools,
    /// Whether what earlier servers left of tasks that the store does not have was removed.
    pub(crate) has_cleared: AtomicBool,
}
