use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use expect_test::expect;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

struct Attempt {
    task: tempfile::TempDir,
    shelf: Shelf,
}

fn attempt() -> Attempt {
    let task = tempfile::tempdir().expect("a folder");
    let shelf = Shelf { from: task.path().join("a1/artifacts"), to: task.path().join("artifacts") };
    fs::create_dir_all(&shelf.from).expect("a folder");
    Attempt { task, shelf }
}

impl Attempt {
    fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) {
        fs::write(self.shelf.from.join(name), bytes).expect("a file");
    }

    fn collect(&self, claims: &[(&str, &str)]) -> Collected {
        let claims: Vec<Claim> = claims
            .iter()
            .map(|(path, kind)| Claim { path: (*path).to_owned(), kind: Some((*kind).to_owned()) })
            .collect();
        let mut n = 0;
        let ids = || {
            n += 1;
            ArtifactId::from(format!("art_{n}"))
        };
        collect(&self.shelf, &claims, &AtomicBool::new(false), ids).expect("collected")
    }
}

// [ART-1, SEC-9]
#[test]
fn regular_files_of_any_name_are_kept_and_nothing_else_and_never_in_silence() {
    let it = attempt();
    for name in ["plain.txt", "..foo..bar", ".hidden", "-rf", "two\nlines \u{202e}.txt"] {
        it.write(name, name.as_bytes());
    }
    it.write("empty", b"");
    fs::create_dir(it.shelf.from.join("sub")).expect("a folder");
    it.write("sub/plain.txt", b"other");
    it.write(std::ffi::OsStr::from_bytes(b"\xff.bin"), b"x");
    symlink("/etc/hostname", it.shelf.from.join("link.txt")).expect("a link");
    symlink("/etc", it.shelf.from.join("dir")).expect("a link");
    symlink("plain.txt", it.shelf.from.join("inner.txt")).expect("a link");
    mknodat(CWD, it.shelf.from.join("pipe"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    let _socket =
        std::os::unix::net::UnixListener::bind(it.shelf.from.join("s.sock")).expect("a socket");

    let kind = "text/html";
    let collected = it.collect(&[
        ("plain.txt", kind),
        ("../../../../etc/hostname", kind),
        ("/etc/hostname", kind),
        ("dir/hostname", kind),
        ("sub/../plain.txt", kind),
        ("missing", kind),
        ("", kind),
    ]);
    let mut all = String::new();
    for artifact in &collected.artifacts {
        all += &format!("{} ({}) {}\n", artifact.name, artifact.kind, artifact.size);
    }
    for note in &collected.notes {
        all += &format!("{note}\n");
    }
    expect![[r#"
        -rf (file) 3
        ..foo..bar (file) 10
        .hidden (file) 7
        empty (file) 0
        plain.txt (text/html) 9
        sub/plain.txt (file) 5
        two\x0alines \u{202e}.txt (file) 17
        \xff.bin (file) 1
        the reported artifact `../../../../etc/hostname` leads out of a folder
        the reported artifact `/etc/hostname` lies outside of the artifacts folder
        the reported artifact `sub/../plain.txt` leads out of a folder
        the reported artifact `` names no file
        `dir` is no artifact: it is a link
        `inner.txt` is no artifact: it is a link
        `link.txt` is no artifact: it is a link
        `pipe` is no artifact: it is no regular file
        `s.sock` is no artifact: it is no regular file
        the reported artifact `dir/hostname` is no regular file in the folder
        the reported artifact `missing` is no regular file in the folder
    "#]]
    .assert_eq(&all);
}

#[test]
fn a_kept_file_has_its_bytes_and_its_hash_and_cannot_be_written() {
    let it = attempt();
    it.write("a.txt", b"abc");
    let collected = it.collect(&[]);
    let [artifact] = &collected.artifacts[..] else { panic!("{collected:?}") };
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!((&*artifact.path, &*artifact.sha256), ("artifacts/art_1", sha256));
    let kept = it.task.path().join(&*artifact.path);
    assert_eq!(fs::read(&kept).expect("kept"), b"abc");
    let mode = fs::metadata(&kept).expect("facts").permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
    assert!(!it.shelf.from.join("a.txt").exists());
}

// [SEC-13]
#[test]
fn a_file_with_another_name_elsewhere_is_refused_and_left_as_it_is() {
    let it = attempt();
    let outside = it.task.path().join("outside");
    fs::write(&outside, b"somebody's").expect("a file");
    fs::hard_link(&outside, it.shelf.from.join("alias")).expect("a second name");
    fs::hard_link(&outside, it.shelf.from.join("another")).expect("a third name");
    let before = fs::metadata(&outside).expect("facts").permissions().mode();
    let collected = it.collect(&[]);
    assert!(collected.artifacts.is_empty(), "{collected:?}");
    assert_eq!(
        collected.notes,
        ["alias", "another"].map(|name| format!(
            "`{name}` is no artifact: it is also a file outside of the folder"
        ))
    );
    assert_eq!(fs::metadata(&outside).expect("facts").permissions().mode(), before);
    assert_eq!(fs::read(&outside).expect("there"), b"somebody's");
}

// [SEC-13]
#[test]
fn names_of_one_file_that_are_all_in_the_folder_are_kept_each_as_a_file_of_its_own() {
    let it = attempt();
    fs::create_dir(it.shelf.from.join("sub")).expect("a folder");
    it.write("one", b"same");
    fs::hard_link(it.shelf.from.join("one"), it.shelf.from.join("sub/two")).expect("a name");
    let collected = it.collect(&[("sub/two", "twin")]);
    let names: Vec<_> = collected.artifacts.iter().map(|it| (&*it.name, &*it.kind)).collect();
    assert_eq!(names, [("one", "file"), ("sub/two", "twin")], "{collected:?}");
    for artifact in &collected.artifacts {
        let kept = it.task.path().join(&*artifact.path);
        assert_eq!(fs::read(&kept).expect("kept"), b"same");
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&fs::metadata(&kept).expect("facts")), 1);
    }
}

#[test]
fn names_of_one_file_count_as_artifacts_too() {
    for (n_names, n_files, n_kept) in [(5_001, 5_001, 10_000), (10_001, 3, 3)] {
        let it = attempt();
        it.write("a", b"");
        for n in 1..n_names {
            fs::hard_link(it.shelf.from.join("a"), it.shelf.from.join(format!("a{n}")))
                .expect("a name");
        }
        (0..n_files).for_each(|n| it.write(format!("b{n}"), b""));
        let collected = it.collect(&[]);
        assert_eq!(collected.artifacts.len(), n_kept, "{:?}", collected.notes);
        assert!(!collected.notes.is_empty());
    }
}

// [ART-1]
#[test]
fn what_is_larger_than_may_be_kept_is_not_read() {
    let it = attempt();
    it.write("small", b"small");
    let sparse = fs::File::create(it.shelf.from.join("huge")).expect("a file");
    sparse.set_len(200 << 30).expect("a sparse file");
    let collected = it.collect(&[]);
    assert_eq!(collected.artifacts.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["small"]);
    let [note] = &collected.notes[..] else { panic!("{collected:?}") };
    assert!(note.contains("`huge`") && note.contains("214748364800 bytes"), "{note}");
}

// [CANCEL-6]
#[test]
fn a_request_to_end_cuts_the_reading_short_and_nothing_is_kept() {
    let it = attempt();
    it.write("a", b"a");
    // Reading this would take a minute.
    let sparse = fs::File::create(it.shelf.from.join("huge")).expect("a file");
    sparse.set_len(MAX_BYTES / 2).expect("a sparse file");
    let is_cut = AtomicBool::new(false);
    let collected = std::thread::scope(|scope| {
        let collecting = scope.spawn(|| {
            let mut n = 0;
            let ids = || {
                n += 1;
                ArtifactId::from(format!("art_{n}"))
            };
            collect(&it.shelf, &[], &is_cut, ids).expect("collected")
        });
        // The second file is being read once it has its new name.
        while !it.shelf.to.join("art_2").exists() {
            std::thread::yield_now();
        }
        is_cut.store(true, std::sync::atomic::Ordering::Relaxed);
        collecting.join().expect("no panic")
    });
    assert!(collected.artifacts.is_empty(), "{collected:?}");
    assert_eq!(collected.notes.len(), 1, "{collected:?}");
    assert!(!it.shelf.to.exists(), "what was taken is still there");
}

#[test]
fn a_folder_that_was_replaced_by_a_link_is_not_entered() {
    let it = attempt();
    fs::remove_dir(&it.shelf.from).expect("removed");
    symlink("/etc", &it.shelf.from).expect("a link");
    assert!(collect(&it.shelf, &[], &AtomicBool::new(false), || ArtifactId::from("art")).is_err());
}

#[test]
fn no_artifact_leaves_no_folder() {
    let it = attempt();
    assert!(it.collect(&[]).artifacts.is_empty());
    assert!(!it.shelf.to.exists());
}

#[test]
fn what_is_kept_is_for_its_owner_only() {
    let it = attempt();
    it.write("a", b"a");
    let collected = it.collect(&[]);
    let mode = |path: &Path| fs::metadata(path).expect("facts").permissions().mode() & 0o777;
    assert_eq!(mode(&it.shelf.to), 0o700);
    assert_eq!(mode(&it.task.path().join(&*collected.artifacts[0].path)), 0o400);
}

#[test]
fn of_many_files_that_are_none_the_first_are_told_and_the_rest_counted() {
    let it = attempt();
    for n in 0..MAX_NOTES + 7 {
        symlink("/etc", it.shelf.from.join(format!("link-{n}"))).expect("a link");
    }
    let haul = keep(&it.shelf, &AtomicBool::new(false), || ArtifactId::from("art")).expect("kept");
    assert_eq!((haul.notes.len(), haul.n_untold), (MAX_NOTES, 7));
    let notes = it.collect(&[]).notes;
    assert_eq!(notes.last().map(String::as_str), Some("7 more files are no artifacts"));
}
