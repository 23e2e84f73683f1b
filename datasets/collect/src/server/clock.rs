//! Clocks of private servers that can be set: `libfaketime` before the server, which asks a file for how far it is off.

use std::path::{Path, PathBuf};

use super::ServerError;

/// Where Debian's package has it, for this machine's architecture.
const PLACES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

pub(super) struct Clocks {
    library: PathBuf,
}

impl Clocks {
    pub(super) fn new(database: &str) -> Result<Self, ServerError> {
        // A Go program asks the kernel by itself.
        if database == "etcd" {
            return Err(ServerError::CannotSuffer(
                "--fault clock does not work on etcd, which asks the kernel for the time without the C library that libfaketime stands before".into(),
            ));
        }
        let library = PLACES.iter().map(PathBuf::from).find(|it| it.is_file());
        let library = library.ok_or_else(|| ServerError::NotInstalled {
            program: "libfaketimeMT.so.1".into(),
            hint: " (Debian's package: libfaketime); --fault clock needs it".into(),
        })?;
        Ok(Clocks { library })
    }

    /// What a server of this log is started with. Only the time of day is off: waiting goes by the other clock.
    pub(super) fn environment(&self, log: &Path) -> Vec<(String, String)> {
        let library = self.library.display().to_string();
        let place = place(log).display().to_string();
        [
            ("LD_PRELOAD", library.as_str()),
            ("FAKETIME_TIMESTAMP_FILE", &place),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// Words for `env` that start a program whose clock is a day behind.
    pub(super) fn yesterday(&self) -> Vec<String> {
        let library = format!("LD_PRELOAD={}", self.library.display());
        vec![library, "FAKETIME=-1d".to_owned()]
    }

    /// Sets how far it is off. The server reads the file whenever it asks for the time.
    #[allow(clippy::unused_self)] // Without clocks there is nothing to set.
    pub(super) fn set(&self, log: &Path, seconds: i32) {
        // A file that is half written would be no time.
        let (place, next) = (place(log), log.with_extension("next"));
        if std::fs::write(&next, format!("{seconds:+}\n")).is_ok() {
            let _ = std::fs::rename(next, place);
        }
    }
}

/// Removes the shared memory that the library leaves when its process is killed.
pub(super) fn forget(pid: u32) {
    for name in ["faketime_shm", "sem.faketime_sem"] {
        let _ = std::fs::remove_file(format!("/dev/shm/{name}_{pid}"));
    }
}

fn place(log: &Path) -> PathBuf {
    log.with_extension("clock")
}
