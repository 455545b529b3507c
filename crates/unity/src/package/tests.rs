//! Installing into projects of odd names and states.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;

use super::*;

const MARKED: &[u8] =
    b"\xEF\xBB\xBF{\r\n  \"dependencies\": {\r\n    \"com.unity.ugui\": \"1.0.0\"\r\n  }\r\n}\r\n";

/// A project in a folder whose parents are named like parts of projects.
fn world() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().join("Asset Store").join("Assets (old)").join("Ünï #1").join("Proj");
    for folder in ["ProjectSettings", "Assets/Scenes", "Packages"] {
        fs::create_dir_all(below(&root, folder)).expect("made");
    }
    let write = |name: &str, bytes: &[u8]| fs::write(below(&root, name), bytes).expect("written");
    write("ProjectSettings/ProjectVersion.txt", b"m_EditorVersion: 6000.0.23f1\r\n");
    write("Assets/Scenes/Assets.unity", b"%YAML 1.1\n");
    write("Packages/manifest.json", MARKED);
    (dir, root)
}

fn project(path: &Path) -> Project {
    Project::find(path).expect("a project")
}

/// Returns every file below a folder with its bytes, and every folder with none.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut tree = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            tree.extend(self::tree(&path));
            tree.insert(path, None);
        } else {
            let bytes = fs::read(&path).expect("readable");
            tree.insert(path, Some(bytes));
        }
    }
    tree
}

#[test]
fn a_package_goes_into_its_folder_alone_and_an_uninstall_restores_the_tree() {
    // [OPS-10]
    let (dir, root) = world();
    let before = tree(dir.path());
    let project = project(&root);
    assert_eq!(compare(&project), Copy::None);
    let done = install(&project, Force::No).expect("installed");
    assert_eq!(done, Done { written: FILES.len(), removed: 0 });
    let home = folder(&project);
    assert_eq!(home, root.join("Packages").join("dev.raincheck.unity"));
    let new: Vec<_> =
        tree(dir.path()).into_keys().filter(|path| !before.contains_key(path)).collect();
    assert!(new.iter().all(|path| path.starts_with(&home)), "{new:?}");
    assert_eq!(fs::read(root.join("Packages/manifest.json")).expect("readable"), MARKED);
    assert_eq!(compare(&project), Copy::Current);
    let done = uninstall(&project, Force::No).expect("removed");
    assert_eq!((done.removed, tree(dir.path())), (FILES.len(), before));
    assert!(matches!(uninstall(&project, Force::No), Err(Refusal::Absent(_))));
}

#[test]
fn a_project_is_found_from_inside_and_never_from_above() {
    let (dir, root) = world();
    for inside in ["Assets", "Assets/Scenes", "Packages/../Assets/.", ""] {
        let found = project(&below(&root, inside).join(""));
        assert_eq!(found.root(), root, "{inside}");
        assert_eq!(found.is_parent(), !inside.is_empty(), "{inside}");
    }
    for outside in [dir.path().join("Asset Store"), root.join("nowhere/../../.."), "/".into()] {
        assert!(matches!(Project::find(&outside), Err(Refusal::NoProject(_))), "{outside:?}");
    }
}

#[test]
fn a_second_install_writes_nothing_and_a_third_only_what_differs() {
    // [OPS-10]
    let (_dir, root) = world();
    let project = project(&root);
    install(&project, Force::No).expect("installed");
    let home = folder(&project);
    let times = || -> BTreeMap<PathBuf, SystemTime> {
        let files = tree(&home).into_iter().filter(|(_, bytes)| bytes.is_some());
        files
            .map(|(path, _)| {
                let time = fs::metadata(&path).and_then(|found| found.modified());
                (path, time.expect("a time"))
            })
            .collect()
    };
    let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    for path in times().keys() {
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.set_modified(old).expect("set");
    }
    assert_eq!(install(&project, Force::No).expect("up to date"), Done::default());
    assert!(times().values().all(|time| *time == old), "no file was touched");
    fs::remove_file(home.join("package.json")).expect("removed");
    fs::write(
        home.join("package.json"),
        "{\"name\":\"dev.raincheck.unity\",\"version\":\"0.0.1\"}",
    )
    .expect("written");
    assert_eq!(install(&project, Force::Yes).expect("written").written, 1);
    let written: Vec<_> = times().into_iter().filter(|(_, time)| *time != old).collect();
    assert!(written.len() <= 2, "only the file and the list: {written:?}");
}

#[test]
fn what_somebody_changed_stays_unless_it_is_forced() {
    // [OPS-10]
    let (_dir, root) = world();
    let project = project(&root);
    install(&project, Force::No).expect("installed");
    let home = folder(&project);
    let (name, bytes) = FILES.iter().find(|(name, _)| name.ends_with(".cs")).expect("a source");
    let edited = below(&home, name);
    fs::write(&edited, "// mine\n").expect("written");
    fs::write(home.join("notes.txt"), "mine").expect("written");
    for refused in [install(&project, Force::No), uninstall(&project, Force::No)] {
        let Err(Refusal::Edited(names)) = refused else { panic!("{refused:?}") };
        assert_eq!(names, [*name]);
    }
    assert_eq!(fs::read(&edited).expect("readable"), b"// mine\n");
    let Copy::Other { edited: names, .. } = compare(&project) else { panic!("another") };
    assert_eq!(names, [*name]);
    assert_eq!(install(&project, Force::Yes).expect("written").written, 1);
    assert_eq!(fs::read(&edited).expect("readable"), *bytes);
    uninstall(&project, Force::No).expect("removed");
    let left: Vec<_> = tree(&home).into_keys().collect();
    assert_eq!(left, [home.join("notes.txt")], "what is not ours stays");
}

#[test]
fn an_older_package_is_brought_up_to_date_and_loses_the_files_that_are_gone() {
    // [OPS-10]
    let (_dir, root) = world();
    let project = project(&root);
    install(&project, Force::No).expect("installed");
    let home = folder(&project);
    // As an older version left it: another source, one that there is no more, and its list.
    let list = home.join(kept::NAME);
    let mut old: serde_json::Value =
        serde_json::from_slice(&fs::read(&list).expect("a list")).expect("JSON");
    let (name, _) = FILES.iter().find(|(name, _)| name.ends_with(".cs")).expect("a source");
    for name in [*name, "Editor/Old/Gone.cs"] {
        let path = below(&home, name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, "old\n").expect("written");
        old["files"][name] =
            "01d09d19c2139a46aebfb577780d123d7396e97201bc7ead210a2ebff8239dee".into();
    }
    old["version"] = "0.0.1".into();
    fs::write(&list, old.to_string()).expect("written");
    let Copy::Other { version, edited } = compare(&project) else { panic!("another") };
    assert_eq!((version.as_str(), edited), ("0.0.1", Vec::new()));
    let done = install(&project, Force::No).expect("written");
    assert_eq!(done, Done { written: 1, removed: 1 });
    assert_eq!(compare(&project), Copy::Current);
    assert!(!home.join("Editor/Old").exists());
}

#[test]
fn line_ends_of_a_checkout_and_a_lost_list_are_no_edits() {
    let (_dir, root) = world();
    let project = project(&root);
    install(&project, Force::No).expect("installed");
    let home = folder(&project);
    let (name, bytes) = FILES.iter().find(|(name, _)| name.ends_with(".cs")).expect("a source");
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\n', "\r\n");
    fs::write(below(&home, name), text).expect("written");
    fs::remove_file(home.join(kept::NAME)).expect("removed");
    assert_eq!(compare(&project), Copy::Current);
    assert_eq!(install(&project, Force::No).expect("the list alone").written, 0);
    uninstall(&project, Force::No).expect("removed");
}

#[test]
fn what_is_not_ours_is_never_written_over() {
    let (_dir, root) = world();
    let project = project(&root);
    let home = folder(&project);
    fs::create_dir_all(&home).expect("made");
    install(&project, Force::No).expect("an empty folder is nobody's");
    uninstall(&project, Force::No).expect("removed");
    fs::create_dir_all(&home).expect("made");
    fs::write(home.join("package.json"), "{\"name\":\"another\",\"version\":\"1\"}")
        .expect("written");
    for force in [Force::No, Force::Yes] {
        assert!(matches!(install(&project, force), Err(Refusal::Occupied(_))));
        assert!(matches!(uninstall(&project, force), Err(Refusal::Occupied(_))));
    }
    assert_eq!(compare(&project), Copy::Occupied);
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_the_package_is_not_followed() {
    let (dir, root) = world();
    let project = project(&root);
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("made");
    std::os::unix::fs::symlink(&elsewhere, folder(&project)).expect("linked");
    assert!(matches!(install(&project, Force::Yes), Err(Refusal::Occupied(_))));
    assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 0);
}

#[test]
fn a_list_that_names_files_elsewhere_is_not_believed() {
    let (_dir, root) = world();
    let project = project(&root);
    install(&project, Force::No).expect("installed");
    let list = folder(&project).join(kept::NAME);
    let text = r#"{"version":"0.0.1","files":{"../../Assets/Scenes/Assets.unity":"00"}}"#;
    fs::write(list, text).expect("written");
    uninstall(&project, Force::Yes).expect("removed");
    assert!(root.join("Assets/Scenes/Assets.unity").exists());
}

#[test]
fn a_version_that_the_package_does_not_take_is_refused() {
    let (_dir, root) = world();
    let file = root.join("ProjectSettings/ProjectVersion.txt");
    for (text, is_taken) in [
        ("m_EditorVersion: 2021.3.0f1\nm_EditorVersionWithRevision: x", true),
        ("m_EditorVersion: 6000.5.1b2", true),
        ("m_EditorVersion: 2021.2.19f1", false),
        ("m_EditorVersion: 5.6.7f1", false),
        ("m_EditorVersion:", false),
        ("", false),
    ] {
        fs::write(&file, text).expect("written");
        let version = project(&root).version();
        assert_eq!(version.is_ok(), is_taken, "{text}: {version:?}");
    }
}

#[test]
fn git_overlooks_the_package_in_one_clone() {
    let (dir, root) = world();
    let project = project(&root);
    assert!(matches!(exclude_from_git(&project), Err(Refusal::NoRepository(_))));
    let git = dir.path().join(".git");
    fs::create_dir_all(git.join("info")).expect("made");
    let file = git.join("info").join("exclude");
    fs::write(&file, "*.tmp").expect("written");
    for _ in 0..2 {
        assert_eq!(exclude_from_git(&project).expect("written"), file);
    }
    let text = fs::read_to_string(&file).expect("a file");
    let line = "/Asset\\ Store/Assets\\ (old)/Ünï\\ #1/Proj/Packages/dev.raincheck.unity/";
    assert_eq!(text.lines().filter(|found| *found == line).count(), 1, "{text}");
    include_in_git(&project).expect("written");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "*.tmp\n");
    // A worktree shares the file of its repository.
    fs::rename(&git, dir.path().join("main.git")).expect("moved");
    let own = dir.path().join("main.git").join("worktrees").join("it");
    fs::create_dir_all(&own).expect("made");
    fs::write(own.join("commondir"), "../..\n").expect("written");
    fs::write(&git, "gitdir: main.git/worktrees/it\n").expect("written");
    exclude_from_git(&project).expect("written");
    let text = fs::read_to_string(dir.path().join("main.git/info/exclude")).expect("a file");
    assert!(text.contains(line), "{text}");
}

#[test]
fn the_package_is_whole_and_of_the_version_of_this_library() {
    assert_eq!(identity().name, "dev.raincheck.unity");
    assert_eq!(identity().version, env!("CARGO_PKG_VERSION"));
    assert!(FILES.iter().all(|(name, _)| is_sound(name) && !name.starts_with("Tests/")));
    assert!(FILES.len() > 10, "{} files", FILES.len());
    assert!(!is_sound("../a") && !is_sound("a//b") && !is_sound("C:/a") && !is_sound("a\\b"));
}
