//! How large the process has been and how large it may become, as the system counts it.

/// The largest resident size so far, in bytes; `None` where the system does not tell.
pub fn peak() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

/// What new structures may take without swapping, in bytes; `None` where the system does not tell.
pub fn available() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

fn field(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
