use super::*;

const CALL: &str = "tools/call";

fn relay() -> Relay {
    Relay::new("window", false)
}

fn request(id: i64, method: &str) -> Vec<u8> {
    let params = if method == CALL { r#"{"name":"render","arguments":{}}"# } else { "{}" };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#).into_bytes()
}

fn answer(id: i64) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into_bytes()
}

fn note(method: &str, id: i64) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id}}}}}"#).into_bytes()
}

const AT: Timestamp = Timestamp::from_millis(1_000);

fn kept(name: &str) -> Option<Arc<str>> {
    Some(name.into())
}

/// What was asked of the owner of a store before.
fn of(name: &str) -> Option<Repeat> {
    Some(Repeat::Of(AskedBefore { store: name.into(), at: AT }))
}

/// Attaches a process that has nothing open.
fn attached(store: Option<Arc<str>>) -> Relay {
    let mut relay = relay();
    assert_eq!(relay.decide(), Some(Action::Decide));
    assert_eq!(relay.decided(Event::Joined, store, |_| false), []);
    relay
}

/// Says a request to the owner, as far as it was written.
fn ask(relay: &mut Relay, id: i64, is_written: bool) -> u64 {
    let actions = relay.said(request(id, CALL));
    let [Action::There(_, Some((number, None)))] = actions[..] else { panic!("{actions:?}") };
    if is_written {
        relay.sent(number, AT);
    }
    number
}

fn here(line: Vec<u8>, key: Option<RequestKey>) -> Action {
    Action::Here(line, key)
}

#[test]
fn what_needs_no_store_decides_nothing() {
    // [ATTACH-1]
    let mut relay = relay();
    for method in ["initialize", "server/discover", "ping", "tools/list"] {
        let line = request(1, method);
        assert_eq!(relay.said(line.clone()), [here(line, None)], "{method}");
    }
    assert_eq!(relay.said(b"no message".to_vec()), [here(b"no message".to_vec(), None)]);
    assert_eq!(relay.role(), Role::Undecided);
    let ready = note("notifications/initialized", 0);
    assert_eq!(relay.said(ready.clone()), [here(ready, None), Action::Decide]);
}

#[test]
fn a_list_that_changes_is_the_owners() {
    // [ATTACH-1]
    let mut relay = Relay::new("window", true);
    assert_eq!(relay.said(request(1, LIST)), [Action::Decide]);
    let asked = [Action::There(request(1, LIST), Some((1, None)))];
    assert_eq!(relay.decided(Event::Joined, kept("s"), |_| false), asked);
}

#[test]
fn requests_wait_until_it_is_known_who_answers_them() {
    // [ATTACH-1]
    let mut relay = relay();
    assert_eq!(relay.said(request(1, CALL)), [Action::Decide]);
    assert_eq!(relay.said(request(2, "tasks/get")), []);
    assert_eq!(relay.said(request(1, CALL)), [Action::Refuse(Id::Number(1), Refusal::IdTaken)]);
    // One that is cancelled is asked of nobody.
    assert_eq!(relay.said(request(3, CALL)), []);
    assert_eq!(relay.said(note("notifications/cancelled", 3)), []);
    let asked = [here(request(1, CALL), None), here(request(2, "tasks/get"), None)];
    assert_eq!(relay.decided(Event::Owned, kept("s"), |_| false), asked);
    assert!(relay.is_idle() && relay.role() == Role::Owner);
}

#[test]
fn an_answer_of_the_owner_goes_to_who_asked_and_to_nobody_else() {
    // [ATTACH-2]
    let mut relay = attached(kept("s"));
    ask(&mut relay, 7, true);
    assert_eq!(relay.heard(answer(8)), [], "nobody asked that");
    assert_eq!(relay.heard(answer(7)), [Action::Client(answer(7))]);
    assert_eq!(relay.heard(answer(7)), [], "once");
    ask(&mut relay, 7, true);
    let cancel = note("notifications/cancelled", 7);
    assert_eq!(relay.said(cancel.clone()), [Action::There(cancel, None)]);
    assert_eq!(relay.heard(answer(7)), [], "no answer after a cancel");
}

#[test]
fn a_question_of_an_owner_is_answered_to_that_one_only() {
    let mut relay = attached(kept("s"));
    let question = request(0, "elicitation/create");
    assert_eq!(relay.heard(question.clone()), [Action::Client(question)]);
    assert_eq!(relay.said(answer(1)), [], "nobody asked that");
    assert_eq!(relay.lost(), [Action::TakeBack(Id::Number(0)), Action::Decide]);
    assert_eq!(relay.said(answer(0)), [], "who asked is gone");
}

#[test]
fn what_was_open_is_asked_of_the_next_owner_of_the_store_under_the_same_number() {
    // [ATTACH-6]
    let mut relay = attached(kept("s"));
    let (sent, unsent) = (ask(&mut relay, 1, true), ask(&mut relay, 2, false));
    assert_eq!(relay.lost(), [Action::Decide]);
    let again = [
        Action::There(request(1, CALL), Some((sent, of("s")))),
        Action::There(request(2, CALL), Some((unsent, None))),
    ];
    assert_eq!(relay.decided(Event::Joined, kept("s"), |_| false), again);
    relay.sent(unsent, AT);
    assert_eq!(relay.lost(), [Action::Decide]);
    let key = |number| Some(RequestKey::new("window", number, of("s")));
    let again = [here(request(1, CALL), key(sent)), here(request(2, CALL), key(unsent))];
    assert_eq!(relay.decided(Event::Owned, kept("s"), |_| false), again);
    assert!(relay.is_idle());
}

#[test]
fn a_call_of_an_owner_whose_tasks_ended_with_it_is_never_made_anew() {
    // [ATTACH-6] [LEASE-9]
    for event in [Event::Owned, Event::Joined] {
        let mut relay = attached(None);
        ask(&mut relay, 1, true);
        let unsent = ask(&mut relay, 2, false);
        relay.said(request(3, "resources/read"));
        relay.sent(unsent + 1, AT);
        relay.lost();
        let actions = relay.decided(event, kept("b"), |_| false);
        let lost = Action::Lost(Id::Number(1), "render".into());
        assert_eq!((actions.len(), &actions[0]), (3, &lost));
        assert!(!matches!(actions[1], Action::Lost(..)), "it was not asked: {actions:?}");
        assert!(!matches!(actions[2], Action::Lost(..)), "it is no call: {actions:?}");
    }
}

#[test]
fn whoever_is_asked_again_knows_of_which_store_a_call_was_asked_first() {
    // [ATTACH-6] [LEASE-9]
    let mut relay = attached(kept("a"));
    let number = ask(&mut relay, 1, true);
    for store in [kept("b"), None, kept("a")] {
        relay.lost();
        let asked = [Action::There(request(1, CALL), Some((number, of("a"))))];
        assert_eq!(relay.decided(Event::Joined, store, |_| false), asked);
        relay.sent(number, Timestamp::from_millis(5_000));
    }
}

#[test]
fn a_call_that_may_be_made_twice_is() {
    // [ATTACH-6]
    let mut relay = attached(None);
    ask(&mut relay, 1, true);
    relay.lost();
    let actions = relay.decided(Event::Owned, None, |tool| tool == "render");
    assert!(matches!(actions[..], [Action::Here(_, Some(_))]), "{actions:?}");
}

#[test]
fn where_no_owner_can_be_reached_only_what_nobody_has_is_refused_as_not_run() {
    // [LEASE-9]
    let mut relay = attached(kept("a"));
    ask(&mut relay, 1, true);
    ask(&mut relay, 2, false);
    relay.lost();
    let actions = relay.decided(Event::Refused, None, |_| false);
    let lost = Action::Lost(Id::Number(1), "render".into());
    assert_eq!(actions, [lost, here(request(2, CALL), None)]);
    // The next ones are refused at once, until the owner is looked for again.
    assert_eq!(relay.said(request(3, CALL)), [here(request(3, CALL), None)]);
    assert_eq!(relay.decide(), Some(Action::Decide));
    assert_eq!(relay.said(request(4, CALL)), []);
}

#[test]
fn what_is_asked_and_not_answered_is_bounded() {
    // [CALL-7] [ATTACH-8]
    let mut relay = attached(kept("s"));
    for id in 0..i64::try_from(MAX_REQUESTS).expect("small") {
        ask(&mut relay, id, true);
    }
    let refused = [Action::Refuse(Id::Number(-1), Refusal::Full)];
    assert_eq!(relay.said(request(-1, CALL)), refused);
    assert_eq!(relay.heard(answer(5)).len(), 1);
    assert_eq!(relay.said(request(-1, CALL)).len(), 1);
    let mut relay = attached(kept("s"));
    let large = |id: i64| {
        let text = "x".repeat(MAX_BYTES / 2);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a","params":{{"a":"{text}"}}}}"#)
    };
    assert!(matches!(relay.said(large(1).into_bytes())[..], [Action::There(..)]));
    let actions = relay.said(large(2).into_bytes());
    assert_eq!(actions, [Action::Refuse(Id::Number(2), Refusal::Full)]);
}

#[test]
fn the_owner_hears_how_the_client_introduced_itself() {
    // [ATTACH-5]
    let mut relay = relay();
    let (hello, ready) = (request(0, "initialize"), note("notifications/initialized", 0));
    relay.said(hello.clone());
    relay.said(ready.clone());
    let handshake = relay.handshake.clone();
    assert_eq!(handshake.initialize, Some((Id::Number(0), hello.clone())));
    assert_eq!(handshake.initialized, Some(ready));
    relay.decided(Event::Joined, kept("s"), |_| false);
    let both = [here(hello.clone(), None), Action::There(hello, None)];
    assert_eq!(relay.said(request(0, "initialize")), both, "once more, to both");
    assert_eq!(relay.heard(answer(0)), [], "the client has its answer from here");
}

#[test]
fn what_is_cancelled_before_it_was_sent_is_taken_back_and_sent_to_nobody() {
    // [ATTACH-8] [CALL-7]
    let mut relay = attached(kept("s"));
    let (sent, unsent) = (ask(&mut relay, 1, true), ask(&mut relay, 2, false));
    assert!(sent < unsent);
    let cancel = |id| note("notifications/cancelled", id);
    assert_eq!(relay.said(cancel(2)), [Action::Withdraw(unsent)]);
    assert_eq!(relay.said(cancel(1)), [Action::There(cancel(1), None)], "the owner may have it");
    assert_eq!(relay.said(cancel(3)), [here(cancel(3), None)], "it can only be of this process");
    assert!(relay.is_idle());
    // One that an owner had that is gone may be known to the next.
    ask(&mut relay, 4, true);
    relay.lost();
    relay.decided(Event::Joined, kept("s"), |_| false);
    assert_eq!(relay.said(cancel(4)), [Action::There(cancel(4), None)]);
}
