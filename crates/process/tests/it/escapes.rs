//! Programs that try to leave something behind [CMD-7, CANCEL-6].
//!
//! `RAINCHECK_ESCAPES` asks for more attempts of each kind; 1,000 take a few minutes.

use std::path::Path;
use std::time::Duration;

use raincheck_core::lifecycle::State;
use raincheck_process::CommandTool;

use crate::harness::{House, python, with};

/// How often each kind of escape is tried.
fn n_attempts() -> usize {
    let told = std::env::var("RAINCHECK_ESCAPES").ok();
    told.map_or(8, |n| n.parse().expect("RAINCHECK_ESCAPES is a number"))
}

/// What a survivor does: it writes a sign of life again and again. The sign tells one attempt from
/// every other.
const LIVE: &str = r#"
import json, os, sys, time
sign = json.load(sys.stdin)["sign"]
def live():
    while True:
        with open(sign, "a") as out: out.write("x")
        time.sleep(0.002)
def quiet():
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2): os.dup2(null, fd)
    os.closerange(3, 64)
"#;

/// A daemon as the books make one.
const DAEMON: &str = r#"
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        quiet()
        live()
"#;

/// Another program, with a session of its own and an empty environment.
const CLEARED: &str = r#"
code = "import sys,time\nwhile True:\n open(sys.argv[1],'a').write('x')\n time.sleep(0.002)"
for _ in range(2):
    if os.fork() == 0:
        quiet()
        os.setsid()
        os.execve(sys.executable, ["x", "-c", code, sign], {})
"#;

/// A process that is never the one that was seen: each lives for an instant, and makes the next.
const HOPPING: &str = r#"
if os.fork() == 0:
    os.setsid()
    quiet()
    while True:
        with open(sign, "a") as out: out.write("x")
        if os.fork(): os._exit(0)
        os.setsid()
"#;

/// Many processes that make more while they are being ended.
const SPREADING: &str = r#"
import signal
def spread(n):
    for _ in range(n):
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, lambda *_: spread(3))
            quiet()
            live()
spread(4)
"#;

fn tool(folder: &Path, name: &str, escape: &str, then: &str) -> CommandTool {
    let script = format!("{LIVE}{escape}\nprint('made', flush=True)\n{then}");
    CommandTool { grace: Duration::from_millis(200), ..python(folder, name, &script) }
}

/// Runs the attempts of a kind and checks after each that nothing of it lives.
async fn try_to_escape(house: &House, name: &str, is_cancelled: bool) {
    for n in 0..n_attempts() {
        let sign = house.folder().join(format!("{name}-{n}"));
        let id = house.submit(name, &format!(r#"{{"sign":"{}"}}"#, sign.display())).await;
        if is_cancelled {
            house.lines(id, 1).await;
            house.cancel(id).await;
            assert_eq!(house.end(id).await.state, State::Cancelled, "{name} {n}");
        } else {
            assert_eq!(house.end(id).await.state, State::Succeeded, "{name} {n}");
        }
        assert_gone(house.folder(), &sign);
    }
}

/// Looks for processes that work in the folder of the tools, and for signs of life of any that are
/// too short-lived to be seen.
fn assert_gone(folder: &Path, sign: &Path) {
    let len = || std::fs::metadata(sign).map_or(0, |facts| facts.len());
    let before = len();
    for _ in 0..10 {
        let all = std::fs::read_dir("/proc").expect("a process table").flatten();
        let left: Vec<_> = all
            .filter(|it| std::fs::read_link(it.path().join("cwd")).is_ok_and(|cwd| cwd == folder))
            .map(|it| it.file_name())
            .collect();
        assert!(left.is_empty(), "{left:?} live on");
    }
    assert_eq!(len(), before, "a process of {} lives on", sign.display());
}

async fn check(name: &'static str, escape: &'static str) {
    let tools = move |folder: &Path| {
        vec![
            tool(folder, name, escape, "time.sleep(0.01)"),
            tool(folder, "told", escape, "while True: time.sleep(1)"),
        ]
    };
    with(tools, |house| async move {
        try_to_escape(&house, name, false).await;
        try_to_escape(&house, "told", true).await;
    })
    .await;
}

#[tokio::test]
async fn no_daemon_outlives_its_program() {
    check("daemon", DAEMON).await;
}

#[tokio::test]
async fn no_process_with_an_empty_environment_outlives_its_program() {
    check("cleared", CLEARED).await;
}

#[tokio::test]
async fn no_process_outruns_its_end_by_becoming_another() {
    check("hopping", HOPPING).await;
}

#[tokio::test]
async fn no_process_is_made_that_outlives_a_cancel() {
    check("spreading", SPREADING).await;
}
