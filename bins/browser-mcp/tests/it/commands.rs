//! The subcommands for people.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::{browser_mcp, code, command, err, folder, out};

/// Reads what the extension of a folder finds the server by.
fn pairing(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("pairing.json")).expect("a pairing");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_help_names_the_subcommands_and_where_to_listen() {
    let help = browser_mcp(folder().path(), &["--help"]);
    assert_eq!(code(&help), Some(0));
    for word in ["serve", "demo", "doctor", "status", "extension", "completions", "--port"] {
        assert!(out(&help).contains(word), "{word} is not in {}", out(&help));
    }
}

#[test]
fn the_extension_is_written_gets_a_new_secret_and_goes() {
    let folder = folder();
    let target = folder.path().join("extension");
    let written = browser_mcp(folder.path(), &["extension", "install", "extension"]);
    assert_eq!(code(&written), Some(0), "{}", err(&written));
    assert!(out(&written).contains("Load unpacked"), "{}", out(&written));
    assert!(out(&written).contains(&*target.to_string_lossy()), "{}", out(&written));
    assert!(target.join("manifest.json").is_file() && target.join("worker.js").is_file());
    let first = pairing(&target)["secret"].as_str().map(str::to_owned).expect("a secret");
    assert!(!out(&written).contains(&first), "[SEC-3] the secret is not shown");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o77;
        assert_eq!((mode(&target), mode(&target.join("pairing.json"))), (0, 0), "[SEC-4]");
    }

    let again = browser_mcp(folder.path(), &["extension", "install", "extension"]);
    assert_eq!(code(&again), Some(0), "{}", err(&again));
    assert_eq!(pairing(&target)["secret"], *first, "it stays paired");

    let rotated = browser_mcp(folder.path(), &["extension", "rotate"]);
    assert_eq!(code(&rotated), Some(0), "{}", err(&rotated));
    assert_ne!(pairing(&target)["secret"], *first);

    fs::write(target.join("notes.txt"), "mine").expect("written");
    let gone = browser_mcp(folder.path(), &["extension", "uninstall", "extension"]);
    assert_eq!(code(&gone), Some(0), "{}", err(&gone));
    let left: Vec<_> = fs::read_dir(&target).expect("there").flatten().collect();
    assert_eq!(left.len(), 1, "what somebody else wrote stays: {left:?}");
    let absent = browser_mcp(folder.path(), &["extension", "uninstall", "extension"]);
    assert_eq!(code(&absent), Some(1));
    assert!(err(&absent).contains("next: "), "{}", err(&absent));
}

#[test]
fn the_extension_is_not_written_over_something_else() {
    let folder = folder();
    fs::write(folder.path().join("letter"), "dear").expect("written");
    let refused = browser_mcp(folder.path(), &["extension", "install", "."]);
    assert_eq!(code(&refused), Some(1));
    assert!(err(&refused).contains("next: name a folder of its own"), "{}", err(&refused));
    assert!(!folder.path().join("manifest.json").exists());
}

#[test]
fn doctor_and_status_report_without_a_server() {
    let folder = folder();
    let doctor = browser_mcp(folder.path(), &["doctor", "--json"]);
    let report: Value = serde_json::from_str(&out(&doctor)).expect("JSON");
    assert_eq!(code(&doctor) == Some(0), report["ok"] == true, "{report}");
    let status = browser_mcp(folder.path(), &["status", "--json"]);
    let report: Value = serde_json::from_str(&out(&status)).expect("JSON");
    assert_eq!((code(&status), report["servers"].as_array().map(Vec::len)), (Some(0), Some(0)));
    for subcommand in ["doctor", "status"] {
        let told = browser_mcp(folder.path(), &[subcommand]);
        assert!(!out(&told).is_empty() && err(&told).is_empty(), "{}", err(&told));
        assert!(out(&told).contains("observe health") || subcommand == "status", "{}", out(&told));
    }
}

#[test]
fn the_list_of_all_tools_costs_a_model_at_most_eight_kilobytes() {
    // [BROWSER-1]
    let folder = folder();
    let mut serve = command(folder.path(), &["serve"]);
    serve.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = serve.spawn().expect("it runs");
    let mut input = child.stdin.take().expect("a pipe");
    let asked = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
        r#""capabilities":{},"clientInfo":{"name":"it","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        "\n",
    );
    input.write_all(asked.as_bytes()).expect("written");
    let said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let list = said.map_while(Result::ok).find(|line| line.contains(r#""tools":["#));
    let list = list.expect("a list");
    assert!(list.len() <= 8 * 1024, "{} bytes", list.len());
    drop(input);
    assert!(child.wait().expect("it ends").success());
}
