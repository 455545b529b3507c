//! `unity-mcp demo`: what it shows, and that nothing is left of it.

use std::fs;

use crate::{code, command, err, folder, out};

/// What the demo says.
const PARTS: &[&str] = &[
    "dev.raincheck.unity",
    "ready, process ",
    "A SIMULATED editor",
    "the call waits for an editor",
    "completed: the active scene is \"Level\"",
    "of 42 tests",
    "FighterTests.WithDescription_SetsDescription Failed",
    "completed: 41 passed, 1 failed",
    "✓ one reload of the editor, one run of the tests",
    "60 of 6000 objects are trolleys",
    "cancel_requested\n",
    "cancelled: the task was cancelled: one test is enough",
    "the server ended\n",
    "✓ the result of the earlier server's run",
    "✓ the editor came to the new server by itself",
];

// [DUR-3] [LEASE-6] [CANCEL-2] [CALL-6]
#[test]
fn the_demo_shows_a_run_of_tests_over_a_reload_and_a_restart_and_cleans_up() {
    let folder = folder();
    let tmp = folder.path().join("t");
    fs::create_dir(&tmp).expect("created");
    let mut demo = command(folder.path(), &["demo"]);
    demo.env("TMPDIR", &tmp).env("RAINCHECK_STORE", "nowhere.db");
    let demo = demo.output().expect("it runs");
    let shown = out(&demo);
    assert_eq!(code(&demo), Some(0), "{shown}{}", err(&demo));
    assert!(!err(&demo).contains("ERROR"), "{shown}{}", err(&demo));
    let mut rest = shown.as_str();
    for part in PARTS {
        let found = rest.split_once(part);
        rest = found.unwrap_or_else(|| panic!("`{part}` is not in its place in {shown}")).1;
    }
    assert!(shown.ends_with("the server ended and left nothing behind\n"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "a pipe gets no colours");
    assert_eq!(fs::read_dir(&tmp).expect("a folder").count(), 0, "the demo cleans up");
    assert!(!folder.path().join("state").exists(), "the demo has a state of its own");
}
