//! What the filter process may use of the machine.
//!
//! On Linux memory, processor time, files and processes are limited by the kernel; on other systems of
//! the Unix kind all of these but memory; elsewhere the server's deadline and the limits on outputs are
//! what there is.

use crate::filter::limits::Limits;

/// How much memory parsing may take, in bytes, for one byte of the body; and at most.
const PARSED_PER_BYTE: u64 = 40;
const PARSED_MOST: u64 = 1 << 30;

#[cfg(unix)]
mod unix {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Lowers a limit; what cannot be lowered stays.
    pub(super) fn lower(resource: Resource, to: u64) {
        let hard = getrlimit(resource).maximum.map_or(to, |hard| hard.min(to));
        let _ = setrlimit(resource, Rlimit { current: Some(to.min(hard)), maximum: Some(hard) });
    }

    /// Sets a limit that can be raised again, up to the hard one.
    pub(super) fn set(resource: Resource, to: u64) {
        let hard = getrlimit(resource).maximum;
        let current = hard.map_or(to, |hard| hard.min(to));
        let _ = setrlimit(resource, Rlimit { current: Some(current), maximum: hard });
    }
}

/// Gives up what no filter needs: descriptors, files, processes, a core.
#[cfg(unix)]
pub(super) fn leave_the_rest() {
    use rustix::process::Resource;
    close_descriptors();
    let _ = std::env::set_current_dir("/");
    unix::lower(Resource::Core, 0);
    unix::lower(Resource::Fsize, 0);
    unix::lower(Resource::Nofile, 8);
}

#[cfg(not(unix))]
pub(super) fn leave_the_rest() {}

/// Closes every descriptor above standard error.
#[cfg(target_os = "linux")]
fn close_descriptors() {
    #[expect(
        unsafe_code,
        reason = "nothing of this process owns a descriptor above standard error yet"
    )]
    // SAFETY: it is the first thing that this process does, so that no owner is left with a closed one.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn close_descriptors() {}

/// Limits what the run to come may use.
#[cfg(unix)]
pub(super) fn before_run(limits: &Limits, body: u64) {
    use rustix::process::Resource;
    #[cfg(target_os = "linux")]
    {
        // The threads run; there will be no more of them.
        unix::lower(Resource::Nproc, 0);
        let parsing = body.saturating_mul(PARSED_PER_BYTE).min(PARSED_MOST);
        unix::set(Resource::As, pages(0).saturating_add(parsing).saturating_add(limits.memory));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = body;
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec;
    // Whole seconds, begun ones counted: the wall deadline comes first unless the server is stopped.
    unix::set(Resource::Cpu, u64::try_from(used).unwrap_or(0) + limits.cpu.as_secs() + 2);
}

#[cfg(not(unix))]
pub(super) fn before_run(_: &Limits, _: u64) {
    let _ = (PARSED_PER_BYTE, PARSED_MOST);
}

/// How much memory this process holds, in bytes; 0 where that cannot be told.
pub(super) fn resident() -> u64 {
    #[cfg(target_os = "linux")]
    return pages(1);
    #[cfg(not(target_os = "linux"))]
    0
}

/// A number of `/proc/self/statm`, in bytes.
#[cfg(target_os = "linux")]
fn pages(field: usize) -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 =
        text.split_whitespace().nth(field).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}
