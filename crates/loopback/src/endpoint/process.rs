//! When this process started, as the operating system tells it.

use raincheck_core::time::Timestamp;

/// Returns when this process started; `None` where that cannot be told.
#[cfg(target_os = "linux")]
pub(super) fn started() -> Option<Timestamp> {
    let own = std::fs::read_to_string("/proc/self/stat").ok()?;
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    from_proc(&own, &machine)
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
    }

    #[test]
    fn this_process_started_at_the_same_instant_each_time_it_is_asked() {
        assert!(started().is_some());
        assert_eq!(started(), started());
    }
}
