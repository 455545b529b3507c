//! The result that a program wrote.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::text::escape_bytes;
use serde::Serialize;

/// The largest result, in bytes.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// How much of a broken result its error shows, in bytes.
const HEAD: usize = 200;

/// What is known of a result that is no JSON.
#[derive(Serialize)]
struct Details {
    size_bytes: usize,
    begins_with: String,
}

/// Reads a result file; `None` when there is none. Its bytes are kept as they are [RESULT-1].
pub(super) fn read(path: &Path) -> Result<Option<Json>, Error> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(broken(&format!("cannot be opened: {}", error.kind()))),
    };
    let size = match file.metadata() {
        Ok(facts) if facts.is_file() => facts.len(),
        Ok(_) => return Err(broken("is not a regular file")),
        Err(error) => return Err(broken(&format!("cannot be read: {}", error.kind()))),
    };
    if size > MAX_BYTES {
        return Err(too_large(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| broken(&format!("cannot be read: {}", error.kind())))?;
    parse(bytes).map(Some)
}

fn parse(bytes: Vec<u8>) -> Result<Json, Error> {
    if bytes.trim_ascii().is_empty() {
        return Err(broken("is empty"));
    }
    let details = Details { size_bytes: bytes.len(), begins_with: escape_bytes(head(&bytes)) };
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("is not UTF-8 at byte {}", error.utf8_error().valid_up_to()));
    text.and_then(|text| Json::parse(text).map_err(|error| format!("is not JSON: {error}")))
        .map_err(|what| Error { details: Json::of(&details).ok(), ..broken(&what) })
}

/// Returns the first bytes, without the part of a character that the cut would leave.
fn head(bytes: &[u8]) -> &[u8] {
    let Some(head) = bytes.get(..HEAD) else { return bytes };
    match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => head.split_at(error.valid_up_to()).0,
        Ok(_) | Err(_) => head,
    }
}

fn broken(what: &str) -> Error {
    Error::new(Kind::InvalidResponse, format!("the program ended well, but its result file {what}"))
        .with_guarantee(Guarantee::Executed)
        .with_hint("have the program write one JSON value to RAINCHECK_RESULT_FILE, or none at all")
}

fn too_large(size: u64) -> Error {
    let message = format!("the result file has {size} bytes; {MAX_BYTES} may be kept");
    Error::new(Kind::TooLarge, message)
        .with_hint("have the program leave large data in RAINCHECK_ARTIFACTS_DIR")
}

/// Opens a file without following a link and without waiting for anybody.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match open(path, how, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        Err(rustix::io::Errno::LOOP) => Err(io::Error::other("it is a link")),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(bytes: &[u8]) -> Result<Option<Json>, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result.json");
        std::fs::write(&path, bytes).expect("a file");
        read(&path)
    }

    #[test]
    fn a_result_keeps_its_bytes() {
        let text = r#"{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"e":"\u00e9"}"#;
        let json = reads(text.as_bytes()).expect("a result").expect("is there");
        assert_eq!(json.get(), text);
    }

    #[test]
    fn a_result_that_is_no_json_says_where_and_shows_its_beginning() {
        // [CMD-4]. Case mcp-results-that-are-not-objects.
        for (bytes, says, shows) in [
            (
                &b"{\"a\":}"[..],
                "line 1 column 6",
                Some(r#"{"size_bytes":6,"begins_with":"{\"a\":}"}"#),
            ),
            (b"[1,\xff]", "byte 3", Some(r#"{"size_bytes":5,"begins_with":"[1,\\xff]"}"#)),
            (b"\x1b[2J", "column 1", Some(r#"{"size_bytes":4,"begins_with":"\\x1b[2J"}"#)),
            (b"{} {}", "trailing characters", Some(r#"{"size_bytes":5,"begins_with":"{} {}"}"#)),
            (b" \n", "is empty", None),
        ] {
            let error = reads(bytes).expect_err("broken");
            assert_eq!(error.kind, Kind::InvalidResponse);
            assert!(error.message.contains(says), "{error}");
            assert_eq!(error.details.as_ref().map(Json::get), shows);
        }
    }

    #[test]
    fn a_long_broken_result_is_shown_up_to_a_character_s_border() {
        let text = format!("x{}", "é".repeat(HEAD));
        let error = reads(text.as_bytes()).expect_err("broken");
        let shows = format!(r#"{{"size_bytes":401,"begins_with":"x{}"}}"#, "é".repeat(99));
        assert_eq!(error.details.as_ref().map(Json::get), Some(&*shows));
    }

    #[test]
    fn a_result_that_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result.json");
        File::create(&path).and_then(|file| file.set_len(MAX_BYTES + 1)).expect("a sparse file");
        assert_eq!(read(&path).expect_err("too large").kind, Kind::TooLarge);
    }

    #[test]
    fn no_result_is_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(read(&folder.path().join("result.json")), Ok(None));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed_and_a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/etc/hostname", &link).expect("a link");
        assert_eq!(read(&link).expect_err("a link").kind, Kind::InvalidResponse);
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a pipe");
        let error = read(&pipe).expect_err("a pipe");
        assert!(error.message.contains("not a regular file"), "{error}");
    }
}
