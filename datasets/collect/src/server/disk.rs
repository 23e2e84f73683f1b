//! A small file system of its own for a private server, in memory, which can be filled and freed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::ServerError;
use super::process::io_error;

/// Room for a server and some of its log.
const SIZE: &str = "size=512m";
const FILLER: &str = "filler";

pub(super) struct SmallDisk {
    root: PathBuf,
}

impl SmallDisk {
    /// Mounts one at a directory, which it makes.
    pub(super) fn mount(root: &Path) -> Result<Self, ServerError> {
        fs::create_dir_all(root).map_err(|error| io_error(root, error))?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(root);
        let why = match mount.output() {
            Ok(output) if output.status.success() => {
                let root = root.to_owned();
                return Ok(SmallDisk { root });
            }
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        Err(ServerError::CannotSuffer(format!(
            "--fault disk-full mounts a small file system for the server, which needs root and the right to mount: {why}"
        )))
    }

    pub(super) fn fill(&self) {
        let Ok(mut file) = File::create(self.root.join(FILLER)) else {
            return;
        };
        let block = vec![0; 1 << 16];
        while file.write_all(&block).is_ok() {}
    }

    pub(super) fn free(&self) {
        let _ = fs::remove_file(self.root.join(FILLER));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.root);
    }
}

fn unmount(root: &Path) {
    let _ = Command::new("umount").arg("--lazy").arg(root).output();
}

/// Unmounts what a killed collector left mounted in its directory.
pub(super) fn unmount_below(home: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for place in mounts.lines().filter_map(|it| it.split(' ').nth(1)) {
        if Path::new(place).starts_with(home) {
            unmount(Path::new(place));
        }
    }
}
