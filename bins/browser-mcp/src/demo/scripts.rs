//! The page and the scripts of the demo, and what they come to where the browser is simulated.

use std::time::Duration;

/// The title of the page.
pub(super) const TITLE: &str = "The tea shop";

/// The page.
pub(super) const PAGE: &str = "<!doctype html><meta charset=utf-8><title>The tea shop</title>\
     <h1>The tea shop</h1><ul><li>Assam</li><li>Darjeeling</li><li>Oolong</li></ul>";

/// A script of the demo.
#[derive(Debug)]
pub(super) struct Script {
    /// What a browser runs.
    pub(super) source: &'static str,
    /// What a simulated one does instead.
    pub(super) play: Play,
}

/// What a simulated browser does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Play {
    /// Gives a value, as JSON, after a while.
    Give(Duration, &'static str),
    /// Gives a value, and keeps it in the window.
    Keep(&'static str),
    /// Gives what the window keeps.
    Kept,
    /// Runs until it is stopped.
    Endless,
    /// Fails at a place.
    Throw {
        /// What the error says.
        message: &'static str,
        /// The line.
        line: u32,
        /// The column.
        column: u32,
    },
}

/// Answers at once.
pub(super) const LIST: Script = Script {
    source: "[...document.querySelectorAll('li')].map((tea) => tea.textContent)",
    play: Play::Give(Duration::ZERO, r#"["Assam","Darjeeling","Oolong"]"#),
};

/// Takes longer than its caller waits.
pub(super) const BREW: Script = Script {
    source: "new Promise((done) => setTimeout(() => done('a pot of Oolong'), 1500))",
    play: Play::Give(Duration::from_millis(1500), r#""a pot of Oolong""#),
};

/// Leaves something in the window.
pub(super) const KEEP: Script =
    Script { source: "window.pot = 'still warm'", play: Play::Keep(r#""still warm""#) };

/// Reads what was left there.
pub(super) const LOOK: Script = Script { source: "window.pot", play: Play::Kept };

/// Never ends.
pub(super) const ENDLESS: Script = Script { source: "for (;;) {}", play: Play::Endless };

/// Fails in its third line.
pub(super) const SPILL: Script = Script {
    source: "const tray = { cup: null };\n\ntray.cup.fill();",
    play: Play::Throw {
        message: "TypeError: Cannot read properties of null (reading 'fill')",
        line: 3,
        column: 10,
    },
};

/// All of them.
pub(super) const ALL: [&Script; 6] = [&LIST, &BREW, &KEEP, &LOOK, &ENDLESS, &SPILL];
