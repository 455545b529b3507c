//! Programs that had begun when their server was lost, and programs that had not.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use raincheck_core::decide::Change;
use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::lifecycle::State;
use raincheck_core::store::{TaskStore as _, Update};
use raincheck_runtime::{Clock as _, SystemClock};

use crate::harness::{self, shell};
use crate::town::{Town, is_lost, runtime};

/// Counts its runs.
fn town() -> Town {
    Town::new(|folder| vec![shell(folder, "once", "echo x >> runs; echo $RAINCHECK_ATTEMPT")])
}

fn n_runs(town: &Town) -> usize {
    std::fs::read_to_string(town.folder.join("runs")).unwrap_or_default().lines().count()
}

/// Leaves a task whose server was cut off when all it had done was to lease it.
fn leased(town: &Town) -> TaskId {
    runtime().block_on(harness::leased(&*town.store, "once"))
}

/// Leaves the folder of an attempt, as a supervisor that is gone left it.
fn leave(town: &Town, id: TaskId, names: &[&str]) {
    let folder = town.supervisor(id);
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in names {
        std::fs::write(folder.join(name), "").expect("a file");
    }
}

fn runs_as_the_same_attempt(town: &Town, id: TaskId) {
    let (end, lines) = town.serve(async |house| (house.end(id).await, house.log(id).await));
    assert_eq!((end.state, &*lines[0].message), (State::Succeeded, "1"));
    assert_eq!(n_runs(town), 1);
}

// [LEASE-5, STATE-5]
#[test]
fn an_attempt_that_never_came_to_its_program_runs_as_the_same_attempt() {
    for left in [None, Some(&[][..]), Some(&["lock"]), Some(&["lock", "socket"])] {
        let town = town();
        let id = leased(&town);
        if let Some(names) = left {
            leave(&town, id, names);
        }
        runs_as_the_same_attempt(&town, id);
    }
}

// [LEASE-3, LEASE-4]
#[test]
fn an_attempt_whose_start_was_noted_is_not_run_again() {
    let town = town();
    let id = leased(&town);
    leave(&town, id, &["lock", "begun"]);
    is_lost(&town.end(id));
    assert_eq!(n_runs(&town), 0);
}

// [CANCEL-2, LEASE-5]
#[test]
fn an_attempt_that_never_came_to_its_program_is_cancelled_if_that_was_asked_for() {
    let town = town();
    let id = leased(&town);
    let cancel = Update {
        fence: None,
        ..Update::attempt(id, Fence::NONE, Change::RequestCancel { reason: None })
    };
    let now = SystemClock::new().now();
    runtime().block_on(town.store.update(now, vec![cancel], None)).expect("posted");
    assert_eq!(town.end(id).state, State::Cancelled);
    assert_eq!(n_runs(&town), 0);
}

// [LEASE-3]
#[test]
fn a_start_is_noted_before_the_program_runs() {
    let script =
        "test -e \"$(dirname \"$RAINCHECK_RESULT_FILE\")/../../a1.supervisor/begun\" && echo noted";
    let tools = |folder: &std::path::Path| vec![shell(folder, "look", script)];
    runtime().block_on(harness::with(tools, async |house| {
        let id = house.submit("look", "{}").await;
        assert_eq!(house.end(id).await.state, State::Succeeded);
        assert_eq!(&*house.log(id).await[0].message, "noted");
    }));
}

// [STATE-4, TIME-3]
#[test]
fn also_a_short_program_is_on_record_as_running_before_its_end() {
    let tools = |folder: &std::path::Path| vec![shell(folder, "short", ":")];
    runtime().block_on(harness::with(tools, async |house| {
        for _ in 0..10 {
            let id = house.submit("short", "{}").await;
            assert_eq!(house.end(id).await.state, State::Succeeded);
            let states = house.history(id).await;
            let ran = [State::Queued, State::Scheduled, State::Running, State::Succeeded];
            assert_eq!(states, ran);
        }
    }));
}

// [LEASE-4]
#[test]
fn a_supervisor_that_is_lost_before_it_began_did_surely_not_run_the_program() {
    let mut town = town();
    town.role = &["--exact", "nothing-of-this-name"];
    let end = town.serve(async |house| {
        let id = house.submit("once", "{}").await;
        house.end(id).await
    });
    let error = end.error();
    assert_eq!((end.state, error.kind), (State::Failed, Kind::WorkerLost));
    assert_eq!(error.guarantee(), Some(Guarantee::NotExecuted));
    assert_eq!(n_runs(&town), 0);
}

const HESITATION: &str = "hesitates";

/// A supervisor that was told what to run and does not begin, until its server is lost and the next
/// one comes; then it is lost, too.
#[test]
fn this_program_hesitates_where_it_is_told_to() {
    if !std::env::args().any(|argument| argument == HESITATION) {
        return;
    }
    let inherited = std::io::stdin().as_fd().try_clone_to_owned().expect("a socket");
    let [first, listener, _lock, folder] = asked_for(&inherited);
    rustix::process::fchdir(folder).expect("a folder");
    let (mut first, listener) = (UnixStream::from(first), UnixListener::from(listener));
    first.write_all(b"{\"here\":{\"pid\":1}}\n").expect("told");
    let mut first = BufReader::new(first);
    first.read_line(&mut String::new()).expect("what to run");
    std::fs::write("told", "").expect("a sign");
    let _ = first.read_to_end(&mut Vec::new());
    drop(listener.accept().expect("the second server"));
}

/// Waits until a supervisor is asked for, and returns what it is given.
pub(crate) fn asked_for(server: &OwnedFd) -> [OwnedFd; 4] {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let mut into = [std::io::IoSliceMut::new(&mut word)];
    recvmsg(server, &mut into, &mut with, RecvFlags::empty()).expect("a word");
    let mut files = Vec::new();
    for message in with.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            files.extend(some);
        }
    }
    files.try_into().expect("four files")
}

// [LEASE-5, STATE-5]
#[test]
fn a_task_is_scheduled_until_its_program_runs_and_stands_in_line_again_if_it_never_does() {
    let mut town = town();
    let real = town.role;
    town.role = &[
        "--exact",
        "--nocapture",
        "begin::this_program_hesitates_where_it_is_told_to",
        HESITATION,
    ];
    let id = town.crash(async |house| {
        let id = house.submit("once", "{}").await;
        let told = town.supervisor(id).join("told");
        while !told.exists() {
            tokio::task::yield_now().await;
        }
        assert_eq!(house.until(id, |_| true).await.record.state, State::Scheduled);
        id
    });
    town.role = real;
    runs_as_the_same_attempt(&town, id);
}
