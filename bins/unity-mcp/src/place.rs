//! Which project a command is about, and where a server keeps its things there.

use std::path::{Path, PathBuf};

use raincheck_app::Failure;
use raincheck_app::paths::Paths;
use raincheck_unity::Places;
use raincheck_unity::package::{Project, Refusal};

use crate::BINARY;

/// The project of a command, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) project: Option<Project>,
}

impl Place {
    /// Finds the project that is named, else the one that the current folder is in.
    pub(crate) fn find(named: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) else {
            let here = std::env::current_dir().ok();
            return Ok(Self { project: here.and_then(|here| Project::find(&here).ok()) });
        };
        match Project::find(path) {
            Ok(project) => Ok(Self { project: Some(project) }),
            Err(refusal) => Err(no_project(&refusal, path)),
        }
    }

    /// Returns the folder in the project that the server keeps its tasks in. Unity and git overlook it.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        let root = self.project.as_ref()?.root();
        Some(root.join("Library").join("Raincheck"))
    }

    /// Returns where the editor finds the server.
    pub(crate) fn places(&self, paths: &Paths) -> Places {
        match &self.project {
            Some(project) => Places::of_project(project.root()),
            None => Places::of_runtime(&paths.runtime),
        }
    }

    /// Says which project it is.
    pub(crate) fn described(&self) -> String {
        match &self.project {
            Some(project) => project.root().display().to_string(),
            None => format!("none: name it, {BINARY} --project DIR, or change to its folder"),
        }
    }
}

/// Says that a path is no project.
pub(crate) fn no_project(refusal: &Refusal, path: &Path) -> Failure {
    let shown = path.display();
    match refusal {
        Refusal::Failed(why) => {
            Failure::usage(format!("{shown} cannot be used: {why}"), "check the path")
        }
        Refusal::NoProject(_)
        | Refusal::Version(_)
        | Refusal::Unreadable
        | Refusal::Occupied(_)
        | Refusal::Edited(_)
        | Refusal::Absent(_)
        | Refusal::NoRepository(_)
            if !path.exists() =>
        {
            Failure::usage(format!("{shown} does not exist"), "check the path")
        }
        Refusal::NoProject(_)
        | Refusal::Version(_)
        | Refusal::Unreadable
        | Refusal::Occupied(_)
        | Refusal::Edited(_)
        | Refusal::Absent(_)
        | Refusal::NoRepository(_)
            if path.join("ProjectSettings").is_dir() =>
        {
            Failure::usage(
                format!(
                    "{shown} is no Unity project: ProjectSettings/ProjectVersion.txt is not there"
                ),
                "open the folder in Unity once, which writes that file",
            )
        }
        Refusal::NoProject(_)
        | Refusal::Version(_)
        | Refusal::Unreadable
        | Refusal::Occupied(_)
        | Refusal::Edited(_)
        | Refusal::Absent(_)
        | Refusal::NoRepository(_) => Failure::usage(
            format!("{shown} is no Unity project, and is in none"),
            "name the folder that holds Assets, and ProjectSettings with ProjectVersion.txt in it",
        ),
    }
}
