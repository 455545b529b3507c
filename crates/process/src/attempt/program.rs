//! Finding the program of a tool, and saying why it cannot be started.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use raincheck_core::error::{Error, Guarantee, Kind};

use crate::tool::CommandTool;

/// Returns the file that a tool runs.
pub(super) fn find(tool: &CommandTool, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    let name = tool.argv.first().map_or("", String::as_str);
    if name.is_empty() {
        return Err(refused(tool, "no program is named"));
    }
    if !tool.folder.is_dir() {
        return Err(refused(tool, "the folder it starts in does not exist"));
    }
    if name.contains(std::path::is_separator) {
        let file = tool.folder.join(name);
        return check(tool, name, &file).map(|()| file);
    }
    let mut found = None;
    for folder in path.map(std::env::split_paths).into_iter().flatten() {
        let file = folder.join(name);
        if folder.is_absolute() && file.is_file() {
            if is_executable(&file) {
                return Ok(file);
            }
            found.get_or_insert(file);
        }
    }
    match found {
        Some(file) => check(tool, name, &file).map(|()| file),
        None => {
            let error = refused(tool, &format!("no program `{name}` is on PATH"));
            Err(error.with_hint(format!(
                "install the program, or give `command` of tool `{}` its full path: a client with a window starts \
                 servers with a short PATH, without the folders that your shell adds",
                tool.spec.name
            )))
        }
    }
}

fn check(tool: &CommandTool, name: &str, file: &Path) -> Result<(), Error> {
    if !file.exists() {
        return Err(refused(tool, &format!("there is no file `{name}`")));
    }
    if !file.is_file() || !is_executable(file) {
        return Err(refused(tool, &format!("`{name}` is not executable")));
    }
    Ok(())
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_executable(_file: &Path) -> bool {
    true
}

/// Says why the system refused to start a program.
pub(super) fn not_started(tool: &CommandTool, error: &io::Error) -> Error {
    let name = tool.argv.first().map_or("", String::as_str);
    let kind = error.kind();
    let reason = if kind == io::ErrorKind::NotFound {
        format!("the interpreter that `{name}` names does not exist")
    } else if kind == io::ErrorKind::PermissionDenied {
        format!("`{name}` may not be executed")
    } else {
        format!("`{name}`: {error}")
    };
    refused(tool, &reason)
}

/// Says why nothing can be started here: what was started could not be ended again.
pub(super) fn wrong_place(tool: &CommandTool, fault: &str) -> Error {
    Error {
        hint: Some(crate::place::HINT.into()),
        ..refused(tool, &format!("{fault}, so what it starts could not be ended again"))
    }
}

fn refused(tool: &CommandTool, reason: &str) -> Error {
    let name = &tool.spec.name;
    Error::new(Kind::ToolFailed, format!("tool `{name}` cannot be started: {reason}"))
        .with_guarantee(Guarantee::NotExecuted)
        .with_hint(format!(
            "install the program, make it executable, or correct `command` of tool `{name}` in the \
             configuration"
        ))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use raincheck_core::content::Json;
    use raincheck_core::tool::ToolSpec;

    use super::*;

    fn tool(program: &str, folder: &Path) -> CommandTool {
        let spec = ToolSpec::new("render", "Renders", Json::empty_object());
        CommandTool::new(spec, vec![program.to_owned()], folder)
    }

    fn file(path: &Path, mode: u32) {
        std::fs::write(path, "#!/bin/sh\n").expect("a file");
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn a_name_is_looked_for_on_the_path_and_a_path_from_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = folder.path();
        let bin = here.join("bin");
        std::fs::create_dir(&bin).expect("a folder");
        file(&bin.join("run"), 0o755);
        let found = |name: &str| find(&tool(name, here), Some(bin.as_os_str())).ok();
        assert_eq!(found("run"), Some(bin.join("run")));
        assert_eq!(found("bin/run"), Some(here.join("bin/run")));
        assert_eq!(found("./run"), None);
    }

    #[test]
    fn what_cannot_be_started_is_named_with_the_next_step_and_without_a_path_of_ours() {
        let folder = tempfile::tempdir().expect("a folder");
        file(&folder.path().join("plain"), 0o644);
        for (name, says) in [
            ("nosuch", "no program `nosuch` is on PATH"),
            ("./nosuch", "there is no file `./nosuch`"),
            ("./plain", "`./plain` is not executable"),
            ("", "no program is named"),
        ] {
            let error = find(&tool(name, folder.path()), None).expect_err("no program");
            assert!(error.message.ends_with(says), "{error}");
            assert_eq!(error.guarantee(), Some(Guarantee::NotExecuted));
            assert_eq!(error.hint().contains("a short PATH"), name == "nosuch", "{error}");
            assert!(!error.message.contains(&*folder.path().to_string_lossy()), "{error}");
        }
    }

    // [CMD-10]. Case task-process-table-of-another-namespace.
    #[test]
    fn a_place_without_a_process_table_of_its_own_is_named_and_nothing_ran() {
        let error =
            wrong_place(&tool("sh", Path::new("/")), "there is no process table under /proc");
        assert_eq!(error.guarantee(), Some(Guarantee::NotExecuted));
        assert!(error.message.contains("no process table under /proc"), "{error}");
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("/proc")), "{error:?}");
    }

    #[test]
    fn a_folder_that_is_gone_is_not_blamed_on_the_program() {
        let error = find(&tool("sh", Path::new("/nonexistent")), None).expect_err("no folder");
        assert!(error.message.contains("folder it starts in"), "{error}");
    }
}
