//! What `lifecycle::TABLE` looks like on a page.

use std::fmt::Write as _;

use raincheck_core::deadline;
use raincheck_core::lifecycle::{Event, State, TABLE};

/// Draws the states; what stays where it is is left to the table of transitions.
pub(super) fn diagram() -> String {
    let mut text =
        String::from("```mermaid\nstateDiagram-v2\n    [*] --> waiting\n    [*] --> queued\n");
    for (from, to, events) in moves().into_iter().filter(|(from, to, _)| from != to) {
        let _ = writeln!(text, "    {from} --> {to}: {}", words(&events, ""));
    }
    text + "    expired --> [*]\n```\n"
}

/// Lists every transition; a pair that is not listed is refused.
pub(super) fn transitions() -> String {
    let mut text = String::from("| from | events | to |\n|---|---|---|\n");
    for (from, to, events) in moves() {
        let to = if from == to { "(stays)".to_owned() } else { format!("`{to}`") };
        let _ = writeln!(text, "| `{from}` | {} | {to} |", words(&events, "`"));
    }
    text
}

/// Lists every deadline with what its passing does.
pub(super) fn deadlines() -> String {
    let mut text = String::from("| deadline | its event | where it leads |\n|---|---|---|\n");
    for kind in deadline::Kind::ALL {
        let on = kind.event();
        let ends: Vec<String> = TABLE
            .iter()
            .filter(|(from, event, to)| *event == on && from != to)
            .map(|(from, _, to)| format!("`{from}` → `{to}`"))
            .collect();
        let name = format!("{kind:?}").to_lowercase();
        let _ = writeln!(text, "| `{name}` | `{on}` | {} |", ends.join(", "));
    }
    text
}

/// Groups the table: one entry per pair of states, in the table's order.
fn moves() -> Vec<(State, State, Vec<Event>)> {
    let mut moves: Vec<(State, State, Vec<Event>)> = Vec::new();
    for (from, on, to) in TABLE {
        match moves.iter_mut().find(|(a, b, _)| (a, b) == (from, to)) {
            Some((_, _, events)) => events.push(*on),
            None => moves.push((*from, *to, vec![*on])),
        }
    }
    moves
}

fn words(events: &[Event], quote: &str) -> String {
    let words: Vec<String> = events.iter().map(|on| format!("{quote}{on}{quote}")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_on_the_page() {
        let n_events: usize = moves().iter().map(|(_, _, events)| events.len()).sum();
        assert_eq!(n_events, TABLE.len());
        for (from, on, _) in TABLE {
            let row = format!("| `{from}` |");
            assert!(transitions().contains(&row), "{from} has no row");
            assert!(transitions().contains(&format!("`{on}`")), "{on} is on no row");
        }
    }

    #[test]
    fn every_deadline_leads_somewhere() {
        for line in deadlines().lines().skip(2) {
            assert!(line.contains('→'), "{line}");
        }
    }
}
