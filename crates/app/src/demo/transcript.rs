//! What a person sees of the demo.

use std::time::Duration;

use super::Unmet;
use crate::terminal::{self, Palette, Style};

/// The longest line of an answer that is shown, in characters.
const LONGEST: usize = 110;

/// Prints the demo line by line.
#[derive(Clone, Copy, Debug)]
pub struct Transcript {
    palette: Palette,
}

impl Default for Transcript {
    fn default() -> Self {
        Self::new()
    }
}

impl Transcript {
    /// Prints to standard output, with colours if it is a terminal that wants them.
    #[must_use]
    pub fn new() -> Self {
        Self { palette: Palette::detect() }
    }

    /// Begins a part.
    ///
    /// # Errors
    /// What the terminal or the pipe answers.
    pub fn heading(self, text: &str) -> Result<(), Unmet> {
        line(&format!("\n{}", self.palette.paint(Style::Bold, text)))
    }

    /// Shows a call.
    ///
    /// # Errors
    /// What the terminal or the pipe answers.
    pub fn call(self, tool: &str, arguments: &str) -> Result<(), Unmet> {
        let arguments = self.palette.paint(Style::Dim, &cut(arguments));
        line(&format!("  → {tool} {arguments}"))
    }

    /// Shows something that is done to the server, not asked of it.
    ///
    /// # Errors
    /// What the terminal or the pipe answers.
    pub fn act(self, text: &str) -> Result<(), Unmet> {
        line(&format!("  → {}", self.palette.paint(Style::Bold, text)))
    }

    /// Shows what was answered, and after what time.
    ///
    /// # Errors
    /// What the terminal or the pipe answers.
    pub fn answer(self, took: Duration, text: &str) -> Result<(), Unmet> {
        let ms = format!("{:>6.1} ms", took.as_secs_f64() * 1000.0);
        line(&format!("  ← {}  {}", self.palette.paint(Style::Dim, &ms), cut(text)))
    }

    /// Shows a detail of the last answer.
    ///
    /// # Errors
    /// What the terminal or the pipe answers.
    pub fn detail(self, text: &str) -> Result<(), Unmet> {
        line(&format!("               {}", self.palette.paint(Style::Dim, &cut(text))))
    }

    /// Shows something that was checked.
    ///
    /// # Errors
    /// What the terminal or the pipe answers.
    pub fn checked(self, text: &str) -> Result<(), Unmet> {
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
