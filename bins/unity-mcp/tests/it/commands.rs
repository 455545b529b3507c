//! `install`, `uninstall`, `doctor` and `status`, as a person types them.

use std::fs;

use serde_json::Value;

use crate::{code, command, err, folder, out, project, unity_mcp};

#[test]
fn a_package_is_installed_once_and_removed_again_whatever_the_folders_are_called() {
    // Case unity-install-into-odd-paths.
    let folder = folder();
    let odd = "Asset Store/Assets (old)/Ünï #1/Proj";
    let root = project(folder.path(), odd, "6000.0.23f1");
    let run = |arguments: &[&str]| unity_mcp(folder.path(), arguments);
    let first = run(&["install", &format!("{odd}/")]);
    assert_eq!(code(&first), Some(0), "{}", err(&first));
    assert!(out(&first).contains("files written") && out(&first).contains("Unity 6000.0"));
    let second = run(&["install", odd]);
    assert_eq!((code(&second), out(&second).contains("is up to date")), (Some(0), true));
    let inside = run(&["install", &format!("{odd}/Assets")]);
    assert_eq!(code(&inside), Some(0), "{}", err(&inside));
    let says = format!("the project is {}", root.display());
    assert!(out(&inside).contains(&says), "{}", out(&inside));
    assert_eq!(fs::read_dir(root.join("Assets")).expect("a folder").count(), 0);
    let outside = run(&["install", "Asset Store"]);
    assert_eq!(code(&outside), Some(2));
    assert!(err(&outside).contains("is no Unity project"), "{}", err(&outside));
    let gone = run(&["uninstall", odd]);
    assert_eq!(code(&gone), Some(0), "{}", err(&gone));
    let left: Vec<_> = fs::read_dir(root.join("Packages")).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!root.join("Library").exists());
    assert_eq!(code(&run(&["uninstall", odd])), Some(1));
}

#[test]
fn what_cannot_be_installed_says_why_and_what_to_do() {
    let folder = folder();
    project(folder.path(), "old", "2020.3.48f1");
    let run = |arguments: &[&str]| unity_mcp(folder.path(), arguments);
    let old = run(&["install", "old"]);
    assert_eq!(code(&old), Some(2));
    assert!(err(&old).contains("2020.3.48f1") && err(&old).contains("2021.3"), "{}", err(&old));
    let root = project(folder.path(), "new", "2022.3.1f1");
    assert_eq!(code(&run(&["install", "new"])), Some(0));
    let package = root.join("Packages").join("dev.raincheck.unity");
    fs::write(package.join("LICENSE.md"), "mine").expect("written");
    let edited = run(&["install", "new"]);
    assert_eq!(code(&edited), Some(1));
    assert!(err(&edited).contains("LICENSE.md") && err(&edited).contains("--force"));
    assert_eq!(code(&run(&["install", "new", "--force"])), Some(0));
    let no_git = run(&["install", "new", "--exclude-from-git"]);
    assert_eq!((code(&no_git), err(&no_git).contains("in no git repository")), (Some(1), true));
    fs::create_dir(folder.path().join(".git")).expect("made");
    let git = run(&["install", "new", "--exclude-from-git"]);
    assert_eq!(code(&git), Some(0), "{}", err(&git));
    let excluded = fs::read_to_string(folder.path().join(".git/info/exclude")).expect("a file");
    assert!(excluded.contains("/new/Packages/dev.raincheck.unity/"), "{excluded}");
}

#[test]
fn a_server_without_its_project_does_not_start() {
    let folder = folder();
    let refused = unity_mcp(folder.path(), &["serve", "--project", "nowhere"]);
    assert_eq!(code(&refused), Some(2));
    assert!(err(&refused).contains("nowhere does not exist"), "{}", err(&refused));
}

#[test]
fn what_makes_a_folder_no_project_is_named() {
    let folder = folder();
    fs::create_dir_all(folder.path().join("Half").join("ProjectSettings")).expect("made");
    let half = unity_mcp(folder.path(), &["install", "Half"]);
    assert_eq!(code(&half), Some(2));
    assert!(err(&half).contains("ProjectSettings/ProjectVersion.txt"), "{}", err(&half));
}

#[test]
fn doctor_leaves_a_project_as_it_is_and_what_it_advises_works() {
    let folder = folder();
    let root = project(folder.path(), "My Game", "2022.3.1f1");
    let run = |arguments: &[&str]| unity_mcp(folder.path(), arguments);
    let doctor = || out(&run(&["doctor", "--project", "My Game"]));
    assert!(doctor().contains(&format!("install \"{}\"", root.display())), "{}", doctor());
    assert!(!root.join("Library").exists(), "a doctor that looks does not write");
    assert_eq!(code(&run(&["install", "My Game"])), Some(0));
    let package = root.join("Packages").join("dev.raincheck.unity");
    fs::write(package.join("LICENSE.md"), "mine").expect("written");
    assert!(doctor().contains("--force"), "{}", doctor());
    let kept = run(&["uninstall", "My Game"]);
    assert!(err(&kept).contains("--force to remove them"), "{}", err(&kept));
    assert_eq!(code(&run(&["install", "My Game", "--force"])), Some(0));
    assert!(!doctor().contains("--force"), "{}", doctor());
}

#[test]
fn a_client_is_told_of_the_server_and_forgets_it() {
    let folder = folder();
    let root = project(folder.path(), "My Game", "2022.3.1f1");
    let run = |arguments: &[&str]| {
        let mut command = command(folder.path(), arguments);
        command.env("HOME", folder.path()).env("USERPROFILE", folder.path());
        command.output().expect("it runs")
    };
    let none = run(&["setup", "cursor"]);
    assert_eq!((code(&none), err(&none).contains("--project DIR")), (Some(2), true));
    let done = run(&["setup", "cursor", "--project", "My Game"]);
    assert_eq!(code(&done), Some(0), "{}", err(&done));
    let file = folder.path().join(".cursor").join("mcp.json");
    let read: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    let entry = &read["mcpServers"]["unity"];
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_unity-mcp"));
    assert_eq!(entry["args"][1], "--project");
    assert_eq!(entry["args"][2].as_str().map(std::path::Path::new), Some(root.as_path()));
    let again = run(&["setup", "cursor", "--project", "My Game"]);
    assert!(out(&again).contains("is up to date"), "{}", out(&again));
    let gone = run(&["unset", "cursor"]);
    assert_eq!(code(&gone), Some(0), "{}", err(&gone));
    assert!(!file.exists(), "setup had made it, and nothing else was in it");
}

#[test]
fn doctor_and_status_look_at_the_project_and_its_package() {
    let folder = folder();
    let root = project(folder.path(), "game", "2022.3.1f1");
    let doctor = || unity_mcp(folder.path(), &["doctor", "--json", "--project", "game"]);
    let grade = |output: &std::process::Output, check: &str| {
        let report: Value = serde_json::from_str(&out(output)).expect("JSON");
        let findings = report["findings"].as_array().expect("findings").clone();
        let found = findings.iter().find(|found| found["check"] == check);
        found.unwrap_or_else(|| panic!("no `{check}` in {report}"))["grade"].clone()
    };
    let before = doctor();
    assert_eq!((code(&before), grade(&before, "package")), (Some(1), "bad".into()));
    assert_eq!(code(&unity_mcp(folder.path(), &["install", "game"])), Some(0));
    let after = doctor();
    assert_eq!(code(&after), Some(0), "{}", out(&after));
    for check in ["project", "package", "listener", "endpoint folder", "state folder"] {
        assert_eq!(grade(&after, check), "good", "{check}: {}", out(&after));
    }
    assert_eq!(grade(&after, "editor"), "note");
    let status = unity_mcp(folder.path(), &["status", "--json", "--project", "game"]);
    let report: Value = serde_json::from_str(&out(&status)).expect("JSON");
    assert_eq!(report["project"][0], root.display().to_string(), "{report}");
    assert!(report["package"][0].as_str().is_some_and(|it| it.contains("the one of this binary")));
    // In the folder of a project it need not be named; elsewhere none is meant.
    let here = unity_mcp(&root.join("Assets"), &["status"]);
    assert!(out(&here).contains(&root.display().to_string()), "{}", out(&here));
    let elsewhere = unity_mcp(folder.path(), &["status"]);
    assert!(out(&elsewhere).contains("none: name it"), "{}", out(&elsewhere));
}
