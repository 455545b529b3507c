//! What the shared commands have to know of the binary that they are part of.

use std::fmt::Display;

use crate::failure::Failure;

/// A binary.
#[derive(Clone, Copy, Debug)]
pub struct Binary {
    /// Its name, which is that of its part of the state folder, too.
    pub name: &'static str,
    /// The sections of the configuration file that have an effect on it.
    pub sections: &'static [&'static str],
    /// What `status` advises while a server runs.
    pub while_running: &'static str,
    /// What `status` advises while none does.
    pub while_stopped: &'static str,
    /// What `doctor` advises when several servers share one store.
    pub on_shared_store: &'static str,
}

impl Binary {
    /// Makes the failure of a server that cannot do something.
    pub fn failed(&self, what: &str, error: &dyn Display) -> Failure {
        let next = format!("run: {} doctor", self.name);
        Failure::failed(format!("the server cannot {what}: {error}"), next)
    }

    /// Tells whether its tools are the programs of the configuration file.
    #[must_use]
    pub fn runs_programs(&self) -> bool {
        self.sections.contains(&"tools")
    }

    /// Tells whether it may serve the tools of another server.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.sections.contains(&"wrapped")
    }
}
