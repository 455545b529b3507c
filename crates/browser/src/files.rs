//! The one folder of this machine that commands reach: the files that they upload are in it, and what
//! they save goes into it. A person names it; nothing else on the disk is opened but the file of a download,
//! which is where the extension says that the browser put it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

use raincheck_core::error::{Error, Kind};
use raincheck_core::text;
use raincheck_loopback::artifacts::{create_beneath, name_beneath, open_beneath, remove_beneath};

/// The largest file that is uploaded, in bytes.
pub(crate) const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The marks of what is being saved now.
static SAVING: (Mutex<BTreeSet<String>>, Condvar) = (Mutex::new(BTreeSet::new()), Condvar::new());

/// The largest download that is copied, in bytes.
const MAX_COPY: u64 = 1024 * 1024 * 1024;

/// Checks that a file may be uploaded. Works with blocking calls.
///
/// # Errors
/// `unauthorized` while no folder is named, `invalid_params` for what is no regular file in it.
pub(crate) fn check(field: &str, root: Option<&Path>, name: &str) -> Result<(), Error> {
    open(field, root, name).map(drop)
}

/// Reads a file that is uploaded, as it is now. Works with blocking calls.
pub(crate) fn read(field: &str, root: Option<&Path>, name: &str) -> Result<Vec<u8>, Error> {
    let file = open(field, root, name)?;
    let mut bytes = Vec::new();
    // It may have grown since it was opened.
    let n = file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| refused(field, &e))?;
    if n as u64 > MAX_FILE { Err(too_large(field)) } else { Ok(bytes) }
}

fn open(field: &str, root: Option<&Path>, name: &str) -> Result<File, Error> {
    let (root, name) = place(field, root, name)?;
    let file = open_beneath(root, &name).map_err(|error| refused(field, &error))?;
    let size = file.metadata().map_err(|error| refused(field, &error))?.len();
    if size > MAX_FILE { Err(too_large(field)) } else { Ok(file) }
}

/// Checks that a name is one of a file below the folder, whether there is one or not.
pub(crate) fn check_name(field: &str, root: Option<&Path>, name: &str) -> Result<(), Error> {
    place(field, root, name).map(drop)
}

/// Checks that output may be saved under a name: the folder is there, and nothing of that name in it.
/// Works with blocking calls.
pub(crate) fn check_new(field: &str, root: Option<&Path>, name: &str) -> Result<(), Error> {
    let (root, name) = place(field, root, name)?;
    if !root.is_dir() {
        let words = format!("`{field}` is not taken: the folder that files_dir names is not there");
        return Err(Error::new(Kind::InvalidParams, words)
            .with_hint("ask the user to make that folder, or to name another one"));
    }
    match root.join(name).symlink_metadata() {
        Ok(_) => Err(refused(field, &io::ErrorKind::AlreadyExists.into())),
        Err(_) => Ok(()),
    }
}

/// Saves output as a new file, and returns where it is. What was saved there already, when the same answer
/// came before, stays. `mark` is one that no other command has. Works with blocking calls.
pub(crate) fn save(
    root: Option<&Path>,
    name: &str,
    mark: &str,
    bytes: &[u8],
) -> Result<PathBuf, Error> {
    const FIELD: &str = "save_to";
    let (root, name) = place(FIELD, root, name)?;
    let path = root.join(&name);
    let write = |file: &mut File| file.write_all(bytes).map(|()| bytes.len() as u64);
    match put(root, &name, mark, write) {
        Ok(_) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_same = open_beneath(root, &name).and_then(|file| holds(file, bytes));
            if is_same.unwrap_or(false) { Ok(path) } else { Err(refused(FIELD, &error)) }
        }
        Err(error) => Err(refused(FIELD, &error)),
    }
}

/// Copies a file from elsewhere on the disk, as a new file, and returns where it is and its bytes. The same copy
/// made twice is one file. `mark` is one that no other command has. Works with blocking calls.
pub(crate) fn copy(
    root: Option<&Path>,
    name: &str,
    mark: &str,
    from: &Path,
) -> Result<(PathBuf, u64), Error> {
    const FIELD: &str = "save_to";
    let unread = |error: &io::Error| {
        let words = format!("the file of the download {}", cause_of(error).0);
        Error::new(Kind::ToolFailed, words)
    };
    let open = || {
        let (Some(folder), Some(file)) = (from.parent(), from.file_name()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        open_beneath(folder, Path::new(file))
    };
    let mut source = open().map_err(|error| unread(&error))?;
    let size = source.metadata().map_err(|error| unread(&error))?.len();
    if size > MAX_COPY {
        let words = format!("the download is larger than {} MiB", MAX_COPY >> 20);
        return Err(Error::new(Kind::InvalidParams, words));
    }
    let (root, name) = place(FIELD, root, name)?;
    let path = root.join(&name);
    let write = |file: &mut File| io::copy(&mut (&mut source).take(MAX_COPY), file);
    match put(root, &name, mark, write) {
        Ok(bytes) => Ok((path, bytes)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let source = open().map_err(|error| unread(&error))?;
            let is_same = open_beneath(root, &name).and_then(|file| are_same(file, source));
            if is_same.unwrap_or(false) { Ok((path, size)) } else { Err(refused(FIELD, &error)) }
        }
        Err(error) => Err(refused(FIELD, &error)),
    }
}

/// The turn of one command: what it is to save comes again when its post does, and one of them is at work at a time.
struct Turn<'a>(&'a str);

impl<'a> Turn<'a> {
    /// Works with blocking calls.
    fn take(mark: &'a str) -> Self {
        let (marks, is_free) = &SAVING;
        let marks = marks.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = |marks: &mut BTreeSet<String>| marks.contains(mark);
        let marks = is_free.wait_while(marks, taken);
        marks.unwrap_or_else(PoisonError::into_inner).insert(mark.to_owned());
        Self(mark)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let (marks, is_free) = &SAVING;
        marks.lock().unwrap_or_else(PoisonError::into_inner).remove(self.0);
        is_free.notify_all();
    }
}

/// Makes a new file whole or not at all: it has its name once all of it is on the disk. What a server that was
/// killed left of the same command is taken away.
fn put(
    root: &Path,
    name: &Path,
    mark: &str,
    write: impl FnOnce(&mut File) -> io::Result<u64>,
) -> io::Result<u64> {
    let _turn = Turn::take(mark);
    if root.join(name).symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let part = name.with_file_name(format!(".{mark}.part"));
    // There is none, as a rule.
    let _ = remove_beneath(root, &part);
    let mut file = create_beneath(root, &part)?;
    let written = write(&mut file).and_then(|bytes| file.sync_all().map(|()| bytes));
    let file_name = name.file_name().unwrap_or_default();
    let is_put = written.and_then(|bytes| name_beneath(root, &part, file_name).map(|()| bytes));
    if is_put.is_err() {
        let _ = remove_beneath(root, &part);
    }
    is_put
}

fn are_same(one: File, other: File) -> io::Result<bool> {
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (one, other) = (BufReader::new(one), BufReader::new(other));
    let mut others = other.bytes();
    for byte in one.bytes() {
        if others.next().transpose()? != Some(byte?) {
            return Ok(false);
        }
    }
    Ok(others.next().is_none())
}

fn holds(file: File, bytes: &[u8]) -> io::Result<bool> {
    let mut found = Vec::with_capacity(bytes.len());
    file.take(bytes.len() as u64 + 1).read_to_end(&mut found)?;
    Ok(found == bytes)
}

/// Reads the name of a file: below the folder, or the whole path of one there.
fn place<'r>(
    field: &str,
    root: Option<&'r Path>,
    name: &str,
) -> Result<(&'r Path, PathBuf), Error> {
    let Some(root) = root else {
        let words = format!(
            "`{field}` is not taken: the server that owns the browser has no folder for files"
        );
        return Err(Error::new(Kind::Unauthorized, words).with_hint(
            "ask the user to name one: files_dir in [browser] of raincheck.toml, or --files-dir; \
             where several servers run, for the first of them",
        ));
    };
    let path = Path::new(name);
    let path = if path.is_absolute() { path.strip_prefix(root).ok() } else { Some(path) };
    let is_plain = |path: &&Path| {
        let fits = |it: Component<'_>| matches!(it, Component::Normal(_) | Component::CurDir);
        let is_odd = |it: Component<'_>| it.as_os_str().to_str().is_none_or(is_special);
        path.file_name().is_some()
            && path.components().all(fits)
            && !(cfg!(windows) && path.components().any(is_odd))
    };
    match path.filter(is_plain) {
        Some(path) => Ok((root, path.to_owned())),
        None => {
            let shown = text::escape(text::clip(name, 120));
            let words = format!("`{field}` is `{shown}`, which is no file below the named folder");
            Err(Error::new(Kind::InvalidParams, words).with_hint("give a path below files_dir"))
        }
    }
}

/// Tells whether Windows takes a name for a device or a stream, or for another name.
fn is_special(name: &str) -> bool {
    const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$"];
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let port = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    let mut digits = port.unwrap_or_default().chars();
    let is_digit = |it: char| it.is_ascii_digit() || matches!(it, '\u{b9}' | '\u{b2}' | '\u{b3}');
    let is_port = digits.next().is_some_and(is_digit) && digits.next().is_none();
    let is_other = name != "." && name.ends_with(['.', ' ']);
    name.contains(':') || is_other || is_port || DEVICES.contains(&&*stem)
}

/// What is said of a file that cannot be opened or made, and what to do about it; of any other cause, what is wrong
/// as a rule.
const CAUSES: &[(io::ErrorKind, &str, &str)] = &[
    (io::ErrorKind::NotFound, "is not there", BELOW),
    (
        io::ErrorKind::AlreadyExists,
        "is there already; nothing is written over",
        "give the name of a file that is not there yet",
    ),
    (
        io::ErrorKind::PermissionDenied,
        "may not be opened by this server",
        "ask the user to allow it, or give another path below files_dir",
    ),
    (io::ErrorKind::StorageFull, "has no room on its disk", "ask the user to make room"),
];

const BELOW: &str = "give a path below files_dir, without links in it";

fn cause_of(error: &io::Error) -> (&'static str, &'static str) {
    let known = CAUSES.iter().find(|(kind, ..)| *kind == error.kind());
    known.map_or(("is no regular file that is reached without a link", BELOW), |(_, why, hint)| {
        (why, hint)
    })
}

fn refused(field: &str, error: &io::Error) -> Error {
    let (why, hint) = cause_of(error);
    Error::new(Kind::InvalidParams, format!("`{field}` {why}")).with_hint(hint)
}

fn too_large(field: &str) -> Error {
    let words = format!("`{field}` is larger than {} MiB", MAX_FILE >> 20);
    Error::new(Kind::InvalidParams, words).with_hint("upload a smaller file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_taken_and_saved_below_the_folder_only() {
        // [BROWSER-40]
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("named");
        std::fs::create_dir(&root).expect("made");
        std::fs::write(root.join("a.txt"), "inside").expect("written");
        std::fs::write(dir.path().join("secret"), "outside").expect("written");
        let root = Some(&*root);
        assert_eq!(read("files[0]", root, "a.txt").expect("read"), b"inside");
        let whole = dir.path().join("named/a.txt");
        assert!(check("files[0]", root, whole.to_str().expect("text")).is_ok());
        let secret = dir.path().join("secret");
        let outside = ["../secret", "", ".", "sub/../../secret", secret.to_str().expect("text")];
        for name in outside {
            let error = read("files[0]", root, name).expect_err(name);
            assert_eq!(error.kind, Kind::InvalidParams, "{name}");
            assert!(error.message.contains("files[0]"), "{error}");
            assert!(save(root, name, "t", b"x").is_err(), "{name}");
        }
        let error = read("files[0]", None, "a.txt").expect_err("no folder");
        assert_eq!(error.kind, Kind::Unauthorized);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out_of_the_folder_in_either_direction() {
        // [BROWSER-40, SEC-9]
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().expect("a folder");
        let (root, out) = (dir.path().join("named"), dir.path().join("out"));
        std::fs::create_dir(&root).expect("made");
        std::fs::create_dir(&out).expect("made");
        std::fs::write(out.join("secret"), "outside").expect("written");
        symlink(&out, root.join("way")).expect("planted");
        symlink(out.join("secret"), root.join("file")).expect("planted");
        symlink(out.join("new"), root.join("dangling")).expect("planted");
        for name in ["way/secret", "file"] {
            assert!(read("files[0]", Some(&root), name).is_err(), "{name}");
        }
        for name in ["way/new", "file", "dangling"] {
            assert!(save(Some(&root), name, "t", b"x").is_err(), "{name}");
        }
        assert_eq!(std::fs::read(out.join("secret")).expect("there"), b"outside");
        assert!(!out.join("new").exists());
    }

    #[test]
    fn what_is_there_is_never_written_over_and_the_same_answer_twice_is_one_file() {
        // [BROWSER-40]
        let dir = tempfile::tempdir().expect("a folder");
        let root = Some(dir.path());
        let path = save(root, "deep/er/page.txt", "t", b"text").expect("saved");
        assert_eq!(std::fs::read(&path).expect("there"), b"text");
        assert_eq!(save(root, "deep/er/page.txt", "t", b"text").expect("the same"), path);
        assert!(save(root, "deep/er/page.txt", "t", b"other").is_err());
        assert!(save(root, "deep/er/page.txt", "t", b"text and more").is_err());
        assert_eq!(std::fs::read(&path).expect("there"), b"text");
        let there = check_new("save_to", root, "deep/er/page.txt").expect_err("there already");
        let hint = there.hint();
        assert!(hint.contains("not there yet"), "{hint}");
        let late = save(root, "deep/er/page.txt", "t", b"other").expect_err("there already");
        assert_eq!(late.hint(), hint);
        let nowhere = dir.path().join("nowhere");
        let error = check_new("save_to", Some(&nowhere), "a").expect_err("no folder");
        assert!(error.message.contains("files_dir"), "{error}");
        assert!(check_new("save_to", root, "deep/er/other.txt").is_ok());
    }

    #[test]
    fn what_a_server_that_was_killed_left_half_done_is_done_anew_and_leaves_nothing_behind() {
        // [BROWSER-40, BROWSER-49]
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("named");
        std::fs::create_dir(&root).expect("made");
        let from = dir.path().join("tea.bin");
        std::fs::write(&from, "all of it").expect("written");
        for name in ["copied", "saved"] {
            std::fs::write(root.join(".t.part"), "all").expect("half");
            match name {
                "copied" => drop(copy(Some(&root), name, "t", &from).expect("copied")),
                _ => drop(save(Some(&root), name, "t", b"all of it").expect("saved")),
            }
            assert_eq!(std::fs::read(root.join(name)).expect("there"), b"all of it");
        }
        let mut left: Vec<_> = std::fs::read_dir(&root).expect("a folder").flatten().collect();
        left.sort_by_key(std::fs::DirEntry::file_name);
        let left: Vec<_> = left.iter().map(std::fs::DirEntry::file_name).collect();
        assert_eq!(left, ["copied", "saved"]);
    }

    #[test]
    fn what_comes_again_while_it_is_saved_waits_for_that() {
        // [BROWSER-40, BROWSER-49]
        let dir = tempfile::tempdir().expect("a folder");
        let (root, name) = (dir.path(), Path::new("a"));
        let (to_first, first_begins) = std::sync::mpsc::channel();
        let (to_second, second_is_there) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let first = scope.spawn(move || {
                put(root, name, "twice", |file| {
                    to_first.send(()).expect("heard");
                    second_is_there.recv().expect("another one");
                    file.write_all(b"whole").map(|()| 5)
                })
            });
            first_begins.recv().expect("begun");
            let second = scope.spawn(move || {
                to_second.send(()).expect("heard");
                put(root, name, "twice", |file| file.write_all(b"half").map(|()| 4))
            });
            assert_eq!(first.join().expect("no panic").expect("saved"), 5);
            let error = second.join().expect("no panic").expect_err("there already");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        });
        assert_eq!(std::fs::read(root.join(name)).expect("there"), b"whole");
    }

    #[test]
    fn names_that_are_no_files_on_windows_are_known() {
        for name in
            ["NUL", "nul.txt", "COM1", "lpt9.log", "a.txt:x", "a.", "a ", "Con .txt", "COM\u{b9}"]
        {
            assert!(is_special(name), "{name}");
        }
        for name in ["nullable", "COM", "COM10", "a.txt", ".a", "console.log"] {
            assert!(!is_special(name), "{name}");
        }
    }
}
