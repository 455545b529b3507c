//! `statusMessage`: where a task stands, in a line or a few.
//!
//! The extension has no notifications of progress: its numbers and words go here.

use std::fmt::Write as _;

use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::task::{Outcome, WaitReason};
use raincheck_runtime::View;

use crate::answer::{Mark, own, shown_progress};
use crate::call::cancelled;
use crate::surface::Desk;

/// Says where a task stands; `None` where the status says all. What its tool said of its progress stands
/// inside of a mark [CALL-8].
pub(super) fn message(desk: &Desk, view: &View, whose: &'static str) -> Option<String> {
    let record = &view.record;
    match record.state {
        State::Waiting => Some(match record.waiting.as_ref().map(WaitReason::as_str) {
            Some(reason) => format!("waiting: {reason}"),
            None => "waiting".to_owned(),
        }),
        State::Queued => Some(match view.position {
            Some(position) => format!("queued at position {position}"),
            None => "queued".to_owned(),
        }),
        State::CancelRequested | State::Cancelling => Some("it was asked to end".to_owned()),
        State::InputRequired => Some("it asks for input before it goes on".to_owned()),
        State::Scheduled | State::Running => said(desk, view.progress.as_ref()?, whose),
        State::Cancelled => Some(cancelled(Some(record)).message.to_string()),
        State::Failed | State::TimedOut => match view.payload.as_ref()?.outcome.as_ref()? {
            Outcome::Failed(error) => Some(own(error).message.to_string()),
            Outcome::Succeeded(_) | Outcome::Cancelled => None,
        },
        State::Succeeded | State::Expired => None,
    }
}

/// Says how far an attempt is: its numbers, then its words inside of a mark that follows from them.
fn said(desk: &Desk, progress: &Progress, whose: &'static str) -> Option<String> {
    let progress = shown_progress(progress);
    let mut line = numbers(&progress);
    let words = [progress.phase.as_deref(), progress.message.as_deref()];
    let words: Vec<&str> = words.into_iter().flatten().filter(|words| !words.is_empty()).collect();
    if !words.is_empty() {
        let words = words.join(": ");
        let mark = Mark::of(desk.engine().seal("status", [line.as_bytes(), words.as_bytes()]));
        if !line.is_empty() {
            line.push('\n');
        }
        line.push_str(&mark.around(whose, &words));
    }
    (!line.is_empty()).then_some(line)
}

fn numbers(progress: &Progress) -> String {
    let mut line = String::new();
    let mut add = |part: std::fmt::Arguments<'_>| {
        let comma = if line.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(line, "{comma}{part}");
    };
    if let Some(percent) = progress.percent {
        add(format_args!("{percent:.0} %"));
    }
    match (progress.step, progress.step_total) {
        (Some(step), Some(total)) => add(format_args!("step {step} of {total}")),
        (Some(step), None) => add(format_args!("step {step}")),
        (None, _) => {}
    }
    if let Some(eta) = progress.eta_s {
        add(format_args!("about {eta:.0} s left"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_in_one_line() {
        let progress = Progress {
            percent: Some(42.4),
            step: Some(170),
            step_total: Some(400),
            eta_s: Some(12.0),
            ..Progress::default()
        };
        assert_eq!(numbers(&progress), "42 %, step 170 of 400, about 12 s left");
        assert_eq!(numbers(&Progress::default()), "");
    }
}
