//! What a person sees of the demo.

use std::time::Duration;

use raincheck_app::terminal::{self, Palette, Style};

use super::Unmet;

/// The longest line of an answer that is shown, in characters.
const LONGEST: usize = 110;

/// Prints the demo line by line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transcript {
    palette: Palette,
}

impl Transcript {
    pub(super) fn new() -> Self {
        Self { palette: Palette::detect() }
    }

    /// Begins a part.
    pub(super) fn heading(self, text: &str) -> Result<(), Unmet> {
        line(&format!("\n{}", self.palette.paint(Style::Bold, text)))
    }

    /// Shows a call.
    pub(super) fn call(self, tool: &str, arguments: &str) -> Result<(), Unmet> {
        let arguments = self.palette.paint(Style::Dim, &cut(arguments));
        line(&format!("  → {tool} {arguments}"))
    }

    /// Shows something that is done to the server, not asked of it.
    pub(super) fn act(self, text: &str) -> Result<(), Unmet> {
        line(&format!("  → {}", self.palette.paint(Style::Bold, text)))
    }

    /// Shows what was answered, and after what time.
    pub(super) fn answer(self, took: Duration, text: &str) -> Result<(), Unmet> {
        let ms = format!("{:>6.1} ms", took.as_secs_f64() * 1000.0);
        line(&format!("  ← {}  {}", self.palette.paint(Style::Dim, &ms), cut(text)))
    }

    /// Shows a detail of the last answer.
    pub(super) fn detail(self, text: &str) -> Result<(), Unmet> {
        line(&format!("               {}", self.palette.paint(Style::Dim, &cut(text))))
    }

    /// Shows something that was checked.
    pub(super) fn checked(self, text: &str) -> Result<(), Unmet> {
        line(&format!("  {} {text}", self.palette.paint(Style::Green, "✓")))
    }
}

fn line(text: &str) -> Result<(), Unmet> {
    terminal::print(&format!("{text}\n")).map_err(Unmet::from)
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}
