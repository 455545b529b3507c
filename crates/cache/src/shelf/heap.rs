//! Memory that is free, and that the allocator holds on to.

/// Asks the allocator to give what is free back to the system.
///
/// The allocator of glibc takes large blocks straight from the system only until some were freed;
/// then they come from its heap, and what is freed there stays resident below whatever is in use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the allocator has no safe form of this")]
pub(super) fn give_back() {
    // SAFETY: takes no pointer, and may be called at any time from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators give back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn give_back() {}
