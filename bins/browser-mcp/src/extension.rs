//! `browser-mcp extension install|rotate|uninstall`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use raincheck::core::text::counted;
use raincheck_app::paths::Paths;
use raincheck_app::{Failure, cli};
use raincheck_browser::extension::{self, Copy, Places, Refusal, compare};

use crate::{BINARY, places, wait_for};

/// What to do with the extension.
#[derive(Subcommand, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Write it to a folder, ready to be loaded, and paired with this computer's server
    Install {
        /// The folder; it is made, or must be empty or hold an older one
        dir: PathBuf,
    },
    /// Draw a new secret and give it to every folder
    Rotate,
    /// Remove it from a folder
    Uninstall {
        /// The folder
        dir: PathBuf,
    },
}

/// Does it.
pub(crate) fn run(paths: &Paths, action: &Action) -> Result<(), Failure> {
    let places = places(paths);
    let said = match action {
        Action::Install { dir } => {
            paths.create()?;
            wait_for(extension::install(&places, dir))?.map(|()| installed(dir))
        }
        Action::Rotate => extension::rotate(&places).map(|n| {
            {
            let folders = counted(n as u64, "folder");
            format!("the extension has a new secret; it is in {folders}\nstart the server again: {BINARY}\n")
            }
        }),
        Action::Uninstall { dir } => extension::uninstall(&places, dir).map(|()| {
            let shown = dir.display();
            format!("the extension is gone from {shown}\nremove it in the browser too: chrome://extensions\n")
        }),
    };
    cli::print(&said.map_err(failure)?)
}

/// Says of every folder that holds the extension whether it is the one of this binary.
pub(crate) fn described(places: &Places) -> Vec<String> {
    let folders = places.folders();
    if folders.is_empty() {
        return vec![format!("none yet; write it: {BINARY} extension install DIR")];
    }
    let line = |folder: &PathBuf| format!("{}: {}", folder.display(), word(&compare(folder)));
    folders.iter().map(line).collect()
}

/// Says how a copy of the extension compares with the one of this binary.
pub(crate) fn word(copy: &Copy) -> String {
    match copy {
        Copy::Current => "the one of this binary".to_owned(),
        Copy::Other(version) => format!("another one, version {version}"),
        Copy::Gone => "gone".to_owned(),
    }
}

fn installed(dir: &Path) -> String {
    let shown = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let shown = shown.display();
    format!(
        "the extension is in {shown}\n\
         1. open chrome://extensions and switch on Developer mode\n\
         2. Load unpacked: choose {shown}\n\
         It finds the server by itself; keep the folder, and its content to yourself: it holds the secret.\n"
    )
}

fn failure(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Occupied(folder) => Failure::failed(
            format!("{} holds something else than the extension", folder.display()),
            format!("name a folder of its own: {BINARY} extension install ~/raincheck-extension"),
        ),
        Refusal::Absent(folder) => Failure::failed(
            format!("no extension of {BINARY} is in {}", folder.display()),
            "check the folder",
        ),
        Refusal::Running(pid) => Failure::failed(
            match pid {
                Some(pid) => {
                    format!("a server runs (process {pid}) and would go on with the old secret")
                }
                None => "a server runs and would go on with the old secret".to_owned(),
            },
            "end it, by closing the MCP client that started it, and try again",
        ),
        Refusal::TooMany(most) => Failure::failed(
            format!("the extension is in {most} folders, which is as many as there may be"),
            format!(
                "remove one first: {BINARY} extension uninstall DIR; {BINARY} status lists them"
            ),
        ),
        Refusal::Failed(why) => Failure::failed(why, format!("run: {BINARY} doctor")),
    }
}
