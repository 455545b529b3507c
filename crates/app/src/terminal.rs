//! The one place that prints: commands for people write here, the server never does.

use std::io::{self, IsTerminal as _, Write as _};

/// Prints text to standard output.
///
/// # Errors
/// What the terminal or pipe answers. A reader that went away (`head`) is no error: the rest of the
/// output is dropped.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Prints text to standard error; there is nobody left to tell when that fails.
pub fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// How a piece of text is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A heading.
    Bold,
    /// Less important.
    Dim,
    /// Good news.
    Green,
    /// Bad news.
    Red,
    /// Worth a look.
    Yellow,
}

/// Colours text when standard output is a terminal that wants colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    is_colourful: bool,
}

impl Palette {
    /// Decides by standard output and `NO_COLOR`.
    #[must_use]
    pub fn detect() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { is_colourful: wanted && io::stdout().is_terminal() }
    }

    /// Returns a palette without colours.
    #[must_use]
    pub const fn plain() -> Self {
        Self { is_colourful: false }
    }

    /// Returns the text in a style.
    #[must_use]
    pub fn paint(self, style: Style, text: &str) -> String {
        if !self.is_colourful {
            return text.to_owned();
        }
        let code = match style {
            Style::Bold => 1,
            Style::Dim => 2,
            Style::Green => 32,
            Style::Red => 31,
            Style::Yellow => 33,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
