//! Starting a program without a copy of this process: the new one borrows its memory until it is the
//! program.
#![expect(unsafe_code, reason = "clone, and what the new process does before it is the program")]

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use super::raw;

/// The size of the stack on which the new process prepares itself.
const STACK: usize = 64 << 10;

/// What a program is started with.
pub(super) struct Plan<'a> {
    pub(super) program: &'a OsStr,
    /// Its arguments, its own name first.
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
    pub(super) folder: &'a OsStr,
    /// What becomes standard input, output and error. None may be one of these already.
    pub(super) streams: [&'a OwnedFd; 3],
    /// A descriptor that the program has under the same number.
    pub(super) control: &'a OwnedFd,
}

/// What the new process reads, and the one thing it writes.
struct Shared {
    program: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    folder: *const libc::c_char,
    streams: [i32; 3],
    control: i32,
    parent: i32,
    error: i32,
}

/// Starts a program as the leader of its own process group, which the kernel kills when this thread
/// ends, and returns its number.
///
/// # Errors
/// When the program cannot be started. Nothing of it is left then.
pub(super) fn spawn(plan: &Plan<'_>) -> io::Result<i32> {
    let program = text(plan.program)?;
    let folder = text(plan.folder)?;
    let pointers = |all: &[CString]| -> Vec<*const libc::c_char> {
        all.iter().map(|one| one.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(&plan.arguments), pointers(&plan.environment));
    let mut shared = Shared {
        program: program.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        folder: folder.as_ptr(),
        streams: plan.streams.map(|fd| fd.as_raw_fd()),
        control: plan.control.as_raw_fd(),
        parent: rustix::process::getpid().as_raw_nonzero().get(),
        error: 0,
    };
    if shared.streams.iter().any(|fd| *fd <= 2) || shared.control <= 2 {
        return Err(io::Error::other("this process has no standard streams"));
    }
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    // SAFETY: the stack grows down from its end and outlives the call: with CLONE_VFORK this thread
    // stands still until the new process has become the program or is gone. What that does in between
    // neither allocates nor locks nor unwinds, and writes nothing but `error`. Every signal is blocked
    // meanwhile, so that no handler of this process runs in it.
    let pid = unsafe {
        let before = raw::block_signals();
        let top = stack.as_mut_ptr().add(stack.len()).cast();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(become_it, top, flags, (&raw mut shared).cast());
        let failure = io::Error::last_os_error();
        raw::set_signals(&before);
        if pid < 0 {
            return Err(failure);
        }
        pid
    };
    // SAFETY: it is a live local; the new process wrote it through the pointer it was given.
    let error = unsafe { std::ptr::read_volatile(&raw const shared.error) };
    if error != 0 {
        let _ = rustix::process::Pid::from_raw(pid).map(raw::reap);
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(pid)
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Is the new process until it is the program.
extern "C" fn become_it(shared: *mut libc::c_void) -> i32 {
    // SAFETY: it is the parent's local, which stands still; see `spawn`.
    unsafe {
        let shared = shared.cast::<Shared>();
        prepare(&*shared);
        (*shared).error = match *libc::__errno_location() {
            0 => libc::EIO,
            error => error,
        };
        libc::_exit(127)
    }
}

/// Prepares the new process and becomes the program; returns when one of it failed.
///
/// # Safety
/// To be called in a new process only, with pointers that are good.
unsafe fn prepare(shared: &Shared) {
    // SAFETY: these are system calls on numbers and on memory that outlives them.
    unsafe {
        if libc::setpgid(0, 0) != 0 {
            return;
        }
        for (from, to) in shared.streams.iter().zip([0, 1, 2]) {
            if libc::dup2(*from, to) < 0 {
                return;
            }
        }
        raw::close_all_at_exec();
        if libc::fcntl(shared.control, libc::F_SETFD, 0) < 0 || libc::chdir(shared.folder) != 0 {
            return;
        }
        raw::reset_signals();
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return;
        }
        // The parent may have died before the line above.
        if libc::getppid() != shared.parent {
            *libc::__errno_location() = libc::ESRCH;
            return;
        }
        libc::execve(shared.program, shared.arguments, shared.environment);
    }
}
