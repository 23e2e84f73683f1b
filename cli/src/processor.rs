//! How much processor time the process has used.

/// Seconds of all threads together so far; `None` where the system does not tell.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere there is none.
pub fn seconds() -> Option<f64> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9)
}

/// Seconds of all threads together so far; `None` where the system does not tell.
#[cfg(not(unix))]
pub fn seconds() -> Option<f64> {
    None
}
