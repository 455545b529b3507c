//! The process table of Linux, and whether it is the one that this process is in.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// One process, as the table shows it.
pub(super) struct Entry {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) start: u64,
    pub(super) is_dead: bool,
}

/// Says why the numbers of the table are not those that signals take, if they are not.
pub(super) fn fault() -> Option<&'static str> {
    let own = std::process::id().to_string();
    match std::fs::read_link("/proc/self") {
        Ok(link) if link.as_os_str() == own.as_str() => None,
        Ok(_) => Some("the process table under /proc is that of another pid namespace"),
        Err(_) => Some("there is no process table under /proc"),
    }
}

/// Lists the processes whose numbers are asked for.
pub(super) fn list(is_wanted: impl Fn(i32) -> bool) -> Vec<Entry> {
    numbers("/proc").into_iter().filter(|pid| is_wanted(*pid)).filter_map(entry).collect()
}

/// Returns the number that was given out last.
pub(super) fn latest() -> Option<i32> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().last()?.parse().ok()
}

/// Returns the instant at which a process started, in ticks of the system.
pub(super) fn start_of(pid: i32) -> Option<u64> {
    entry(pid).map(|it| it.start)
}

/// Returns the children of a process that have not been waited for; `None` where the system does not
/// list them by parent.
pub(super) fn children_of(pid: i32) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for thread in numbers(&format!("/proc/{pid}/task")) {
        match std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) {
            Ok(list) => all.extend(list.split_whitespace().filter_map(|it| it.parse::<i32>().ok())),
            // The thread may be gone; a kernel without the list has it for none.
            Err(_) if has_children_list() => {}
            Err(_) => return None,
        }
    }
    Some(all)
}

fn has_children_list() -> bool {
    std::fs::metadata("/proc/thread-self/children").is_ok()
}

fn numbers(folder: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(super) fn entry(pid: i32) -> Option<Entry> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

/// Reads `pid (name) state parent group … start …`; the name may hold blanks and brackets.
pub(super) fn parse(pid: i32, stat: &str) -> Option<Entry> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let start = fields.nth(16)?.parse().ok()?;
    Some(Entry { pid, parent, group, start, is_dead: matches!(state, "Z" | "X" | "x") })
}

/// Returns the memory of a process that is in use, in bytes.
pub(super) fn resident(pid: i32) -> u64 {
    kib(&format!("/proc/{pid}/status"), "VmRSS:").unwrap_or(0)
}

/// Returns the memory of a process, what it shares with others by its share of it.
pub(super) fn proportional(pid: i32) -> u64 {
    kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:").unwrap_or_else(|| resident(pid))
}

fn kib(file: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Returns the effective user of a process.
pub(super) fn user_of(pid: i32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Tells whether a process was started with an entry in its environment.
pub(super) fn carries(pid: i32, mark: &OsStr) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 7 40 40 0 -1 4194560 1 0 0 0 2 3 0 0 20 0 1 0 98765 1 2";
        let entry = parse(42, stat).expect("a stat line");
        assert_eq!((entry.parent, entry.group, entry.start, entry.is_dead), (7, 40, 98765, false));
    }

    #[test]
    fn this_process_is_found_with_its_parent_and_start() {
        let me = i32::try_from(std::process::id()).expect("a pid");
        let list = list(|_| true);
        let entry = list.iter().find(|it| it.pid == me).expect("this process is listed");
        assert!(entry.parent > 0 && entry.start > 0 && !entry.is_dead);
        assert_eq!(start_of(me), Some(entry.start));
        assert_eq!(fault(), None);
        assert!(latest().expect("the system tells") > 0);
    }

    #[test]
    fn a_child_is_listed_under_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("it starts");
        let pid = i32::try_from(child.id()).expect("a pid");
        let me = i32::try_from(std::process::id()).expect("a pid");
        let listed = children_of(me);
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(listed.is_none_or(|all| all.contains(&pid)));
    }
}
