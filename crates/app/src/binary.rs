//! What the shared commands have to know of the binary that they are part of.

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
    /// Tells whether its tools are the programs of the configuration file.
    #[must_use]
    pub fn runs_programs(&self) -> bool {
        self.sections.contains(&"tools")
    }
}
