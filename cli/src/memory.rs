//! How large the process is, has been and may become, as the system counts it.

/// The resident size of this process, in bytes; `None` where the system does not tell.
pub fn resident() -> Option<u64> {
    memory_stats::memory_stats().map(|stats| stats.physical_mem as u64)
}

/// The largest resident size so far, in bytes; `None` where the system does not tell.
#[cfg(target_os = "linux")]
pub fn peak() -> Option<u64> {
    let status = procfs::process::Process::myself().ok()?.status().ok()?;
    Some(status.vmhwm? * 1024)
}

/// The largest resident size so far, in bytes; `None` where the system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn peak() -> Option<u64> {
    None
}

/// What new structures may take without swapping, in bytes; `None` where the system does not tell.
#[cfg(target_os = "linux")]
pub fn available() -> Option<u64> {
    use procfs::Current;
    procfs::Meminfo::current().ok()?.mem_available
}

/// What new structures may take without swapping, in bytes; `None` where the system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn available() -> Option<u64> {
    None
}
