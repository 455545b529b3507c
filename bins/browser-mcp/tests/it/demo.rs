//! `browser-mcp demo`: what it shows, with a real browser and without, and that nothing is left of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{code, command, err, folder, out};

/// What the demo says with any browser.
const PARTS: &[&str] = &[
    "ready, process ",
    "the browser came, and opened the page \"The tea shop\"",
    "ok: a browser is connected",
    "complete [\"Assam\",\"Darjeeling\",\"Oolong\"]",
    "complete \"a pot of Oolong\"",
    "cancel_requested, acknowledged",
    "ms  cancelled\n",
    "✓ the same tab, with what its window kept",
    "tool_failed: the script threw an error: TypeError: Cannot read properties of null",
    "line 3; hint: ",
    ": tool_failed\n",
    "the server ended\n",
    "✓ the result of the earlier server's command",
    "✓ the browser came to the new server by itself, with its tab as it was",
];

/// Runs the demo, checks what it says with any browser, and returns it.
fn shown(prepare: impl FnOnce(&mut Command, &Path)) -> String {
    let folder = folder();
    // Short: sockets of a browser lie below it.
    let tmp = folder.path().join("t");
    fs::create_dir(&tmp).expect("created");
    let mut demo = command(folder.path(), &["demo"]);
    demo.env("TMPDIR", &tmp).env("RAINCHECK_STORE", "nowhere.db");
    prepare(&mut demo, folder.path());
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
    #[cfg(target_os = "linux")]
    assert_eq!(processes_with(&tmp), Vec::<String>::new(), "no browser and no server is left");
    shown
}

// [DUR-3] [CANCEL-2]
#[test]
fn without_a_browser_the_demo_says_so_and_simulates_one() {
    let shown = shown(|demo, folder| {
        demo.env("CHROMIUM", folder.join("nowhere/chromium")).env("PATH", folder);
    });
    for part in ["A SIMULATED browser: CHROMIUM is `", "apt-get install -y chromium"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert!(shown.contains(", engine simulated\n"), "{shown}");
}

#[test]
fn without_any_name_of_a_browser_on_the_path_the_demo_says_which_it_tried() {
    let shown = shown(|demo, folder| {
        demo.env_remove("CHROMIUM").env("PATH", folder);
    });
    let said =
        "A SIMULATED browser: no program is called chromium, chromium-browser, google-chrome";
    assert!(shown.contains(said), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_chrome_that_takes_no_extension_is_not_started() {
    use std::os::unix::fs::PermissionsExt as _;

    let shown = shown(|demo, folder| {
        let chrome = folder.join("google-chrome");
        fs::write(&chrome, "#!/bin/sh\necho 'Google Chrome 150.0.7444.59 '\n").expect("written");
        fs::set_permissions(&chrome, fs::Permissions::from_mode(0o755)).expect("executable");
        demo.env_remove("CHROMIUM").env("PATH", folder);
    });
    let said = "A SIMULATED browser: Google Chrome 150.0.7444.59 takes no extension";
    assert!(shown.contains(said), "{shown}");
}

/// With the real extension in a real browser; `CHROMIUM` names another one than that of the path.
#[test]
fn with_chromium_the_demo_drives_it_through_the_extension() {
    // [DUR-3] [CANCEL-2]
    let chromium = std::env::var_os("CHROMIUM").unwrap_or_else(|| "chromium".into());
    let found = Command::new(&chromium).arg("--version").output();
    assert!(found.is_ok(), "`chromium` is missing; get it with: apt-get install -y chromium");
    let shown = shown(|demo, _| {
        demo.env("CHROMIUM", &chromium);
    });
    assert!(shown.contains("A real browser: Chromium "), "{shown}");
    assert!(shown.contains(", engine debugger\n") && !shown.contains("imulated"), "{shown}");
}

/// Returns the command lines of the processes that were started with a folder in their arguments.
#[cfg(target_os = "linux")]
fn processes_with(folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy();
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&*folder)).collect()
}
