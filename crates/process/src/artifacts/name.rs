//! The names of artifacts: what a program may report.

use std::path::Path;

/// Returns the path below the artifacts folder that a program means, or why it means none.
pub(super) fn normal(path: &str, folder: &Path) -> Result<Vec<u8>, &'static str> {
    let inside = folder.to_str().and_then(|folder| path.strip_prefix(folder));
    let relative = match inside {
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        Some(_) | None => path,
    };
    if relative.starts_with('/') {
        return Err("lies outside of the artifacts folder");
    }
    let mut parts = Vec::new();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err("leads out of a folder"),
            part => parts.push(part),
        }
    }
    if parts.is_empty() { Err("names no file") } else { Ok(parts.join("/").into_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_path_stays_inside_the_folder() {
        let folder = Path::new("/state/tsk/a1/artifacts");
        let read = |path| normal(path, folder).map(|path| String::from_utf8(path).expect("UTF-8"));
        assert_eq!(read("a.bin").as_deref(), Ok("a.bin"));
        assert_eq!(read("./sub//b.bin").as_deref(), Ok("sub/b.bin"));
        assert_eq!(read("/state/tsk/a1/artifacts/sub/c").as_deref(), Ok("sub/c"));
        for bad in ["/etc/hostname", "../x", "sub/../x", "", ".", "/state/tsk/a1/artifacts-of/x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
