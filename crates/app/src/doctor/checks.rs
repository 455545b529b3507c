//! One function per cause.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use raincheck_core::text::counted;
use raincheck_core::time::Timestamp;
use raincheck_loopback::endpoint;

use super::{Finding, Patient, programs};
use crate::config::{File, Store};
use crate::instance::{self, Card, Seen};
use crate::listeners;
use crate::logging;
use crate::paths::{Paths, create_private};
use crate::standing::Stands;

/// Free space below which logs and artifacts soon fail.
const LITTLE_SPACE: u64 = 256 << 20;

/// Open files below which a busy server runs dry: six per running program, and some of its own.
const FEW_FILES: u64 = 256;

/// No wall clock of a machine that runs this is before it (2026-01-01).
const NOT_BEFORE: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// The largest difference between the wall clock and the file system's that is not worth a word.
const SKEW: Duration = Duration::from_secs(5);

/// Runs every check; those that need the file are left out when it is broken.
pub(super) fn all(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let file = configuration(patient, &mut findings);
    findings.push(flags(patient));
    let runs_programs = patient.binary.runs_programs();
    if let Some(file) = file.as_ref().filter(|_| runs_programs) {
        findings.push(programs::programs(file));
        findings.push(programs::scripts(file));
        findings.push(lanes(file));
    }
    match Paths::resolve(patient.binary.name, patient.shared) {
        Ok(paths) => {
            findings.extend(state_folder(&paths, patient.now));
            findings.push(servers(&paths.home, patient.binary.on_shared_store));
            findings.extend(locks(patient, &paths));
            findings.extend(contents(patient, &paths));
            findings.extend(runs_programs.then(|| listener(&paths)));
        }
        Err(failure) => {
            findings.push(Finding::bad("state folder", failure.message, failure.next));
        }
    }
    findings.push(log_level(patient));
    findings.push(standard_input(patient));
    findings.push(open_files());
    findings
}

fn configuration(patient: &Patient<'_>, findings: &mut Vec<Finding>) -> Option<File> {
    const CHECK: &str = "configuration";
    match (&patient.shared.config, patient.shared.load_file(patient.binary, patient.serving)) {
        (None, Ok(file)) if !patient.binary.runs_programs() => {
            findings.push(Finding::good(CHECK, "no file is named; every default holds"));
            Some(file)
        }
        (None, Ok(file)) => {
            let next = "write a raincheck.toml and name it: --config raincheck.toml";
            findings.push(Finding::note(CHECK, "no file is named, so there are no tools", next));
            Some(file)
        }
        (Some(path), Ok(file)) => {
            let mut says = path.display().to_string();
            if patient.binary.runs_programs() {
                says.push_str(&format!(", {}", counted(file.tools.len() as u64, "tool")));
            }
            for section in file.idle_sections(patient.binary) {
                says.push_str(&format!("\n[{section}] has no effect on {}", patient.binary.name));
            }
            findings.push(Finding::good(CHECK, says));
            Some(file)
        }
        (_, Err(failure)) => {
            findings.push(Finding::bad(CHECK, failure.message, failure.next));
            None
        }
    }
}

fn flags(patient: &Patient<'_>) -> Finding {
    match patient.shared.store_flag() {
        Ok(_) => Finding::good("flags", "every flag is understood"),
        Err(failure) => Finding::bad("flags", failure.message, failure.next),
    }
}

fn lanes(file: &File) -> Finding {
    const CHECK: &str = "lanes";
    let used = |name: &str| file.tools.iter().any(|tool| tool.spec.lane.as_str() == name);
    for (id, config) in file.lanes.iter().filter(|(id, _)| used(id.as_str())) {
        if config.queue_limit == 0 {
            return Finding::bad(
                CHECK,
                format!("lane {id} has queue_limit = 0: it refuses every task"),
                format!("raise queue_limit in [lanes.{id}]"),
            );
        }
    }
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = file.lanes.iter().filter(|(id, _)| used(id.as_str()));
    let n_workers: u64 = workers.map(|(_, config)| u64::from(config.concurrency)).sum();
    if n_workers > 4 * n_cores as u64 {
        return Finding::note(
            CHECK,
            format!("{n_workers} tasks may run at once on {n_cores} processors"),
            "lower concurrency in [lanes.*] if the tools are busy and not waiting",
        );
    }
    let lanes = counted(file.lanes.len() as u64, "lane");
    Finding::good(CHECK, format!("{lanes}; {} for these tools", counted(n_workers, "worker")))
}

fn state_folder(Paths { state, home, .. }: &Paths, now: Timestamp) -> Vec<Finding> {
    const CHECK: &str = "state folder";
    const NEXT: &str = "make it writable, or name another: --state-dir DIR";
    let (mut finding, written) = folder(CHECK, home, NEXT);
    if written.is_some() {
        // The one that `--state-dir` names comes first: it is what people copy.
        if let Ok(own) = home.strip_prefix(state) {
            finding.says = format!("{}; `{}` in it is writable", state.display(), own.display());
        }
    }
    let mut findings = vec![finding];
    let Some(clock) = written else { return findings };
    findings.extend(privacy(home));
    findings.extend(free_space(home));
    findings.push(wall_clock(now, clock));
    findings
}

/// Looks whether a folder can be written into, and when the file system says that was.
pub(super) fn folder(
    check: &'static str,
    folder: &Path,
    next: &str,
) -> (Finding, Option<Timestamp>) {
    let shown = folder.display();
    match probe(folder) {
        Ok(written) => (Finding::good(check, format!("{shown} is writable")), Some(written)),
        Err(error) => (Finding::bad(check, format!("{shown}: {error}"), next), None),
    }
}

/// Writes and removes a file; returns when the file system says it was written. Folders that were not there
/// are not there afterwards.
fn probe(home: &Path) -> io::Result<Timestamp> {
    let made: Vec<&Path> = home.ancestors().take_while(|folder| !folder.exists()).collect();
    let written = create_private(home).and_then(|()| write_into(home));
    for folder in made {
        // One that somebody put something into meanwhile stays.
        let _ = fs::remove_dir(folder);
    }
    written
}

fn write_into(home: &Path) -> io::Result<Timestamp> {
    let file = home.join(format!(".doctor-{}", std::process::id()));
    fs::write(&file, b"doctor")?;
    let written = fs::metadata(&file).and_then(|metadata| metadata.modified());
    fs::remove_file(&file)?;
    let since = written?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp::MIN + since)
}

#[cfg(unix)]
fn privacy(home: &Path) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(home).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| {
        Finding::note(
            "privacy",
            format!("other users may look into {} (mode {:o})", home.display(), mode & 0o777),
            format!("chmod 700 {}", home.display()),
        )
    })
}

#[cfg(not(unix))]
fn privacy(_home: &Path) -> Option<Finding> {
    None
}

#[cfg(unix)]
fn free_space(home: &Path) -> Option<Finding> {
    let volume = rustix::fs::statvfs(home).ok()?;
    let free = volume.f_bavail.saturating_mul(volume.f_frsize);
    let mib = free >> 20;
    Some(if free < LITTLE_SPACE {
        Finding::bad(
            "free space",
            format!("{mib} MiB are left for tasks and what they leave"),
            "free some space, or put the state elsewhere: --state-dir DIR",
        )
    } else {
        Finding::good("free space", format!("{mib} MiB"))
    })
}

#[cfg(not(unix))]
fn free_space(_home: &Path) -> Option<Finding> {
    None
}

/// Names tasks of which a file of inputs or results is missing.
fn contents(patient: &Patient<'_>, paths: &Paths) -> Option<Finding> {
    const MOST: usize = 10;
    let file = patient.shared.load(patient.binary, patient.serving).ok()?;
    let Store::Path(path) = patient.shared.store(&file, &paths.home) else { return None };
    let missing = (patient.missing_contents)(&path, MOST)?;
    if missing.is_empty() {
        return None;
    }
    let ids: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let more = if missing.len() == MOST { ", and perhaps more" } else { "" };
    Some(Finding::note(
        "contents",
        format!(
            "files of inputs or results beside {} are missing for {}{more}",
            path.display(),
            ids.join(", ")
        ),
        "only these tasks are affected: restore the files from a backup, or run them again",
    ))
}

/// Tells when the store could not be owned, such as where the file system refuses locks.
fn locks(patient: &Patient<'_>, paths: &Paths) -> Option<Finding> {
    let file = patient.shared.load(patient.binary, patient.serving).ok()?;
    let Store::Path(path) = patient.shared.store(&file, &paths.home) else { return None };
    let error = (patient.check_locks)(&path).err()?;
    let next = "keep the state on a local disk: --state-dir DIR, or --store memory";
    let next = error.hint.as_deref().unwrap_or(next).to_owned();
    Some(Finding::bad("locks", error.message.to_string(), next))
}

fn wall_clock(now: Timestamp, file_system: Timestamp) -> Finding {
    const CHECK: &str = "clock";
    if now < NOT_BEFORE {
        return Finding::bad(
            CHECK,
            format!("the clock says {now}"),
            "set the clock of the machine",
        );
    }
    let skew = now.since(file_system).max(file_system.since(now));
    if skew > SKEW && file_system > NOT_BEFORE {
        return Finding::note(
            CHECK,
            format!("the file system's clock is {} s off", skew.as_secs()),
            "synchronise the clocks, or keep the state on a local disk",
        );
    }
    Finding::good(CHECK, now.to_string())
}

fn servers(home: &Path, advice: &'static str) -> Finding {
    let seen = instance::look(home);
    if let Some(finding) = contested(&seen, advice) {
        return finding;
    }
    let pids: Vec<String> = seen
        .iter()
        .filter(|seen| seen.is_running)
        .filter_map(|seen| Some((seen.card.as_ref()?.pid, seen.stands)))
        .map(|(pid, stands)| match stands {
            Some(Stands::Owner) => format!("{pid}, which owns what they share"),
            Some(Stands::Attached { to }) => format!("{pid}, attached to {to}"),
            Some(Stands::Apart { .. }) | None => pid.to_string(),
        })
        .collect();
    let n_left = seen.iter().filter(|seen| !seen.is_running).count();
    let running = match pids.len() {
        0 => "no server runs".to_owned(),
        _ => format!("running: pid {}", pids.join("; pid ")),
    };
    match n_left {
        0 => Finding::good("servers", running),
        _ => Finding::note(
            "servers",
            format!("{running}; {} killed and left files", were(n_left)),
            "nothing to do: the next server removes them",
        ),
    }
}

/// Tells whether a server can serve artifacts and be called, and which ones are.
fn listener(paths: &Paths) -> Finding {
    const CHECK: &str = "listener";
    if let Err(error) = raincheck_loopback::can_listen(0) {
        return Finding::note(
            CHECK,
            format!("no port of 127.0.0.1 can be listened on: {error}"),
            "artifacts are listed without a link; let the server use the loopback network",
        );
    }
    let all = endpoint::all(&paths.endpoints());
    let n_all = all.len();
    let asked = listeners::prove(all);
    let n_left = n_all - asked.len();
    let unproven = asked.iter().find_map(|(one, proof)| proof.as_ref().err().map(|why| (one, why)));
    if let Some((one, why)) = unproven {
        return Finding::note(
            CHECK,
            format!("pid {} is said to listen at port {}, but {why}", one.pid, one.port),
            "end that server, by closing the MCP client that started it; nothing is sent to it",
        );
    }
    let urls: Vec<&str> = asked.iter().map(|(one, _)| one.url.as_str()).collect();
    let says = match urls.len() {
        0 => "127.0.0.1 can be listened on".to_owned(),
        _ => format!("open at {}", urls.join(", ")),
    };
    match n_left {
        0 => Finding::good(CHECK, says),
        n => Finding::note(
            CHECK,
            format!("{says}; {} killed and left a file", were(n)),
            "nothing to do: the next server removes it",
        ),
    }
}

fn were(n: usize) -> String {
    if n == 1 { "1 was".to_owned() } else { format!("{n} were") }
}

/// Finds servers of one store: only one of them owns it, the others answer with its name.
fn contested(seen: &[Seen], advice: &'static str) -> Option<Finding> {
    // Those that are attached share it in peace.
    let is_attached = |seen: &&Seen| matches!(seen.stands, Some(Stands::Attached { .. }));
    let running = seen.iter().filter(|seen| seen.is_running && !is_attached(seen));
    let cards: Vec<&Card> = running.filter_map(|seen| seen.card.as_ref()).collect();
    let shared = |card: &&Card| {
        let of_same = cards.iter().filter(|other| other.store == card.store);
        card.store.is_some() && of_same.count() > 1
    };
    let store = cards.iter().copied().find(shared)?.store.clone();
    let of_store = cards.iter().filter(|card| card.store == store);
    let pids: Vec<String> = of_store.map(|card| card.pid.to_string()).collect();
    Some(Finding::bad(
        "servers",
        format!("pid {} share one store, and only one of them can own it", pids.join(", ")),
        advice,
    ))
}

fn log_level(patient: &Patient<'_>) -> Finding {
    match logging::filter(patient.shared.log_level.as_deref()) {
        Ok(_) if patient.shared.log_level.is_none() => {
            Finding::good("log level", "warn, and info of its own")
        }
        Ok(filter) => Finding::good("log level", filter.to_string()),
        Err(failure) => Finding::bad("log level", failure.message, failure.next),
    }
}

fn standard_input(patient: &Patient<'_>) -> Finding {
    if io::stdin().is_terminal() {
        let says = "a terminal; a server expects an MCP client here";
        let next = format!("let the client start it: {} serve", patient.binary.name);
        return Finding::note("standard input", says, next);
    }
    Finding::good("standard input", "not a terminal")
}

#[cfg(unix)]
fn open_files() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit {
        Some(limit) if limit < FEW_FILES => Finding::bad(
            "open files",
            format!("at most {limit}; every running program takes about six"),
            "raise the limit before the client starts: ulimit -n 4096",
        ),
        Some(limit) => Finding::good("open files", format!("at most {limit}")),
        None => Finding::good("open files", "no limit"),
    }
}

#[cfg(not(unix))]
fn open_files() -> Finding {
    Finding::good("open files", "no limit that matters")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Grade;

    fn seen(pid: u32, store: Option<&str>) -> Seen {
        let card = Card {
            pid,
            version: "1".into(),
            started_at: NOT_BEFORE,
            scope: "local".into(),
            store: store.map(Into::into),
            config: None,
            tools: Vec::new(),
            lanes: Vec::new(),
            wraps: None,
        };
        Seen { dir: "server".into(), is_running: true, card: Some(card), stands: None }
    }

    #[test]
    fn two_servers_of_one_store_are_found() {
        let apart = [seen(1, Some("a")), seen(2, Some("b")), seen(3, None), seen(4, None)];
        assert_eq!(contested(&apart, "advice"), None);
        let attached = Seen { stands: Some(Stands::Attached { to: 1 }), ..seen(2, Some("a")) };
        assert_eq!(contested(&[seen(1, Some("a")), attached], "advice"), None, "[ATTACH-9]");
        let finding = contested(&[seen(1, Some("a")), seen(2, None), seen(3, Some("a"))], "advice");
        let finding = finding.expect("a finding");
        assert_eq!(finding.grade, Grade::Bad);
        assert!(finding.says.contains("pid 1, 3"), "{}", finding.says);
    }

    #[test]
    fn a_clock_from_another_age_is_in_the_way_and_a_skew_is_told() {
        let now = NOT_BEFORE + Duration::from_secs(60);
        assert_eq!(wall_clock(Timestamp::MIN, now).grade, Grade::Bad);
        assert_eq!(wall_clock(now, now + Duration::from_secs(30)).grade, Grade::Note);
        assert_eq!(wall_clock(now, now + Duration::from_secs(1)).grade, Grade::Good);
    }
}
