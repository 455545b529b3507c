//! `unity-mcp install` and `uninstall`.

use std::path::{Path, PathBuf};

use clap::Args;
use raincheck::core::text::counted;
use raincheck_app::{Failure, cli};
use raincheck_unity::package::{self, Copy, Force, Project, Refusal, identity};

use crate::BINARY;
use crate::place::{Place, no_project};

/// How many edited files are named.
const N_NAMED: usize = 5;

/// What `--force` does to files that were changed.
const OVER: &str = "write over them";
const AWAY: &str = "remove them";

/// Write the Unity package into a project.
#[derive(Args, Clone, Debug)]
pub(crate) struct Install {
    /// The folder of the project
    project: PathBuf,
    /// Write over files of the package that were changed in the project
    #[arg(long)]
    force: bool,
    /// Have git overlook the package, in this clone alone (.git/info/exclude)
    #[arg(long)]
    exclude_from_git: bool,
}

/// Remove the Unity package from a project.
#[derive(Args, Clone, Debug)]
pub(crate) struct Uninstall {
    /// The folder of the project
    project: PathBuf,
    /// Remove files of the package that were changed in the project, too
    #[arg(long)]
    force: bool,
}

impl Install {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let project = find(&self.project)?;
        let refused = |refusal| failure(&refusal, &project, OVER);
        let version = project.version().map_err(refused)?;
        let done = package::install(&project, force(self.force)).map_err(refused)?;
        let (package, home) = (identity(), package::folder(&project));
        let mut said = found_above(&project);
        let (name, home) = (format!("{} {}", package.name, package.version), home.display());
        if done == package::Done::default() {
            said.push_str(&format!("{name} in {home} is up to date\n"));
        } else {
            let files = counted(done.written as u64, "file");
            said.push_str(&format!(
                "{name} is in {home} ({files} written, {} removed)\n",
                done.removed
            ));
        }
        if project.lists(&package.name) {
            said.push_str("Packages/manifest.json names the package, too: Unity takes the one in this folder\n");
        }
        if self.exclude_from_git {
            let file = package::exclude_from_git(&project).map_err(refused)?;
            said.push_str(&format!("git overlooks it in this clone: {}\n", file.display()));
        }
        said.push_str(&next(&project, &version.to_string()));
        cli::print(&said)
    }
}

impl Uninstall {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let project = find(&self.project)?;
        let refused = |refusal| failure(&refusal, &project, AWAY);
        let done = package::uninstall(&project, force(self.force)).map_err(refused)?;
        package::include_in_git(&project).map_err(refused)?;
        let files = counted(done.removed as u64, "file");
        let home = package::folder(&project);
        let mut said = found_above(&project);
        said.push_str(&format!("the package is gone from {} ({files} removed)\n", home.display()));
        if home.exists() {
            said.push_str("what else is in that folder was left there\n");
        }
        cli::print(&said)
    }
}

/// Says how the package in a project compares with the one of this binary.
pub(crate) fn described(place: &Place) -> String {
    let Some(project) = &place.project else { return "no project is named".to_owned() };
    let ours = &identity().version;
    match package::compare(project) {
        Copy::Current => format!("{ours}, the one of this binary"),
        Copy::None => "not installed".to_owned(),
        Copy::Other { version, edited } => {
            let mut said = version.clone();
            if version != *ours {
                said.push_str(&format!(", and this binary has {ours}"));
            }
            if !edited.is_empty() {
                said.push_str(&format!(", with changes of its own: {}", named(&edited)));
            }
            said
        }
        Copy::Occupied => format!("{} holds something else", package::folder(project).display()),
    }
}

/// Says what to do about the package in a project; `None` where it is the one of this binary.
pub(crate) fn advice(project: &Project) -> Option<String> {
    let install = format!("{BINARY} install \"{}\"", project.root().display());
    match package::compare(project) {
        Copy::Current => None,
        Copy::None => Some(format!("write it: {install}")),
        Copy::Other { edited, .. } if !edited.is_empty() => {
            Some(format!("keep a copy of the changes, and write over them: {install} --force"))
        }
        Copy::Other { .. } => Some(format!("bring it up to date: {install}")),
        Copy::Occupied => Some("move it away, and install the package".to_owned()),
    }
}

fn find(path: &Path) -> Result<Project, Failure> {
    Project::find(path).map_err(|refusal| no_project(&refusal, path))
}

const fn force(is_forced: bool) -> Force {
    if is_forced { Force::Yes } else { Force::No }
}

fn found_above(project: &Project) -> String {
    match project.is_parent() {
        true => format!("the project is {}\n", project.root().display()),
        false => String::new(),
    }
}

/// Says what to do next.
fn next(project: &Project, version: &str) -> String {
    let open = match project.is_open() {
        true => "click the window of the Unity Editor once: it imports the package then",
        false => "open the project in Unity",
    };
    let root = project.root().display();
    format!(
        "1. {open} (Unity {version})\n\
         2. add the server to your MCP client: {BINARY} --project \"{root}\"\n\
         The editor finds the server by itself: Preferences > Raincheck says whether it is connected.\n"
    )
}

fn failure(refusal: &Refusal, project: &Project, forced: &str) -> Failure {
    let home = package::folder(project);
    let (home, root) = (home.display(), project.root().display());
    match refusal {
        Refusal::NoProject(path) => no_project(refusal, path),
        Refusal::Version(why) => {
            Failure::usage(why.clone(), "open the project with a newer Unity first")
        }
        Refusal::Unreadable => Failure::usage(
            "ProjectSettings/ProjectVersion.txt says no version of Unity",
            "open the project in Unity once, which writes the file, and install again",
        ),
        Refusal::Occupied(place) => Failure::failed(
            format!("{} holds something else than the package", place.display()),
            "move it away, and install again",
        ),
        Refusal::Edited(names) => Failure::failed(
            format!("files of the package were changed in {home}: {}", named(names)),
            format!("keep a copy of them if they matter, and add --force to {forced}"),
        ),
        Refusal::Absent(_) => {
            Failure::failed(format!("the package is not in {root}"), "check the folder")
        }
        Refusal::NoRepository(_) => Failure::failed(
            format!("{root} is in no git repository"),
            "leave out --exclude-from-git; the package is installed",
        ),
        Refusal::Failed(why) => Failure::failed(
            format!("{root}: {why}"),
            format!("run: {BINARY} doctor --project {root}"),
        ),
    }
}

fn named(names: &[String]) -> String {
    let shown = names.get(..N_NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(N_NAMED) {
        0 => shown,
        n => format!("{shown} and {n} more"),
    }
}
