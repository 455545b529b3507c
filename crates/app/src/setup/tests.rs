use std::fs;

use clap::{Parser, ValueEnum as _};
use expect_test::{Expect, expect, expect_file};

use super::*;
use crate::failure::Exit;

const UNITY: Binary = Binary {
    name: "unity-mcp",
    sections: &[],
    while_running: "",
    while_stopped: "",
    on_shared_store: "",
};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    setup: Setup,
}

#[derive(Parser)]
struct UnsetCli {
    #[command(flatten)]
    unset: Unset,
}

fn server() -> Server<'static> {
    Server {
        binary: &UNITY,
        name: "unity",
        args: vec!["serve".into(), "--project".into(), "/games/My Game".into()],
    }
}

fn setup(line: &[&str]) -> Setup {
    Cli::try_parse_from([&["setup"], line].concat()).unwrap_or_else(|e| panic!("{e}")).setup
}

/// Runs `setup` for a program at a path, with a file.
fn run_as(own: &str, client: &str, file: &Path, more: &[&str]) -> Result<String, Failure> {
    let file = file.to_str().expect("text");
    let setup = setup(&[&[client, "--file", file], more].concat());
    setup.told(&server(), Path::new(own), Os::Linux, &|_| None)
}

fn run(client: &str, file: &Path) -> Result<String, Failure> {
    run_as("/opt/bin/unity-mcp", client, file, &[])
}

fn undo(client: &str, file: &Path) -> Result<String, Failure> {
    let line = ["unset", client, "--file", file.to_str().expect("text")];
    let cli = UnsetCli::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"));
    cli.unset.told(&server(), Os::Linux, &|_| None)
}

fn clients() -> impl Iterator<Item = (Client, String)> {
    let named = |client: &Client| {
        client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    Client::value_variants().iter().map(move |client| (*client, named(client)))
}

#[test]
fn every_client_has_its_file_on_every_system() {
    let mut table = String::new();
    for os in [Os::Linux, Os::Mac, Os::Windows] {
        for (client, name) in clients() {
            let env = |name: &str| match name {
                "HOME" => Some("~".into()),
                "USERPROFILE" => Some("%USERPROFILE%".into()),
                "APPDATA" => Some("%APPDATA%".into()),
                _ => None,
            };
            let path = client.file(os, &env).expect("a file");
            table += &format!("{os:?} {name} {}\n", path.display().to_string().replace('\\', "/"));
        }
    }
    expect![[r#"
        Linux claude-code ~/.claude.json
        Linux claude-desktop ~/.config/Claude/claude_desktop_config.json
        Linux cursor ~/.cursor/mcp.json
        Linux vscode ~/.config/Code/User/mcp.json
        Linux codex ~/.codex/config.toml
        Linux gemini ~/.gemini/settings.json
        Linux windsurf ~/.codeium/windsurf/mcp_config.json
        Linux zed ~/.config/zed/settings.json
        Linux copilot ~/.copilot/mcp-config.json
        Mac claude-code ~/.claude.json
        Mac claude-desktop ~/Library/Application Support/Claude/claude_desktop_config.json
        Mac cursor ~/.cursor/mcp.json
        Mac vscode ~/Library/Application Support/Code/User/mcp.json
        Mac codex ~/.codex/config.toml
        Mac gemini ~/.gemini/settings.json
        Mac windsurf ~/.codeium/windsurf/mcp_config.json
        Mac zed ~/.config/zed/settings.json
        Mac copilot ~/.copilot/mcp-config.json
        Windows claude-code %USERPROFILE%/.claude.json
        Windows claude-desktop %APPDATA%/Claude/claude_desktop_config.json
        Windows cursor %USERPROFILE%/.cursor/mcp.json
        Windows vscode %APPDATA%/Code/User/mcp.json
        Windows codex %USERPROFILE%/.codex/config.toml
        Windows gemini %USERPROFILE%/.gemini/settings.json
        Windows windsurf %USERPROFILE%/.codeium/windsurf/mcp_config.json
        Windows zed %APPDATA%/Zed/settings.json
        Windows copilot %USERPROFILE%/.copilot/mcp-config.json
    "#]]
    .assert_eq(&table);
    let none = Client::Zed.file(Os::Linux, &|_| None);
    assert_eq!(none, None, "without a home there is no place");
}

#[test]
fn a_new_file_holds_what_the_client_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut all = String::new();
    for (_, client) in clients() {
        let file = folder.path().join(&client).join("settings");
        run(&client, &file).expect("written");
        let text = fs::read_to_string(&file).expect("a file");
        all += &format!("--- {client}\n{text}");
        let again = run(&client, &file).expect("read");
        assert!(again.contains("is up to date"), "{again}");
        assert_eq!(fs::read_to_string(&file).expect("a file"), text, "{client}");
        undo(&client, &file).expect("undone");
        let left = fs::read_dir(file.parent().expect("a folder")).expect("a folder").count();
        assert_eq!(left, 0, "{client}");
    }
    expect_file!["new-files.txt"].assert_eq(&all);
}

#[test]
fn only_a_file_that_setup_made_goes_with_its_last_entry() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("settings");
    for client in ["codex", "cursor"] {
        // Made, and changed by another version.
        run(client, &file).expect("written");
        run_as("/new/unity-mcp", client, &file, &[]).expect("written");
        let said = undo(client, &file).expect("undone");
        assert!(said.contains("nothing else was in it"), "{said}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "{client}");
        // One that was there stays, if only as empty as it was.
        fs::write(&file, "").expect("written");
        run(client, &file).expect("written");
        undo(client, &file).expect("undone");
        assert!(file.exists(), "{client}");
        fs::remove_dir_all(folder.path()).expect("removed");
        fs::create_dir(folder.path()).expect("made");
        // So does one in which a person has written since.
        run(client, &file).expect("written");
        let mut text = fs::read_to_string(&file).expect("a file");
        text.insert_str(0, if client == "codex" { "# mine\n" } else { "// mine\n" });
        fs::write(&file, text).expect("written");
        undo(client, &file).expect("undone");
        assert!(fs::read_to_string(&file).expect("a file").contains("mine"), "{client}");
        fs::remove_dir_all(folder.path()).expect("removed");
        fs::create_dir(folder.path()).expect("made");
    }
}

/// Sets a server up in a text, and undoes that.
fn there_and_back(client: &str, before: &str, after: &Expect) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("settings");
    fs::write(&file, before).expect("written");
    run(client, &file).expect("written");
    after.assert_eq(&fs::read_to_string(&file).expect("a file"));
    let copy = folder.path().join("settings.raincheck.bak");
    assert_eq!(fs::read_to_string(copy).expect("a copy"), before);
    undo(client, &file).expect("undone");
    assert_eq!(fs::read_to_string(&file).expect("a file"), before);
}

#[test]
fn comments_and_order_stay_and_unset_undoes_it() {
    there_and_back(
        "zed",
        "// Zed\n{\n  \"theme\": \"One\", // dark\n  \"context_servers\": {\n    /* mine */\n    \"other\": { \"command\": \"x\", \"args\": [] },\n  },\n  \"font\": 12,\n}\n",
        &expect![[r#"
            // Zed
            {
              "theme": "One", // dark
              "context_servers": {
                /* mine */
                "other": { "command": "x", "args": [] },
                "unity": {
                  "command": "/opt/bin/unity-mcp",
                  "args": ["serve", "--project", "/games/My Game"],
                },
              },
              "font": 12,
            }
        "#]],
    );
    there_and_back(
        "claude-code",
        "{\n  \"numStartups\": 34,\n  \"projects\": { \"/a\": { \"mcpServers\": {} } }\n}",
        &expect![[r#"
            {
              "numStartups": 34,
              "projects": { "/a": { "mcpServers": {} } },
              "mcpServers": {
                "unity": {
                  "type": "stdio",
                  "command": "/opt/bin/unity-mcp",
                  "args": ["serve", "--project", "/games/My Game"],
                  "alwaysLoad": true
                }
              }
            }"#]],
    );
    there_and_back(
        "codex",
        "# Codex\nmodel = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n\n[tui]\nnotifications = true\n",
        &expect![[r##"
            # Codex
            model = "m" # mine

            [mcp_servers.other]
            command = "x"

            [mcp_servers.unity]
            command = "/opt/bin/unity-mcp"
            args = ["serve", "--project", "/games/My Game"]

            [tui]
            notifications = true
        "##]],
    );
}

#[test]
fn an_older_entry_of_ours_is_brought_up_to_date_and_keeps_what_a_person_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("a.json");
    fs::write(&json, r#"{"mcpServers":{"unity":{"command":"/old/unity-mcp","args":["serve"],"env":{"A":"1"},"alwaysLoad":false}}}"#).expect("written");
    run("claude-code", &json).expect("written");
    let read: serde_json::Value =
        serde_json::from_slice(&fs::read(&json).expect("a file")).expect("JSON");
    let entry = &read["mcpServers"]["unity"];
    assert_eq!(entry["command"], "/opt/bin/unity-mcp");
    assert_eq!(entry["args"][2], "/games/My Game");
    assert_eq!((&entry["env"]["A"], &entry["alwaysLoad"]), (&"1".into(), &false.into()));
    let toml = folder.path().join("a.toml");
    fs::write(&toml, "[mcp_servers.unity]\ncommand = \"unity-mcp\" # mine\nargs = [\"serve\"]\ntool_timeout_sec = 900\n").expect("written");
    run("codex", &toml).expect("written");
    expect![[r#"
        [mcp_servers.unity]
        command = "/opt/bin/unity-mcp" # mine
        args = ["serve", "--project", "/games/My Game"]
        tool_timeout_sec = 900
    "#]]
    .assert_eq(&fs::read_to_string(&toml).expect("a file"));
}

#[test]
fn what_cannot_be_read_or_is_not_ours_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        ("cursor", "{ \"mcpServers\": { ", "it is no JSON", true),
        ("cursor", "[]", "holds no object", true),
        ("cursor", "{\"mcpServers\": []}", "`mcpServers` in it is no object", true),
        ("cursor", "{\"mcpServers\": {\"unity\": 5}}", "`unity` in it is no object", true),
        ("cursor", "{\"mcpServers\": {\"unity\": {\"command\": \"/x/other\"}}}", "/x/other", false),
        (
            "cursor",
            "{\"mcpServers\": {\"unity\": {\"url\": \"http://x\"}}}",
            "another program",
            false,
        ),
        ("codex", "model = ", "it is no TOML", true),
        ("codex", "mcp_servers = 5", "`mcp_servers` in it is no table", true),
        ("codex", "[mcp_servers.unity]\ncommand = \"other\"\n", "other", false),
    ];
    for (client, before, words, has_lines) in cases {
        let file = folder.path().join("settings");
        fs::write(&file, before).expect("written");
        let refused = run(client, &file).expect_err(before);
        assert_eq!(refused.exit, Exit::Failed);
        assert!(refused.message.contains(words), "{before}: {refused}");
        assert!(refused.message.contains("nothing was changed"), "{refused}");
        assert_eq!(refused.next.contains("/games/My Game"), has_lines, "{before}: {refused}");
        assert!(undo(client, &file).is_err(), "{before}");
        assert_eq!(fs::read_to_string(&file).expect("a file"), before);
    }
    fs::write(folder.path().join("settings"), b"{\xff}").expect("written");
    let refused = run("cursor", &folder.path().join("settings")).expect_err("no text");
    assert!(refused.message.contains("UTF-8"), "{refused}");
}

#[test]
fn line_ends_and_the_mark_of_an_editor_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("settings");
    for (client, before) in [
        ("vscode", "\u{feff}{\r\n\t\"servers\": {\r\n\t\t\"x\": {}\r\n\t}\r\n}\r\n"),
        ("codex", "model = \"m\"\r\n"),
    ] {
        fs::write(&file, before).expect("written");
        run(client, &file).expect("written");
        let text = fs::read_to_string(&file).expect("a file");
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{text:?}");
        assert_eq!(text.starts_with('\u{feff}'), before.starts_with('\u{feff}'));
        undo(client, &file).expect("undone");
        assert_eq!(fs::read_to_string(&file).expect("a file"), before);
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_one_and_access_rights_stay() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().expect("a folder");
    let (real, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
    fs::write(&real, "{}\n").expect("written");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("set");
    symlink(&real, &link).expect("linked");
    run("cursor", &link).expect("written");
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    let mode = fs::metadata(&real).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(fs::read_to_string(&real).expect("a file").contains("unity-mcp"));
}

#[test]
fn printing_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mcp.json");
    let told = run_as("/opt/bin/unity-mcp", "cursor", &file, &["--print", "--", "--port", "9"]);
    let told = told.expect("printed");
    assert!(told.contains("mcpServers") && told.contains("\"--port\", \"9\""), "{told}");
    assert!(!file.exists());
}

#[test]
fn names_are_short_and_plain() {
    for bad in ["", "a b", "ünity", "a.b", &"x".repeat(25)] {
        assert!(Cli::try_parse_from(["setup", "zed", "--name", bad]).is_err(), "{bad}");
    }
    let file = Path::new("/nowhere/x");
    let told = run_as("/b/unity-mcp", "zed", file, &["--print", "--name", "game_2"]);
    assert!(told.expect("printed").contains("\"game_2\""));
}
