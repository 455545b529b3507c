//! The death of the process that started the server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::folder;

// [CANCEL-8]
#[test]
fn a_server_whose_parent_dies_ends_though_its_input_stays_open() {
    let folder = folder("");
    let mut parent = Command::new("sh")
        .args(["-c", "exec 3<&0; \"$0\" serve --state-dir state <&3 3<&- & wait"])
        .arg(env!("CARGO_BIN_EXE_raincheck"))
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut input = parent.stdin.take().expect("a pipe");
    let mut output = BufReader::new(parent.stdout.take().expect("a pipe"));
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    writeln!(input, "{hello}").expect("written");
    let mut line = String::new();
    output.read_line(&mut line).expect("an answer");
    assert!(line.contains("\"id\":1"), "{line}");
    parent.kill().expect("killed");
    parent.wait().expect("ended");
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(output.read_to_end(&mut Vec::new())));
    let end = end.recv_timeout(Duration::from_secs(20));
    assert!(matches!(end, Ok(Ok(_))), "the server outlives its parent: {end:?}");
    drop(input);
}
