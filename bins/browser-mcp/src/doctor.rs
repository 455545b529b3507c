//! `browser-mcp doctor`: what all binaries look at, and what the bridge needs beside it.

use std::env;
use std::path::{Path, PathBuf};

use raincheck::core::time::Timestamp;
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::doctor::{self, Finding, Patient, Report};
use raincheck_app::paths::Paths;
use raincheck_browser::extension::{Copy, Places, compare};
use raincheck_store_sqlite::{Reader, check_locks};

use crate::{BINARY, THIS, extension, places, wait_for};

/// The names that browsers with the extension's interfaces go by.
const BROWSERS: &[&str] = &[
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "brave-browser",
];

/// Where they are where nothing is put on the PATH.
const APPLICATIONS: &[&str] = &[
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/// Runs every check.
pub(crate) fn examine(shared: &Shared, serving: &Serving, port: u16, now: Timestamp) -> Report {
    let report = doctor::examine(&Patient {
        binary: &THIS,
        shared,
        serving,
        now,
        missing_contents: Reader::missing_contents_of,
        check_locks,
    });
    // Without folders, which was told, there is nothing more to look at.
    let Ok(paths) = Paths::resolve(BINARY, shared) else { return report };
    let places = places(&paths);
    report.with(runtime_folder(&places)).with([
        listener(&places, port),
        extensions(&places),
        browser(
            env::var_os("CHROMIUM").filter(|name| !name.is_empty()).map(PathBuf::from),
            &search_path(),
        ),
    ])
}

fn runtime_folder(places: &Places) -> Option<Finding> {
    let next = "make it writable, or name another: --runtime-dir DIR";
    places.endpoint().parent().map(|folder| doctor::folder("runtime folder", folder, next))
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
            "nothing to do: the server takes another port and tells the extension",
        ),
    }
}

/// Tells where the extension is and whether it is the one of this binary.
fn extensions(places: &Places) -> Finding {
    const CHECK: &str = "extension";
    let folders = places.folders();
    let says = extension::described(places).join("\n");
    let next = |folder: &Path| {
        let folder = folder.display();
        format!(
            "write it again: {BINARY} extension install {folder}, then reload it at chrome://extensions"
        )
    };
    let Some(stale) = folders.iter().find(|folder| compare(folder) != Copy::Current) else {
        return match folders.is_empty() {
            true => Finding::note(CHECK, "none", extension::described(places).concat()),
            false => Finding::good(CHECK, says),
        };
    };
    let has_current = folders.iter().any(|folder| compare(folder) == Copy::Current);
    if has_current {
        Finding::note(CHECK, says, next(stale))
    } else {
        Finding::bad(CHECK, says, next(stale))
    }
}

/// Looks for a browser: the one that is named, else any.
fn browser(named: Option<PathBuf>, path: &[PathBuf]) -> Finding {
    const CHECK: &str = "browser";
    let on_path = |name: &Path| {
        let is_path = name.components().count() > 1;
        let at = |folder: &PathBuf| Some(folder.join(name)).filter(|program| program.is_file());
        if is_path {
            Some(name.to_owned()).filter(|it| it.is_file())
        } else {
            path.iter().find_map(at)
        }
    };
    if let Some(name) = named {
        let shown = name.display();
        return on_path(&name).map_or_else(
            || {
                let says = format!("CHROMIUM is `{shown}`, and no program is there");
                Finding::note(CHECK, says, "correct the variable CHROMIUM, or unset it")
            },
            |found| Finding::good(CHECK, found.display().to_string()),
        );
    }
    let names = BROWSERS.iter().map(|name| format!("{name}{}", env::consts::EXE_SUFFIX));
    let mut all = names.map(PathBuf::from).chain(APPLICATIONS.iter().map(PathBuf::from));
    let found = all.find_map(|name| on_path(&name)).map(|it| it.display().to_string());
    found.map_or_else(
        || {
            let next =
                "get one, such as with: apt-get install -y chromium; or name it: CHROMIUM=PATH";
            Finding::note(CHECK, "no Chromium or Chrome is on the PATH", next)
        },
        |found| Finding::good(CHECK, found),
    )
}

fn search_path() -> Vec<PathBuf> {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use raincheck_app::doctor::Grade;
    use raincheck_browser::extension::{install, uninstall};

    use super::*;

    fn places(dir: &Path) -> Places {
        Places::new(&dir.join("state"), &dir.join("run"))
    }

    #[test]
    fn a_copy_of_another_version_is_in_the_way_and_one_beside_the_right_one_is_told() {
        let dir = tempfile::tempdir().expect("a folder");
        let (places, folder) = (places(dir.path()), dir.path().join("one"));
        assert_eq!(extensions(&places).grade, Grade::Note);
        wait_for(install(&places, &folder)).expect("a runtime").expect("installed");
        assert_eq!(extensions(&places).grade, Grade::Good);
        fs::write(folder.join("worker.js"), "// another").expect("written");
        let found = extensions(&places);
        assert_eq!(found.grade, Grade::Bad);
        assert!(found.next.is_some_and(|next| next.contains("extension install")));
        let two = dir.path().join("two");
        wait_for(install(&places, &two)).expect("a runtime").expect("installed");
        assert_eq!(extensions(&places).grade, Grade::Note);
        uninstall(&places, &folder).expect("removed");
        assert_eq!(extensions(&places).grade, Grade::Good);
    }

    #[test]
    fn a_browser_is_looked_for_by_its_names() {
        let dir = tempfile::tempdir().expect("a folder");
        let found = |path: &[PathBuf]| browser(None, path).says;
        let program = dir.path().join(format!("google-chrome{}", env::consts::EXE_SUFFIX));
        fs::write(&program, "").expect("written");
        let path = [dir.path().to_owned()];
        assert_eq!(found(&path), program.display().to_string());
        // The one that is named counts, as it does for the demo.
        let named = browser(Some("/nonexistent/browser".into()), &path);
        assert_eq!(named.grade, Grade::Note);
        assert!(named.says.contains("/nonexistent/browser"), "{}", named.says);
        assert_eq!(browser(Some(program.clone()), &path).says, program.display().to_string());
    }

    #[test]
    fn without_a_server_the_port_is_looked_at() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(listener(&places(dir.path()), 0).grade, Grade::Good);
    }
}
