//! Lists the files of the Unity package, so that the library carries them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=unity-package");
    let from =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("unity-package");
    let mut files = Vec::new();
    gather(&from, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&from).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        // Writing to a string cannot fail.
        let _ = writeln!(table, "    ({name:?}, include_bytes!({:?})),", file.display());
    }
    table.push_str("]\n");
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("package.rs"), table)
}

/// Gathers what is shipped: neither the package's own tests nor hidden files.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "Tests" || name == "Tests.meta" {
            continue;
        }
        if path.is_dir() {
            gather(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
