//! Lists the files of the extension, so that the library carries them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=extension");
    let from =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("extension");
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
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("files.rs"), table)
}

/// Gathers what is shipped: not what explains the folder to its authors.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            gather(&path, files)?;
        } else if name != "README.md" && name != "ID" {
            files.push(path);
        }
    }
    Ok(())
}
