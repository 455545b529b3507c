use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;

use super::*;

fn targets(from: State) -> impl Iterator<Item = State> {
    Event::ALL.iter().filter_map(move |on| next(from, *on).ok())
}

fn reachable(from: &[State]) -> BTreeSet<State> {
    let mut seen: BTreeSet<State> = from.iter().copied().collect();
    let mut open: Vec<State> = from.to_vec();
    while let Some(state) = open.pop() {
        open.extend(targets(state).filter(|to| seen.insert(*to)).collect::<Vec<_>>());
    }
    seen
}

#[test]
fn the_whole_matrix_is_as_it_is_written_down() {
    // [STATE-1] Every pair of state and event, one line each; `-` is a refusal.
    let mut text = String::new();
    for from in State::ALL {
        writeln!(text, "{from}").expect("a String takes every write");
        for on in Event::ALL {
            let to = next(*from, *on).map_or("-", State::as_str);
            writeln!(text, "  {:<16}{to}", on.as_str()).expect("a String takes every write");
        }
    }
    expect_file!["matrix.txt"].assert_eq(&text);
}

#[test]
fn every_state_can_be_reached_from_acceptance() {
    // [STATE-1]
    assert_eq!(reachable(&[State::Queued, State::Waiting]).len(), State::ALL.len());
}

#[test]
fn every_live_state_can_be_cancelled_and_can_end() {
    // [STATE-5]
    for state in State::ALL.iter().filter(|state| !state.is_terminal()) {
        assert!(next(*state, Event::RequestCancel).is_ok(), "{state} cannot be cancelled");
        assert!(reachable(&[*state]).iter().any(|s| s.is_terminal()), "{state} never ends");
    }
}

#[test]
fn every_live_state_answers_a_deadline_that_ends_it() {
    // [STATE-5]
    let ends = [Event::ReadyDue, Event::QueueTimeoutDue, Event::LeaseDue];
    for state in State::ALL.iter().filter(|state| !state.is_terminal()) {
        let is_ended = ends.iter().any(|on| next(*state, *on).is_ok_and(State::is_terminal));
        assert!(is_ended, "no deadline ends {state}");
    }
}

#[test]
fn a_terminal_state_is_final_but_for_retention() {
    // [STATE-2]
    for state in State::ALL.iter().filter(|state| state.is_terminal()) {
        let out: Vec<_> =
            Event::ALL.iter().filter(|on| next(*state, **on).is_ok()).copied().collect();
        let expected: &[Event] =
            if *state == State::Expired { &[] } else { &[Event::RetentionDue] };
        assert_eq!(out, expected, "{state}");
    }
}

#[test]
fn a_refusal_names_state_and_event() {
    // [STATE-3]
    let refused = next(State::Succeeded, Event::Start).expect_err("refused");
    assert_eq!(refused.to_string(), "a succeeded task refuses start");
    assert_eq!(next(State::Running, Event::Start), Ok(State::Running), "a repeat moves nothing");
}

#[test]
fn a_word_finds_its_value() {
    for state in State::ALL {
        assert_eq!(State::from_word(state.as_str()), Some(*state));
    }
    assert_eq!(State::from_word("no_such_state"), None);
}
