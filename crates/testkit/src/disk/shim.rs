//! The library that is loaded in front of the system's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/disk/shim.c");

/// How a program's disk is to behave. See `shim.c` for what each setting does.
#[derive(Clone, Debug)]
pub struct Shim {
    settings: Vec<(&'static str, PathBuf)>,
}

impl Shim {
    /// Stands in front of everything below a folder.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { settings: vec![("RAINCHECK_DISK_ROOT", root.into())] }
    }

    fn with(mut self, name: &'static str, value: impl Into<PathBuf>) -> Self {
        self.settings.push((name, value.into()));
        self
    }

    /// Appends every change to a file, which lies outside of the root.
    #[must_use]
    pub fn recording(self, file: &Path) -> Self {
        self.with("RAINCHECK_DISK_RECORDING", file)
    }

    /// Lets one sync fail, counted from 1.
    #[must_use]
    pub fn with_bad_sync(self, k: u64) -> Self {
        self.with("RAINCHECK_DISK_BAD_SYNC", k.to_string())
    }

    /// Is full while a file exists, which lies outside of the root.
    #[must_use]
    pub fn full_while(self, file: &Path) -> Self {
        self.with("RAINCHECK_DISK_FULL", file)
    }

    /// Locks no file, as some network folders do.
    #[must_use]
    pub fn without_locks(self) -> Self {
        self.with("RAINCHECK_DISK_NO_LOCKS", "yes")
    }

    /// Shifts the wall clock by the seconds in a file.
    #[must_use]
    pub fn shifted_by(self, file: &Path) -> Self {
        self.with("RAINCHECK_DISK_CLOCK", file)
    }

    /// Returns the variables to start a program with.
    ///
    /// # Panics
    /// When there is no C compiler.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let mut all = self.settings.clone();
        all.push(("LD_PRELOAD", library().into()));
        all
    }
}

/// Compiles the library, once per process, beside the test that asks for it.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of this program");
        let folder = test.parent().expect("its folder");
        let part = folder.join(format!("raincheck-disk-{}.part", std::process::id()));
        let status = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&part)
            .arg(SOURCE)
            .status()
            .expect("a C compiler; get it with: apt-get install -y gcc libc6-dev");
        assert!(status.success(), "the library does not compile");
        let whole = folder.join("raincheck-disk.so");
        std::fs::rename(part, &whole).expect("the library in its place");
        whole
    })
}
