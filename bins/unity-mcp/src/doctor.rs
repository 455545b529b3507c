//! `unity-mcp doctor`: what all binaries look at, and what the bridge needs beside it.

use std::env;
use std::path::{Path, PathBuf};

use raincheck::core::time::Timestamp;
use raincheck_app::Failure;
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::doctor::{self, Finding, Patient, Report};
use raincheck_app::paths::Paths;
use raincheck_store_sqlite::{Reader, check_locks};
use raincheck_unity::Places;
use raincheck_unity::package::{Copy, Project, Refusal, compare};

use crate::place::Place;
use crate::{BINARY, THIS, package, wait_for};

/// Runs every check.
pub(crate) fn examine(
    shared: &Shared,
    serving: &Serving,
    place: Result<Place, Failure>,
    port: u16,
    now: Timestamp,
) -> Report {
    let report = doctor::examine(&Patient {
        binary: &THIS,
        shared,
        serving,
        now,
        missing_contents: Reader::missing_contents_of,
        check_locks,
    });
    let here = Here::look();
    let report = report.with([here.program()]);
    let place = match place {
        Ok(place) => place,
        Err(failure) => {
            return report.with([Finding::bad("project", failure.message, failure.next)]);
        }
    };
    let report = report.with(of_project(&place)).with(here.subsystem(place.project.as_ref()));
    // Without folders, which was told, there is nothing more to look at.
    let Ok(paths) = Paths::resolve(BINARY, shared) else { return report };
    let places = place.places(&paths);
    let next = "make it writable and yours alone, or name another project: --project DIR";
    let folder = places.endpoint().parent();
    let folder = folder.map(|folder| doctor::folder("endpoint folder", folder, next));
    report.with(folder).with([listener(&places, port)])
}

/// Looks at the project: its version, its package, and whether an editor has it open.
fn of_project(place: &Place) -> Vec<Finding> {
    let Some(project) = &place.project else {
        let next = format!("name it: {BINARY} doctor --project DIR");
        return vec![Finding::note(
            "project",
            "none is named, and the current folder is in none",
            next,
        )];
    };
    vec![version(project), installed(place, project), editor(project)]
}

fn version(project: &Project) -> Finding {
    const CHECK: &str = "project";
    let shown = project.root().display();
    match project.version() {
        Ok(version) => Finding::good(CHECK, format!("{shown}, Unity {version}")),
        Err(Refusal::Version(why) | Refusal::Failed(why)) => Finding::bad(
            CHECK,
            format!("{shown}: {why}"),
            "open the project with Unity 2021.3 or newer",
        ),
        Err(Refusal::Unreadable) => Finding::bad(
            CHECK,
            format!("{shown}: ProjectSettings/ProjectVersion.txt says no version of Unity"),
            "open the project in Unity once, which writes the file",
        ),
        Err(_) => Finding::bad(CHECK, format!("{shown} cannot be read"), "check its access rights"),
    }
}

fn installed(place: &Place, project: &Project) -> Finding {
    const CHECK: &str = "package";
    let says = package::described(place);
    let next = package::advice(project);
    match (compare(project), next) {
        (Copy::Current, _) | (_, None) => Finding::good(CHECK, says),
        (Copy::None, Some(next)) => {
            Finding::bad(CHECK, says, format!("{next}; CoplayDev's package needs --coplay"))
        }
        (Copy::Other { .. }, Some(next)) => Finding::note(CHECK, says, next),
        (Copy::Occupied, Some(next)) => Finding::bad(CHECK, says, next),
    }
}

fn editor(project: &Project) -> Finding {
    const CHECK: &str = "editor";
    match project.is_open() {
        true => {
            Finding::good(CHECK, "an editor has the project open (Temp/UnityLockfile is there)")
        }
        false => Finding::note(
            CHECK,
            "no editor has the project open (there is no Temp/UnityLockfile)",
            "open the project in Unity",
        ),
    }
}

/// Tells whether the server that runs is the one of its endpoint file, or whether the next one can
/// listen.
fn listener(places: &Places, port: u16) -> Finding {
    const CHECK: &str = "listener";
    let reached = match wait_for(places.reach()) {
        Ok(reached) => reached,
        Err(failure) => return Finding::note(CHECK, failure.message, "run the doctor again"),
    };
    match (reached, places.taken_port(port)) {
        (Some(Ok(server)), _) => {
            Finding::good(CHECK, format!("pid {} listens at {}", server.pid, server.url))
        }
        (Some(Err(why)), _) => {
            let next = "end the server, by closing the MCP client that started it";
            Finding::bad(CHECK, format!("a server runs and cannot be reached: {why}"), next)
        }
        (None, None) => Finding::good(CHECK, "no server runs; its port is free"),
        (None, Some(0)) => {
            let next = "let the server use the loopback network";
            Finding::bad(CHECK, "no port of 127.0.0.1 can be listened on", next)
        }
        (None, Some(taken)) => Finding::note(
            CHECK,
            format!("port {taken} belongs to another program"),
            "nothing to do: the server takes another port and tells the editor",
        ),
    }
}

/// What the machine says of this binary and of itself.
#[derive(Debug, Default)]
struct Here {
    /// This program.
    own: Option<PathBuf>,
    /// The folders that programs are looked for in.
    path: Vec<PathBuf>,
    /// Whether this is Linux inside of Windows.
    is_wsl: bool,
}

impl Here {
    fn look() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            own: env::current_exe().ok(),
            path: env::split_paths(&path).collect(),
            is_wsl: kernel.to_lowercase().contains("microsoft"),
        }
    }

    /// Tells which program a client starts that is given the bare name.
    fn program(&self) -> Finding {
        const CHECK: &str = "program";
        let own = self.own.as_deref();
        let shown = own.map(|own| own.display().to_string()).unwrap_or_default();
        match (self.first_on_path(), own) {
            (Some(first), Some(own)) if is_one(&first, own) => {
                Finding::good(CHECK, format!("{} is the first on the PATH", first.display()))
            }
            (Some(first), _) => Finding::note(
                CHECK,
                format!("this is {shown}, and `{BINARY}` on the PATH is {}", first.display()),
                "give your MCP client the full path; other projects have programs of this name",
            ),
            (None, _) => Finding::note(
                CHECK,
                format!("{shown} is not on the PATH"),
                "give your MCP client the full path",
            ),
        }
    }

    fn first_on_path(&self) -> Option<PathBuf> {
        let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ".bat", ""] } else { &[""] };
        let in_folder = |folder: &PathBuf| {
            endings.iter().map(|end| folder.join(format!("{BINARY}{end}"))).find(|it| it.is_file())
        };
        self.path.iter().find_map(in_folder)
    }

    /// Tells a server in Linux inside of Windows that an editor of Windows does not reach it.
    fn subsystem(&self, project: Option<&Project>) -> Option<Finding> {
        const CHECK: &str = "WSL";
        if !self.is_wsl {
            return None;
        }
        let is_of_windows = project.is_some_and(|project| is_drive(project.root()));
        let next = "run the Windows build of unity-mcp from WSL (unity-mcp.exe), or set \
                    networkingMode=mirrored in .wslconfig";
        Some(if is_of_windows {
            let says = "this server runs in WSL and the project lies on a drive of Windows: an editor of \
                        Windows reaches 127.0.0.1 of WSL only with mirrored networking";
            Finding::note(CHECK, says, next)
        } else {
            Finding::good(CHECK, "this server runs in WSL, and so must the editor")
        })
    }
}

/// Tells whether a path is below a drive of Windows, as WSL shows them.
fn is_drive(path: &Path) -> bool {
    let mut parts = path.components().skip(1).map(|part| part.as_os_str().to_string_lossy());
    parts.next().is_some_and(|part| part == "mnt")
        && parts.next().is_some_and(|drive| drive.chars().count() == 1)
}

fn is_one(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some() && real(one) == real(other)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use raincheck_app::doctor::Grade;
    use raincheck_unity::package::{Force, install};

    use super::*;

    fn project(dir: &Path) -> Place {
        fs::create_dir_all(dir.join("ProjectSettings")).expect("made");
        let version = dir.join("ProjectSettings").join("ProjectVersion.txt");
        fs::write(version, "m_EditorVersion: 2022.3.1f1\n").expect("written");
        Place::find(Some(dir)).expect("a project")
    }

    #[test]
    fn a_project_is_looked_at_for_its_package_and_its_editor() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = project(dir.path());
        let grades = || of_project(&place).into_iter().map(|found| found.grade).collect::<Vec<_>>();
        assert_eq!(grades(), [Grade::Good, Grade::Bad, Grade::Note]);
        let found = place.project.clone().expect("a project");
        install(&found, Force::No).expect("installed");
        fs::create_dir(dir.path().join("Temp")).expect("made");
        fs::write(dir.path().join("Temp").join("UnityLockfile"), "").expect("written");
        assert_eq!(grades(), [Grade::Good; 3]);
        fs::write(
            raincheck_unity::package::folder(&found).join("package.json"),
            "{\"name\":\"x\",\"version\":\"1\"}",
        )
        .expect("written");
        assert_eq!(grades(), [Grade::Good, Grade::Bad, Grade::Good]);
    }

    #[test]
    fn the_program_that_clients_start_is_compared_with_this_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let ending = env::consts::EXE_SUFFIX;
        let program = |folder: &str| {
            let folder = dir.path().join(folder);
            fs::create_dir_all(&folder).expect("made");
            let path = folder.join(format!("{BINARY}{ending}"));
            fs::write(&path, "").expect("written");
            (folder, path)
        };
        let ((one, own), (two, _)) = (program("one"), program("two"));
        let grade = |path: &[&PathBuf]| {
            let path = path.iter().map(|folder| (*folder).clone()).collect();
            Here { own: Some(own.clone()), path, is_wsl: false }.program()
        };
        assert_eq!(grade(&[&one, &two]).grade, Grade::Good);
        let other = grade(&[&two, &one]);
        assert_eq!(other.grade, Grade::Note);
        assert!(other.says.contains("two"), "{}", other.says);
        assert_eq!(grade(&[]).grade, Grade::Note);
    }

    #[test]
    fn a_server_in_wsl_is_told_of_editors_on_windows() {
        assert!(is_drive(Path::new("/mnt/c/Games/Mine")) && !is_drive(Path::new("/mnt/disk/x")));
        assert!(!is_drive(Path::new("/home/mnt/c")));
        let here = Here { is_wsl: true, ..Here::default() };
        assert_eq!(here.subsystem(None).map(|found| found.grade), Some(Grade::Good));
        assert!(Here::default().subsystem(None).is_none());
    }

    #[test]
    fn without_a_server_the_port_is_looked_at() {
        let dir = tempfile::tempdir().expect("a folder");
        let places = Places::of_project(dir.path());
        assert_eq!(listener(&places, 0).grade, Grade::Good);
    }
}
