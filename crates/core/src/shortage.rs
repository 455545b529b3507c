//! What a process or its machine is short of, seen in the errors of the system.

use std::io;

/// Tells whether the process or the system has no file left to open.
#[must_use]
pub fn is_out_of_files(error: &io::Error) -> bool {
    let is_one = |code| if cfg!(windows) { code == 4 } else { matches!(code, 23 | 24) };
    error.raw_os_error().is_some_and(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_files_are_meant() {
        for (code, is_meant) in [(23, true), (24, true), (28, false), (12, false)] {
            assert_eq!(is_out_of_files(&io::Error::from_raw_os_error(code)), is_meant, "{code}");
        }
        assert!(!is_out_of_files(&io::ErrorKind::OutOfMemory.into()));
    }
}
