//! `raincheck wrap`: another MCP server behind ours.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use raincheck::mcp::gateway::{Command, Gateway, Settings};
use raincheck_app::Failure;
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::paths::Paths;
use sha2::{Digest as _, Sha256};

use crate::BINARY;
use crate::wiring::{self, Tools};

/// How much of a name is in the name of a folder.
const MAX_NAME: usize = 40;

/// What is wrapped.
#[derive(Args, Debug)]
pub(crate) struct Wrap {
    /// The command of the server, after `--`: a program and its arguments, as a client would start it
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Serves the tools of another server on standard input and output.
pub(crate) fn serve(shared: &Shared, serving: &Serving, wrap: &Wrap) -> Result<(), Failure> {
    let [program, arguments @ ..] = wrap.command.as_slice() else {
        return Err(Failure::usage(
            "no command is named",
            "name it after two dashes: raincheck wrap -- COMMAND",
        ));
    };
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let (paths, _) = Paths::of_server(BINARY, shared);
    let key = key(&wrap.command, &folder);
    let shared = Shared { home: Some(paths.home.join("wrap").join(key)), ..shared.clone() };
    let command = Command { program: program.clone(), arguments: arguments.to_vec(), folder: None };
    wiring::serve(&shared, serving, |_| {
        let mut settings = Settings::default();
        if let Some(wait) = serving.wait_s {
            settings.wait = wait;
        }
        Ok(Tools::Wrapped(Gateway::command(command, settings)))
    })
}

/// Names the part of the state folder that belongs to a command in a folder: the same command keeps its
/// tasks, and two different ones never meet.
fn key(command: &[OsString], folder: &std::path::Path) -> String {
    let mut hash = Sha256::new();
    for part in command.iter().map(OsString::as_os_str).chain([folder.as_os_str()]) {
        let bytes = part.as_encoded_bytes();
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    }
    let code: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let program = command.first().map(PathBuf::from).unwrap_or_default();
    let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = name.chars().filter(plain).take(MAX_NAME).collect();
    format!("{name}-{code}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn of(command: &[&str], folder: &str) -> String {
        key(&command.iter().map(OsString::from).collect::<Vec<_>>(), Path::new(folder))
    }

    #[test]
    fn the_same_command_in_the_same_folder_has_the_same_place() {
        // [GATE-8]
        let one = of(&["/usr/bin/python3.11", "server.py", "a b"], "/project");
        assert_eq!(one, of(&["/usr/bin/python3.11", "server.py", "a b"], "/project"));
        assert!(one.starts_with("python3-") || one.starts_with("python311-"), "{one}");
        for other in [
            of(&["/usr/bin/python3.11", "server.py", "a", "b"], "/project"),
            of(&["/usr/bin/python3.11", "server.py", "a b"], "/other"),
            of(&["python3.11", "server.py", "a b"], "/project"),
        ] {
            assert_ne!(one, other);
        }
        assert!(!of(&["../é x"], "/").contains(['/', '.', ' ']));
    }
}
