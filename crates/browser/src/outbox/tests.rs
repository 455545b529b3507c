use raincheck_core::content::Json;
use raincheck_core::scope::Scope;
use serde_json::Value;

use super::*;
use crate::revisions;

const LINGER: Duration = Duration::from_secs(3);
const MOST: usize = 8;

/// An outbox with a clock of its own.
struct Table {
    outbox: Outbox,
    now: Instant,
    heard: Vec<mpsc::UnboundedReceiver<Report>>,
}

fn id(n: u8) -> TaskId {
    TaskId::from_parts(u64::from(n), [n; 10])
}

fn name(text: &str) -> Arc<str> {
    text.into()
}

impl Table {
    fn new() -> Self {
        Self { outbox: Outbox::default(), now: Instant::now(), heard: Vec::new() }
    }

    fn now(&self) -> Now {
        Now::never_stopped(self.now)
    }

    fn put(&mut self, n: u8, stage: Stage, target: Option<&str>) {
        let (reports, heard) = mpsc::unbounded_channel();
        self.heard.push(heard);
        let command = Command {
            fence: Fence::new(1, u32::from(n)),
            attempt: 1,
            stage,
            what: "reload".into(),
            save_to: None,
            target: target.map(name),
            tab_id: None,
            caller: Caller::new(&Scope::local(), None),
            is_anew: false,
            others: Vec::new(),
            server: None,
            params: Json::empty_object(),
            revision: revisions::FIRST,
            accept: LINGER,
            run: LINGER,
            reports,
            recorded: CancellationToken::new(),
        };
        self.outbox.put(self.now(), LINGER, id(n), command);
    }

    fn open(&mut self, browser: &str, session: &str) -> u64 {
        self.open_as(browser, session, revisions::FIRST)
    }

    fn open_as(&mut self, browser: &str, session: &str, revision: u32) -> u64 {
        self.poll_of((browser, session, revision)).serial
    }

    fn poll_of(&mut self, (browser, session, revision): (&str, &str, u32)) -> Poll {
        let peer = (&name(browser), &name(session), revision);
        let poll = self.outbox.open(self.now(), peer, (LINGER, MOST));
        poll.expect("room for a browser")
    }

    fn take(&mut self, browser: &str, serial: u64) -> Vec<String> {
        match self.outbox.take(self.now(), &name(browser), serial) {
            Taken::Replaced => vec!["replaced".to_owned()],
            Taken::Entries(entries) => entries.iter().map(|entry| shown(entry)).collect(),
            Taken::Nothing(_) => Vec::new(),
        }
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }
}

/// `run 1` for a delivery of the command with the fence 1, `cancel` for a request to stop.
fn shown(entry: &str) -> String {
    let entry: Value = serde_json::from_str(entry).expect("JSON");
    match entry["fence"].as_u64() {
        Some(fence) => format!("run {}", fence & 0xffff_ffff),
        None => entry["type"].as_str().expect("a type").to_owned(),
    }
}

#[test]
fn a_command_goes_to_a_poll_once_in_the_order_of_arrival() {
    // [BROWSER-8]
    let mut table = Table::new();
    let poll = table.open("a", "1");
    table.put(1, Stage::Posted, None);
    table.put(2, Stage::Posted, None);
    assert_eq!(table.take("a", poll), ["run 1", "run 2"]);
    assert!(table.take("a", poll).is_empty());
}

#[test]
fn a_delivery_that_nobody_answered_goes_out_again_to_the_same_start_only() {
    // [LEASE-5, BROWSER-10]
    let mut table = Table::new();
    let poll = table.open("a", "1");
    table.put(1, Stage::Posted, None);
    assert_eq!(table.take("a", poll), ["run 1"]);
    table.wait(700);
    let poll = table.open("a", "1");
    assert!(table.take("a", poll).is_empty(), "it may be on its way");
    table.wait(100);
    assert_eq!(table.take("a", poll), ["run 1"]);
    table.wait(5000);
    let poll = table.open("a", "2");
    assert!(table.take("a", poll).is_empty(), "it is given back for a newer fence");
    assert!(matches!(table.heard[0].try_recv(), Ok(Report::GivenBack)));
}

#[test]
fn a_browser_that_its_user_paused_says_so_until_it_is_resumed() {
    // [BROWSER-25]
    let mut table = Table::new();
    table.open("a", "1");
    table.open("b", "1");
    let paused = |table: &Table| -> Vec<bool> {
        let browsers = table.outbox.browsers(table.now(), LINGER);
        browsers.iter().map(|browser| browser.is_paused).collect()
    };
    table.outbox.set_paused(&name("a"), true);
    table.outbox.set_paused(&name("nobody"), true);
    table.open("a", "1");
    assert_eq!(paused(&table), [true, false], "a newer poll changes nothing");
    table.outbox.set_paused(&name("a"), false);
    assert_eq!(paused(&table), [false, false]);
}

#[test]
fn what_was_accepted_is_never_handed_out_again() {
    // [LEASE-6, BROWSER-10]
    let mut table = Table::new();
    let poll = table.open("a", "1");
    table.put(1, Stage::Posted, None);
    table.take("a", poll);
    assert!(table.outbox.step(id(1), Move::Accept));
    table.wait(60_000);
    let poll = table.open("a", "2");
    assert!(table.take("a", poll).is_empty());
    assert!(matches!(table.heard[0].try_recv(), Ok(Report::Doubted)), "nobody gives it back");
    assert!(table.heard[0].try_recv().is_err());
}

#[test]
fn a_request_to_stop_goes_out_until_the_end_is_told() {
    // [CANCEL-2, BROWSER-12]
    let mut table = Table::new();
    let poll = table.open("a", "1");
    table.put(1, Stage::Posted, None);
    table.take("a", poll);
    table.outbox.step(id(1), Move::Accept);
    table.outbox.stop(id(1));
    assert_eq!(table.take("a", poll), ["cancel"]);
    assert!(table.take("a", poll).is_empty());
    table.wait(1000);
    let poll = table.open("a", "1");
    assert_eq!(table.take("a", poll), ["cancel"]);
    table.outbox.step(id(1), Move::End);
    table.wait(1000);
    assert!(table.take("a", poll).is_empty());
}

#[test]
fn a_newer_poll_takes_the_place_of_an_older_one() {
    // [BROWSER-8]
    let mut table = Table::new();
    let (old, new) = (table.open("a", "1"), table.open("a", "1"));
    assert_eq!(table.take("a", old), ["replaced"]);
    assert!(table.take("a", new).is_empty());
    table.outbox.close(table.now(), &name("a"), old);
    assert_eq!(table.outbox.presence(table.now(), LINGER), (true, None), "the newer one is held");
}

#[test]
fn a_browser_is_there_while_it_polls_and_a_moment_longer() {
    // [QUEUE-5, BROWSER-6]
    let mut table = Table::new();
    assert_eq!(table.outbox.presence(table.now(), LINGER), (false, None));
    let poll = table.open("a", "1");
    table.wait(20_000);
    assert_eq!(table.outbox.presence(table.now(), LINGER), (true, None));
    table.outbox.close(table.now(), &name("a"), poll);
    assert_eq!(table.outbox.presence(table.now(), LINGER), (true, Some(table.now + LINGER)));
    table.wait(3000);
    assert_eq!(table.outbox.presence(table.now(), LINGER), (false, None));
}

#[test]
fn a_command_goes_to_the_browser_it_names_and_any_other_to_the_one_that_polls() {
    // [BROWSER-7]
    let mut table = Table::new();
    let first = table.open("a", "1");
    table.outbox.close(table.now(), &name("a"), first);
    table.wait(1);
    let second = table.open("b", "1");
    table.put(1, Stage::Posted, Some("a"));
    table.put(2, Stage::Posted, None);
    table.put(3, Stage::Posted, Some("c"));
    assert_eq!(table.take("b", second), ["run 2"]);
    let first = table.open("a", "1");
    assert_eq!(table.take("a", first), ["run 1"]);
    let third = table.open("c", "1");
    assert_eq!(table.take("c", third), ["run 3"]);
}

#[test]
fn only_the_attempt_that_is_under_way_is_listened_to() {
    // [LEASE-1]
    let mut table = Table::new();
    table.put(1, Stage::Posted, None);
    let mut ask = |n: u8, fence: Option<u32>| {
        let fence = fence.map(|n| Fence::new(1, n));
        table.outbox.addressee(id(n), fence, None)
    };
    assert!(matches!(ask(1, Some(1)), Addressee::Executor { .. }));
    assert!(matches!(ask(1, None), Addressee::Executor { .. }));
    assert!(matches!(ask(1, Some(9)), Addressee::Stale));
    assert!(matches!(ask(2, Some(1)), Addressee::Nobody));
    table.outbox.step(id(1), Move::End);
    assert!(matches!(table.outbox.addressee(id(1), None, None), Addressee::Ended(_)));
    table.outbox.recorded(id(1));
    assert!(matches!(table.outbox.addressee(id(1), None, None), Addressee::Nobody));
}

#[test]
fn of_too_many_browsers_one_that_is_gone_makes_room() {
    // [BROWSER-7]
    let mut table = Table::new();
    let polls: Vec<u64> = (0..MOST).map(|n| table.open(&format!("b{n}"), "1")).collect();
    let (late, session) = (name("late"), name("1"));
    let open = |table: &mut Table| {
        table
            .outbox
            .open(table.now(), (&late, &session, revisions::FIRST), (LINGER, MOST))
            .is_some()
    };
    assert!(!open(&mut table), "all are there");
    table.outbox.close(table.now(), &name("b3"), polls[3]);
    table.wait(3000);
    assert!(open(&mut table));
}

#[test]
fn a_command_that_is_laid_down_anew_lies_there_once() {
    // [BROWSER-8]
    let mut table = Table::new();
    let poll = table.open("a", "1");
    table.put(1, Stage::Posted, None);
    table.take("a", poll);
    table.put(1, Stage::Posted, None);
    assert_eq!(table.take("a", poll), ["run 1"]);
    table.outbox.withdraw(id(1), Fence::new(1, 1));
    assert_eq!(table.outbox.browsers(table.now(), LINGER)[0].n_waiting, 0);
}

#[test]
fn an_extension_that_is_too_old_for_a_command_is_not_asked_and_its_caller_is_told_at_once() {
    // [BROWSER-66]
    let mut table = Table::new();
    let poll = table.open_as("a", "1", 1);
    table.put(1, Stage::Posted, None);
    table.put(2, Stage::Posted, None);
    if let Some(newer) = table.outbox.commands.get_mut(&id(2)) {
        newer.command.revision = 2;
    }
    assert_eq!(table.take("a", poll), ["run 1"]);
    assert!(matches!(table.heard[1].try_recv(), Ok(Report::TooOld)));
    assert!(table.heard[0].try_recv().is_err());
    assert!(table.take("a", poll).is_empty(), "and not again");
    // One that knows it is asked.
    let newer = table.open_as("a", "2", 2);
    table.put(3, Stage::Posted, Some("a"));
    assert_eq!(table.take("a", newer), ["run 3"]);
}

#[test]
fn a_command_wakes_the_poll_of_its_own_browser_and_no_other() {
    // [BROWSER-7, BROWSER-8]
    let mut table = Table::new();
    let [a, b] = ["a", "b"].map(|browser| table.poll_of((browser, "1", revisions::FIRST)).wake);
    table.put(1, Stage::Posted, Some("b"));
    let is_woken = |wake: &Notify| {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(wake.notified()).poll(&mut context).is_ready()
    };
    assert_eq!([&a, &b].map(|wake| is_woken(wake)), [false, true]);
}

#[test]
fn only_the_first_poll_and_the_last_say_that_a_browser_may_have_come_or_gone() {
    // [QUEUE-5]
    let mut table = Table::new();
    let polls = ["a", "a", "b"].map(|browser| table.poll_of((browser, "1", revisions::FIRST)));
    let [old, new, other] = &polls;
    assert_eq!([old, new, other].map(|poll| poll.is_only), [true, true, false]);
    let closed = [("a", old.serial), ("a", new.serial), ("a", new.serial), ("b", other.serial)];
    let is_last =
        closed.map(|(browser, serial)| table.outbox.close(table.now(), &name(browser), serial));
    assert_eq!(is_last, [false, false, false, true]);
}
