//! When this process started, as the operating system tells it.

use raincheck_core::time::Timestamp;

/// Returns when this process started; `None` where that cannot be told.
#[cfg(target_os = "linux")]
pub(super) fn started() -> Option<Timestamp> {
    started_of("self")
}

#[cfg(target_os = "linux")]
fn started_of(process: &str) -> Option<Timestamp> {
    let own = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    from_proc(&own, &machine)
}

/// Returns whether a process that started then still runs.
#[cfg(target_os = "linux")]
pub(super) fn is_running(pid: u32, started: Timestamp) -> bool {
    use std::time::Duration;

    /// The second of boot is told by the wall clock, and moves a little when that is set.
    const SLACK: Duration = Duration::from_secs(2);
    started_of(&pid.to_string())
        .is_some_and(|found| found.since(started).max(started.since(found)) <= SLACK)
}

/// Returns whether a process of this number runs; when it started cannot be told.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn is_running(pid: u32, _started: Timestamp) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Returns `true`, for want of a way to ask.
#[cfg(not(unix))]
pub(super) fn is_running(_pid: u32, _started: Timestamp) -> bool {
    true
}

/// Returns when this process started; `None` where that cannot be told.
#[cfg(not(target_os = "linux"))]
pub(super) fn started() -> Option<Timestamp> {
    None
}

/// Adds the ticks from boot to start, field 22 of a process, to the second of boot.
#[cfg(target_os = "linux")]
fn from_proc(own: &str, machine: &str) -> Option<Timestamp> {
    /// Linux tells programs times in hundredths of a second, whatever its own clock runs at.
    const MS_PER_TICK: i64 = 10;
    // The second field is the program's name in parentheses, and may hold spaces and parentheses.
    let (_, fields) = own.rsplit_once(')')?;
    // What has ended and was not asked about yet keeps its number.
    if fields.trim_start().starts_with(['Z', 'X']) {
        return None;
    }
    let ticks: i64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    let boot = machine.lines().find_map(|line| line.strip_prefix("btime "))?;
    let boot: i64 = boot.trim().parse().ok()?;
    Some(Timestamp::from_millis(boot * 1000 + ticks * MS_PER_TICK))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_read_past_an_odd_program_name() {
        let own = "77 (a) b (c) S 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1250 9 9";
        let machine = "cpu 1 2\nbtime 1700000000\nprocesses 5\n";
        assert_eq!(from_proc(own, machine), Some(Timestamp::from_millis(1_700_000_012_500)));
        assert_eq!(from_proc("", machine), None);
        assert_eq!(from_proc("77 (a) Z 1 77 77 0 -1 0 1 2 3 4 5 6 7 8 2 0 1 0 1 9", machine), None);
    }

    #[test]
    fn this_process_started_at_the_same_instant_each_time_it_is_asked() {
        assert!(started().is_some());
        assert_eq!(started(), started());
    }

    #[test]
    fn a_number_that_another_process_has_by_now_is_not_the_process() {
        let own = std::process::id();
        let started = started().expect("known");
        assert!(is_running(own, started));
        let earlier = Timestamp::from_millis(started.as_millis() - 10_000);
        assert!(!is_running(own, earlier), "[SEC-5]");
        assert!(!is_running(u32::MAX, started), "[SEC-5]");
    }
}
