//! Tables, spans and bars for a person; JSON for a program.

use std::time::Duration;

use raincheck::core::lifecycle::State;
use raincheck::core::progress::Progress;
use raincheck::core::text::{clip, escape};
use raincheck_app::terminal::{Palette, Style};
use raincheck_app::{Failure, cli};
use serde::Serialize;

/// How many characters a bar has.
const BAR: usize = 20;

/// The longest words of a progress that are shown, in bytes.
const MAX_WORDS: usize = 60;

/// Makes text from outside safe to show on one line.
pub(crate) fn safe(text: &str) -> String {
    escape(text).into_owned()
}

/// Prints one JSON object on a line of its own.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    cli::print(&(line_of(value)? + "\n"))
}

/// Writes one JSON object.
pub(crate) fn line_of(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| {
        Failure::failed(format!("the answer cannot be written: {error}"), "leave out --json")
    })
}

/// Writes a span as people say it, in its two largest units.
pub(crate) fn span(span: Duration) -> String {
    let s = span.as_secs();
    match s {
        0 => format!("{} ms", span.as_millis()),
        1..60 => format!("{s} s"),
        60..3_600 => format!("{} min {} s", s / 60, s % 60),
        3_600..86_400 => format!("{} h {} min", s / 3_600, s / 60 % 60),
        _ => format!("{} d {} h", s / 86_400, s / 3_600 % 24),
    }
}

/// Writes how far something is, with a bar where it is seen.
pub(crate) fn progress(progress: &Progress, has_bar: bool) -> String {
    let mut parts = Vec::new();
    if let Some(share) = share(progress) {
        if has_bar {
            parts.push(bar(share));
        }
        parts.push(format!("{:.0} %", share * 100.0));
    }
    if let (Some(step), Some(total)) = (progress.step, progress.step_total) {
        parts.push(format!("{step}/{total}"));
    }
    let words = progress.message.as_deref().or(progress.phase.as_deref());
    parts.extend(words.map(|words| safe(clip(words, MAX_WORDS))));
    parts.join(" ")
}

/// The part that is done, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a bar is coarser than that")]
fn share(progress: &Progress) -> Option<f64> {
    let by_steps = || match (progress.step, progress.step_total) {
        (Some(step), Some(total)) if total > 0 => Some(step as f64 / total as f64),
        _ => None,
    };
    let share = progress.percent.map(|percent| percent / 100.0).or_else(by_steps)?;
    Some(share.clamp(0.0, 1.0))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share is between 0 and 1"
)]
fn bar(share: f64) -> String {
    let full = (share * BAR as f64).floor() as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR - full))
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Option<Style>,
}

impl Cell {
    /// Makes a cell of text that is safe to show.
    pub(crate) const fn plain(text: String) -> Self {
        Self { text, style: None }
    }

    /// Makes a cell that shows a state in its colour.
    pub(crate) fn of_state(state: State) -> Self {
        let style = match state {
            State::Succeeded => Some(Style::Green),
            State::Failed | State::TimedOut => Some(Style::Red),
            State::Running | State::InputRequired => Some(Style::Bold),
            State::CancelRequested | State::Cancelling | State::Cancelled => Some(Style::Yellow),
            State::Waiting | State::Queued | State::Scheduled | State::Expired => Some(Style::Dim),
        };
        Self { text: state.as_str().to_owned(), style }
    }

    /// Returns the text in its colour.
    pub(crate) fn painted(&self, palette: Palette) -> String {
        match self.style {
            Some(style) => palette.paint(style, &self.text),
            None => self.text.clone(),
        }
    }
}

/// Rows whose columns stand below each other.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Begins a table with its headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let heading = |text: &&str| Cell { text: (*text).to_owned(), style: Some(Style::Dim) };
        Self { rows: vec![headings.iter().map(heading).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Writes the table.
    pub(crate) fn text(&self, palette: Palette) -> String {
        let mut widths: Vec<usize> = Vec::new();
        for record in &self.rows {
            widths.resize(widths.len().max(record.len()), 0);
            for (width, cell) in widths.iter_mut().zip(record) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        let mut out = String::new();
        for record in &self.rows {
            let mut line = String::new();
            for (cell, width) in record.iter().zip(&widths) {
                let gap = width - cell.text.chars().count();
                line.push_str(&cell.painted(palette));
                line.push_str(&" ".repeat(gap + 2));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_their_two_largest_units() {
        let told = [0, 5, 65, 3_725, 90_000].map(|s| span(Duration::from_secs(s)));
        assert_eq!(told, ["0 ms", "5 s", "1 min 5 s", "1 h 2 min", "1 d 1 h"]);
        assert_eq!(span(Duration::from_millis(420)), "420 ms");
    }

    #[test]
    fn progress_is_a_bar_on_a_terminal_and_a_number_elsewhere() {
        let half = Progress { step: Some(1), step_total: Some(2), ..Progress::default() };
        assert_eq!(progress(&half, true), "[##########..........] 50 % 1/2");
        assert_eq!(progress(&half, false), "50 % 1/2");
        let odd = Progress {
            percent: Some(250.0),
            message: Some("\u{1b}[2Jgone".into()),
            ..Progress::default()
        };
        assert_eq!(progress(&odd, false), "100 % \\x1b[2Jgone", "[SEC-10]");
        assert_eq!(progress(&Progress::default(), true), "");
    }

    #[test]
    fn columns_stand_below_each_other_and_have_no_colour_without_a_terminal() {
        let mut table = Table::new(&["A", "STATE", "C"]);
        table.row(vec![
            Cell::plain("längst".into()),
            Cell::of_state(State::Queued),
            Cell::plain("x".into()),
        ]);
        table.row(vec![Cell::plain("b".into()), Cell::of_state(State::TimedOut)]);
        let text = table.text(Palette::plain());
        assert_eq!(text, "A       STATE      C\nlängst  queued     x\nb       timed_out\n");
    }
}
