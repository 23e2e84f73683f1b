//! How large the process is, has been and may become, as the system counts it.

use kingsnake_studies::machine;

/// The resident size of this process, in bytes; `None` where the system does not tell.
pub fn resident() -> Option<u64> {
    memory_stats::memory_stats().map(|stats| stats.physical_mem as u64)
}

/// The largest resident size so far, in bytes; `None` where the system does not tell.
pub fn peak() -> Option<u64> {
    machine::peak_of(std::process::id())
}

/// What new structures may take without swapping, in bytes; `None` where the system does not tell.
pub fn available() -> Option<u64> {
    machine::available()
}
