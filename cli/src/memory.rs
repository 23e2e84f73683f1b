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

/// Memory available for new structures without swapping, in bytes; `None` if the system does not report it.
pub fn available() -> Option<u64> {
    machine::available()
}
