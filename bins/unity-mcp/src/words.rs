//! What the surface must know of the bridge.

use std::collections::HashMap;

use raincheck::core::error::Error;
use raincheck::core::ids::LaneId;
use raincheck::mcp::surfaces::operations::{Bridge, HeldUp, Manner, Mode};
use raincheck_unity::{ExecutionMode, Settings, Unity};

/// The tools of the bridge as the surface tells them.
#[derive(Debug)]
pub(crate) struct Words {
    bridge: Unity,
    manners: HashMap<String, Manner>,
}

impl Words {
    /// Describes the tools as they are with these settings.
    pub(crate) fn of(bridge: Unity, settings: &Settings) -> Self {
        let manner = |mode: ExecutionMode, reload_safe| Manner {
            mode: match mode {
                ExecutionMode::Sync => Mode::Sync,
                ExecutionMode::Job => Mode::Job,
            },
            reload_safe,
        };
        let tools = raincheck_unity::tools(settings).into_iter();
        let manners = tools.map(|tool| {
            let name = tool.spec.name.as_str().to_owned();
            (name, manner(tool.meta.execution_mode, tool.meta.reload_safe))
        });
        Self { bridge, manners: manners.collect() }
    }
}

/// Why calls wait, and what to do.
const WAITING: &[(&str, &str)] = &[
    (
        "disconnected",
        "No Unity Editor is connected: open the project, with the package installed (unity-mcp install). The \
         call begins when the editor comes.",
    ),
    ("compiling", "The editor compiles scripts: the call begins when it is done."),
    ("reloading", "The editor reloads its code: the call begins when it is back."),
    ("busy", "The editor is busy: the call begins when it is free."),
];

impl Bridge for Words {
    fn whose(&self) -> &'static str {
        "the editor"
    }

    fn manner(&self, tool: &str) -> Manner {
        let known = self.manners.get(tool).copied();
        known.unwrap_or(Manner { mode: Mode::Sync, reload_safe: false })
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[("run_test", "run_tests"), ("run_all_tests", "run_tests")]
    }

    fn waiting(&self, reason: &str) -> Option<String> {
        let words = WAITING.iter().find(|(known, _)| *known == reason);
        words.map(|(_, words)| (*words).to_owned())
    }

    fn held_up(&self, lane: &LaneId) -> Option<HeldUp> {
        let said = self.bridge.dialog_of(lane)?;
        let words = "A dialog is open in the editor and holds it up: ask the user to answer it, and do not \
                     repeat the call. Its title:";
        Some(HeldUp { words, said })
    }

    fn owned_elsewhere(&self, pid: u32) -> Error {
        raincheck_unity::owned_elsewhere(Some(pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_stand_for_tools_that_there_are() {
        // [OPS-8]
        let words = Words::of(Unity::new(Settings::default()), &Settings::default());
        for (alias, own) in words.aliases() {
            assert_eq!(raincheck_unity::canonical_name(alias), *own);
            assert!(words.manners.contains_key(*own) && !words.manners.contains_key(*alias));
        }
    }
}
