//! What a server and a supervisor have in a folder beside that of an attempt.
//!
//! ```text
//! lock        locked for as long as the supervisor lives; its last words, should it panic
//! socket      where it listens
//! begun       there before the program is started, and never without; another name of the lock
//! end.json    how the program ended
//! ```

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, process, thread};

use raincheck_core::text::escape;

use super::record::Record;
use crate::os;

/// The longest path that a socket may have on every system.
const MAX_SOCKET: usize = 100;

/// How long somebody else may look at a new lock.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// How much of a supervisor's last words is told, in bytes.
const MAX_WORDS: u64 = 2 << 10;

/// The folder of the supervisor of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Place(PathBuf);

/// What a supervisor is started with, and the server's end of it.
pub(crate) struct Seat {
    /// Where the supervisor listens.
    pub(crate) listener: UnixListener,
    /// The lock, held already.
    pub(crate) lock: File,
    /// The folder itself.
    pub(crate) folder: File,
    /// The first connection: the server's end.
    pub(crate) near: UnixStream,
    /// The first connection: the supervisor's end.
    pub(crate) far: UnixStream,
}

/// What is left of an attempt.
pub(crate) enum Attached {
    /// Its supervisor, which hears, and the number of its process where the system tells.
    Live(UnixStream, Option<i32>),
    /// Files at the most.
    Gone,
    /// Nothing, not even its files: somebody removed them while it lived. Whether its program ran is not
    /// to be seen any more.
    Razed,
}

impl Place {
    pub(crate) fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Returns the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Prepares the start of a supervisor.
    pub(crate) fn seat(&self) -> io::Result<Seat> {
        self.make()?;
        let lock = self.lock()?;
        let listener = self.at_socket(|path| UnixListener::bind(path))?;
        let (near, far) = UnixStream::pair()?;
        let folder = File::open(&self.0)?;
        Ok(Seat { listener, lock, folder, near, far })
    }

    /// Makes the lock, held. It gets its name last: whoever finds it finds it held, and nobody else can have
    /// it, so that it is not waited for.
    fn lock(&self) -> io::Result<File> {
        let (ready, named) = (self.0.join(format!(".lock-{}", process::id())), self.0.join("lock"));
        let file = |options: &mut OpenOptions, path: &Path| {
            options.append(true).read(true).mode(0o600).open(path)
        };
        let lock = file(OpenOptions::new().create(true), &ready)?;
        lock.try_lock()?;
        let linked = fs::hard_link(&ready, &named);
        fs::remove_file(&ready)?;
        match linked {
            Ok(()) => Ok(lock),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // A file has one name here.
            Err(_) => held(file(OpenOptions::new().create_new(true), &named)?),
        }
    }

    /// Looks for the supervisor of an attempt.
    ///
    /// Blocks while there is one that cannot be reached: its attempt is not over before it is. What the
    /// machine is short of is an error instead, since it may be there the next time.
    pub(crate) fn attach(&self) -> io::Result<Attached> {
        let lock = match open(&self.0.join("lock")) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(lock) = os::output_of_lost(&self.0) else { return Ok(Attached::Gone) };
                tracing::warn!("the files of a supervisor were removed; its end is waited for");
                return lock.lock().map(|()| Attached::Razed);
            }
            Err(error) => return Err(error),
        };
        match lock.try_lock() {
            Ok(()) => return Ok(Attached::Gone),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        match self.at_socket(|path| UnixStream::connect(path)) {
            Ok(stream) => {
                let pid = os::listener_of(&stream);
                Ok(Attached::Live(stream, pid))
            }
            Err(error) if os::is_for_now(&error) => Err(error),
            Err(error) => {
                tracing::warn!(%error, "a supervisor cannot be reached; its end is waited for");
                lock.lock()?;
                Ok(Attached::Gone)
            }
        }
    }

    /// Tells whether a supervisor lives, or may: what cannot be seen counts as a yes.
    pub(crate) fn is_held(&self) -> bool {
        match open(&self.0.join("lock")) {
            Ok(lock) => lock.try_lock().is_err(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                os::output_of_lost(&self.0).is_some()
            }
            Err(_) => true,
        }
    }

    /// Tells the supervisor that works in it whether the folder is removed, and so is the one of all
    /// tasks. One that was moved is neither.
    pub(crate) fn is_removed(&self) -> bool {
        let Some(root) = self.0.ancestors().nth(2) else { return false };
        fs::metadata(".").is_ok_and(|own| is_unlinked(&own, root))
    }

    /// Waits until the supervisor is gone.
    pub(crate) fn gone(&self) -> io::Result<()> {
        open(&self.0.join("lock"))?.lock()
    }

    /// Notes that the program is about to be started; for good when it is synced, with the names on the
    /// way to this folder unless [those are](Self::sync_names), so that also after a loss of power nobody
    /// starts it again.
    ///
    /// # Errors
    /// When it is noted already, or cannot be: do not start it.
    pub(crate) fn begin(&self, is_synced: bool, are_names_synced: bool) -> io::Result<()> {
        let path = self.0.join("begun");
        // A second name costs a tenth of a new file. Not every file system has them.
        match fs::hard_link(self.0.join("lock"), &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?;
            }
            linked => linked?,
        }
        if !is_synced {
            return Ok(());
        }
        let synced = File::open(&self.0).and_then(|folder| folder.sync_all());
        let synced =
            synced.and_then(|()| if are_names_synced { Ok(()) } else { self.sync_names() });
        if synced.is_err() {
            // Nothing is started: then nothing should say so.
            let _ = fs::remove_file(path);
        }
        synced
    }

    /// Makes the names of this folder, of the task, and of the folder of all tasks last: without them a
    /// start that is noted for good may not be found.
    ///
    /// # Errors
    /// When one of them cannot be synced.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        for folder in self.0.ancestors().skip(1).take(2) {
            File::open(folder)?.sync_all()?;
        }
        if let Some(Ok(above)) = self.0.ancestors().nth(3).map(File::open) {
            // It may be another's, who does not let it be read.
            above.sync_all()?;
        }
        Ok(())
    }

    /// Decides that the program never runs; tells whether that was still to be decided.
    pub(crate) fn revoke(&self) -> bool {
        let mut options = OpenOptions::new();
        options.create_new(true).write(true).mode(0o600).open(self.0.join("begun")).is_ok()
    }

    /// Tells whether the program may have been started. What cannot be seen counts as a yes.
    pub(crate) fn has_begun(&self) -> bool {
        match fs::symlink_metadata(self.0.join("begun")) {
            Err(error) => error.kind() != io::ErrorKind::NotFound,
            Ok(_) => true,
        }
    }

    /// Reads how the program ended; `None` when nobody wrote it down.
    pub(crate) fn read_end(&self) -> io::Result<Option<Record>> {
        let mut bytes = Vec::new();
        match open(&self.0.join("end.json")) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    /// Writes down how the program ended, whole or not at all. A folder that is gone, since the program
    /// removed it, may be made again.
    pub(crate) fn write_end(&self, record: &Record, makes_folder: bool) -> io::Result<()> {
        let (whole, part) = (self.0.join("end.json"), self.0.join("end.part"));
        if makes_folder {
            self.make()?;
        }
        // The program may have left something by these names: it is gone now, and so may that be.
        clear(&whole)?;
        clear(&part)?;
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&part)?;
        let written = file.write_all(&serde_json::to_vec(record)?);
        // A disk that has room again is not to be kept full by half a file.
        written.inspect_err(|_| drop(clear(&part)))?;
        fs::rename(part, whole)
    }

    /// Makes what was written down survive a loss of power when it is synced, with the result that the
    /// program wrote.
    pub(crate) fn sync_end(&self, result: &Path, is_synced: bool) -> io::Result<()> {
        if !is_synced {
            return Ok(());
        }
        // One that is missing or strange is its reader's to judge.
        let _ = open(result).and_then(|result| result.sync_all());
        open(&self.0.join("end.json"))?.sync_all()?;
        File::open(&self.0)?.sync_all()
    }

    fn make(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    /// Returns what a supervisor said when it died, safe to show.
    pub(crate) fn last_words(&self) -> String {
        let mut words = Vec::new();
        if let Ok(file) = open(&self.0.join("lock")) {
            let _ = file.take(MAX_WORDS).read_to_end(&mut words);
        }
        escape(String::from_utf8_lossy(&words).trim()).into_owned()
    }

    /// Does something with the socket by a path that is short enough for one.
    fn at_socket<T>(&self, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let path = self.0.join("socket");
        if path.as_os_str().len() <= MAX_SOCKET || !cfg!(target_os = "linux") {
            return act(&path);
        }
        let folder = File::open(&self.0)?;
        act(&PathBuf::from(format!("/proc/self/fd/{}/socket", folder.as_raw_fd())))
    }
}

fn is_unlinked(own: &fs::Metadata, root: &Path) -> bool {
    own.nlink() == 0 && matches!(root.try_exists(), Ok(false))
}

/// Opens a regular file, without following a link and without waiting for anybody: the program can
/// reach this folder too.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Removes whatever has a name.
fn clear(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Takes the lock of a new file, which a server that looks whether it is held has for a moment at the most.
fn held(lock: File) -> io::Result<File> {
    match lock.try_lock() {
        Ok(()) => return Ok(lock),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The system has no wait for a lock with a bound. One that comes too late is given back.
    let (told, heard) = mpsc::channel();
    thread::Builder::new().spawn(move || told.send(lock.lock().map(|()| lock)))?;
    heard.recv_timeout(LONGEST_LOOK).unwrap_or_else(|_| {
        let message = "another process holds the lock of a supervisor that is being made";
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::{End, Record, clear_unused, folder_ahead};

    fn place() -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::new(folder.path());
        (folder, place)
    }

    fn pipe(folder: &Path, name: &str) {
        let made = process::Command::new("mkfifo").arg(folder.join(name)).status();
        assert!(made.expect("it runs").success(), "a pipe");
    }

    fn record() -> Record {
        let end = End::refused(&io::ErrorKind::NotFound.into());
        let (ended_at, reason, progress, partial) = (None, None, None, None);
        let (artifacts, has_no_result, is_cut) = (Vec::new(), false, false);
        Record {
            fence: 7,
            end,
            ended_at,
            reason,
            progress,
            partial,
            artifacts,
            has_no_result,
            is_cut,
        }
    }

    #[test]
    fn a_lock_that_another_process_keeps_is_an_error_in_the_end() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("lock");
        let other = File::create(&path).expect("made");
        other.lock().expect("free");
        let error = held(File::open(&path).expect("there")).expect_err("another's");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(other);
        assert!(held(File::open(&path).expect("there")).is_ok());
        let place = Place::new(root.path());
        assert_eq!(place.lock().expect_err("taken").kind(), io::ErrorKind::AlreadyExists);
    }

    // [SWEEP-1]
    #[test]
    fn a_folder_that_is_being_made_is_not_swept() {
        let root = tempfile::tempdir().expect("a folder");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let order = std::sync::atomic::Ordering::SeqCst;
        thread::scope(|threads| {
            threads.spawn(|| {
                // As a server does that opens the store.
                while !is_over.load(order) {
                    clear_unused(root.path()).expect("read");
                }
            });
            let made: Vec<_> = (0..300)
                .map(|_| {
                    let place = Place::new(folder_ahead(root.path()).join("a1.supervisor"));
                    let seat = place.seat();
                    let is_there = place.path().join("lock").exists();
                    (seat.map(drop), is_there)
                })
                .collect();
            is_over.store(true, order);
            let lost: Vec<_> =
                made.iter().filter(|(seat, there)| seat.is_err() || !there).collect();
            assert!(lost.is_empty(), "{} of {}: {:?}", lost.len(), made.len(), lost.first());
        });
    }

    // [LEASE-3] [SWEEP-1]
    #[test]
    fn who_looks_whether_a_supervisor_lives_does_not_keep_one_from_being_made() {
        let root = tempfile::tempdir().expect("a folder");
        let place = |n: usize| Place::new(root.path().join(n.to_string()));
        let at = std::sync::atomic::AtomicUsize::new(0);
        let order = std::sync::atomic::Ordering::SeqCst;
        let n_rounds = 300;
        thread::scope(|threads| {
            threads.spawn(|| {
                // As a server does that looks for what an earlier one left.
                while at.load(order) < n_rounds {
                    let lock = open(&place(at.load(order)).path().join("lock"));
                    let _ = lock.map(|lock| lock.try_lock());
                }
            });
            let made: Vec<_> = (0..n_rounds)
                .map(|n| {
                    at.store(n, order);
                    place(n).seat().map(drop)
                })
                .collect();
            at.store(n_rounds, order);
            let refused: Vec<_> = made.iter().filter_map(|made| made.as_ref().err()).collect();
            assert!(refused.is_empty(), "{} of {n_rounds}: {refused:?}", refused.len());
        });
    }

    // [LEASE-3]
    #[test]
    fn a_start_is_noted_once() {
        for (is_synced, are_names_synced) in [(false, false), (true, false), (true, true)] {
            let (_folder, place) = place();
            assert!(!place.has_begun());
            place.begin(is_synced, are_names_synced).expect("noted");
            assert!(place.has_begun());
            let again =
                place.begin(is_synced, are_names_synced).expect_err("nobody may start it twice");
            assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
            assert!(place.has_begun());
        }
    }

    #[test]
    fn what_cannot_be_seen_may_have_begun() {
        let (folder, _) = place();
        fs::write(folder.path().join("file"), "").expect("a file");
        assert!(Place::new(folder.path().join("file")).has_begun());
        assert!(!Place::new(folder.path().join("nothing")).has_begun());
    }

    // [LEASE-3]
    #[test]
    fn what_the_program_puts_in_the_way_does_not_hide_its_end() {
        let (folder, place) = place();
        fs::create_dir(folder.path().join("end.part")).expect("a folder");
        pipe(folder.path(), "end.json");
        let result = folder.path().join("result.json");
        place.write_end(&record(), true).expect("written");
        place.sync_end(&result, true).expect("synced");
        assert_eq!(place.read_end().expect("read").map(|record| record.fence), Some(7));
        fs::remove_file(folder.path().join("end.json")).expect("removed");
        fs::create_dir_all(folder.path().join("end.json/full")).expect("a folder");
        std::os::unix::fs::symlink("/dev/full", folder.path().join("end.part")).expect("a link");
        place.write_end(&record(), true).expect("written");
        assert_eq!(place.read_end().expect("read").map(|record| record.fence), Some(7));
    }

    // [DUR-5]
    #[test]
    fn a_program_that_removes_the_folder_does_not_hide_its_end() {
        let (folder, _) = place();
        let place = Place::new(folder.path().join("tsk/a1"));
        place.write_end(&record(), true).expect("written");
        assert_eq!(place.read_end().expect("read").map(|record| record.fence), Some(7));
    }

    // [CMD-8]
    #[test]
    fn a_folder_that_was_moved_or_that_the_program_removed_can_still_be_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("tasks");
        let own = root.join("tsk/a1");
        fs::create_dir_all(&own).expect("made");
        let open = File::open(&own).expect("opened");
        let is_gone = || is_unlinked(&open.metadata().expect("facts"), &root);
        assert!(!is_gone());
        fs::rename(&root, folder.path().join("moved")).expect("moved");
        assert!(!is_gone(), "the lock and the socket moved with it");
        fs::rename(folder.path().join("moved"), &root).expect("moved back");
        fs::remove_dir_all(root.join("tsk")).expect("removed");
        assert!(!is_gone(), "the next server looks for the process itself");
        fs::remove_dir_all(&root).expect("removed");
        assert!(is_gone());
    }

    // [LEASE-5, LEASE-9]
    #[test]
    fn a_start_that_was_revoked_never_comes() {
        let (_folder, place) = place();
        assert!(place.revoke() && !place.revoke());
        assert!(place.begin(false, false).is_err());
    }

    #[test]
    fn nobody_waits_for_a_pipe_in_place_of_a_file() {
        let (folder, place) = place();
        for name in ["end.json", "lock"] {
            pipe(folder.path(), name);
        }
        assert!(place.read_end().is_err());
        assert!(place.attach().is_err() && place.gone().is_err());
        assert_eq!(place.last_words(), "");
    }
}
