//! Resident size of the process, its peak, and its limit, as the system reports them.

use kingsnake_studies::machine;

/// The resident size of this process, in bytes; `None` if the system does not report it.
pub fn resident() -> Option<u64> {
    memory_stats::memory_stats().map(|stats| stats.physical_mem as u64)
}

/// The peak resident size, in bytes; `None` if the system does not report it.
pub fn peak() -> Option<u64> {
    machine::peak_of(std::process::id())
}

/// Counts the largest resident size anew, where the system lets it.
pub fn forget_peak() {
    if cfg!(target_os = "linux") {
        let _ = std::fs::write("/proc/self/clear_refs", "5");
    }
}

/// What new structures may take without swapping, in bytes; `None` where the system does not tell.
pub fn available() -> Option<u64> {
    machine::available()
}
