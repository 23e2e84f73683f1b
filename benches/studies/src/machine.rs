//! Facts about this machine and its processes; `None` if the system does not report them.

#[cfg(target_os = "linux")]
use std::sync::OnceLock;

/// The largest resident size of a process so far, in bytes.
#[cfg(target_os = "linux")]
pub fn peak_of(process: u32) -> Option<u64> {
    let process = procfs::process::Process::new(process.try_into().ok()?).ok()?;
    Some(process.status().ok()?.vmhwm? * 1024)
}

/// What new structures may take without swapping, in bytes: of the machine, and of the container that this process is in. A quarter
/// of a container's room is left free: the system kills at its limit, and a busy machine may look at a process's size late.
#[cfg(target_os = "linux")]
pub fn available() -> Option<u64> {
    use procfs::Current;
    let machine = procfs::Meminfo::current().ok()?.mem_available;
    let listing = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let room = crate::cgroup::room(std::path::Path::new("/sys/fs/cgroup"), &listing);
    let container = room.map(|it| it - it / 4);
    machine.into_iter().chain(container).min()
}

/// The processor's name.
#[cfg(target_os = "linux")]
pub fn processor() -> Option<String> {
    use procfs::Current;
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    let read = || Some(procfs::CpuInfo::current().ok()?.model_name(0)?.to_owned());
    NAME.get_or_init(read).clone()
}

/// The largest resident size of a process so far, in bytes.
#[cfg(not(target_os = "linux"))]
pub fn peak_of(_: u32) -> Option<u64> {
    None
}

/// What new structures may take without swapping, in bytes.
#[cfg(not(target_os = "linux"))]
pub fn available() -> Option<u64> {
    None
}

/// The processor's name.
#[cfg(not(target_os = "linux"))]
pub fn processor() -> Option<String> {
    None
}

/// This machine's name: as the scheduler calls it, or else as it calls itself.
pub fn host() -> String {
    std::env::var("SLURMD_NODENAME").unwrap_or_else(|_| own_name())
}

#[cfg(unix)]
fn own_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn own_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".to_owned())
}
