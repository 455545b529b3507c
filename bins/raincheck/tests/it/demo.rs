//! `raincheck demo`: what it shows, and that nothing is left of it.

use std::fs;
use std::process::Command;

use crate::{code, err, folder, out};

/// Returns the step that the last status shows.
fn step(shown: &str) -> Option<u64> {
    let (_, rest) = shown.rsplit_once("running, progress ")?;
    let (_, rest) = rest.split_once("\"step\":")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn the_demo_shows_its_acts_and_a_killed_server_and_leaves_nothing() {
    // [DUR-3] [CMD-8]
    let folder = folder("");
    let tmp = folder.path().join("tmp");
    fs::create_dir(&tmp).expect("created");
    let demo = Command::new(env!("CARGO_BIN_EXE_raincheck"))
        .arg("demo")
        .env("TMPDIR", &tmp)
        .env("RAINCHECK_STORE", "nowhere.db")
        .env("RAINCHECK_STATE_DIR", folder.path().join("elsewhere"))
        .output()
        .expect("it runs");
    let shown = out(&demo);
    assert_eq!(code(&demo), Some(0), "{shown}{}", err(&demo));
    for part in
        ["task tsk_", "artifact picture.svg", "no such texture", "cancelled", "20 lights without"]
    {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    let (before, after) = shown.split_once("→ kill -9 ").expect("a kill");
    let before = before.rsplit_once("3. The server is killed").expect("an act").1;
    assert!(step(before) > Some(0), "the program was at work: {before}");
    let after = after.split_once("4. ").expect("another act").0;
    assert!(step(after) > step(before), "the program went on: {shown}");
    for part in [
        "the server is gone, signal: 9",
        "ready, process ",
        "✓ the same task, still in attempt 1",
        "succeeded, attempts: 1",
        "✓ artifact picture.svg, 1939 bytes, sha256 ",
        "✓ the program noted 1 start",
    ] {
        assert!(after.contains(part), "{part} is not in {after}");
    }
    assert!(shown.ends_with("the server ended and left nothing behind\n"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "a pipe gets no colours");
    let left = fs::read_dir(&tmp).expect("a folder").count();
    assert_eq!(left, 0, "the demo cleans up");
    assert!(!folder.path().join("elsewhere").exists(), "the demo has a state of its own");
    #[cfg(target_os = "linux")]
    assert_eq!(processes_in(&tmp), Vec::<String>::new(), "no program and no supervisor is left");
}

/// Returns the command lines of the processes that work below a folder.
#[cfg(target_os = "linux")]
fn processes_in(folder: &std::path::Path) -> Vec<String> {
    let folder = folder.canonicalize().expect("a folder");
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let inside = processes.map(|process| process.path()).filter(|process| {
        fs::read_link(process.join("cwd")).is_ok_and(|place| place.starts_with(&folder))
    });
    inside.map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default()).collect()
}
