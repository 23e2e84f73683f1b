//! Writes files that are complete or absent: under a temporary name in the same directory, then renamed.
//!
//! Pipes and devices are written directly. Invariant: a file that already stands under the name keeps its content until the new
//! one is complete, so a full disk or a killed process destroys nothing.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempPath;

/// The temporary files that are neither renamed nor deleted yet.
static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Links that lead to links are followed no further than this.
const MOST_LINKS: usize = 40;

/// A file that is being written.
#[derive(Debug)]
pub struct Pending {
    target: PathBuf,
    /// `None` for a pipe or a device.
    temporary: Option<TempPath>,
}

impl Pending {
    /// A file to write that gets this name when it is complete, and its handle.
    pub fn new(path: &Path) -> io::Result<(Pending, File)> {
        let target = follow_links(path)?;
        let there = fs::metadata(&target).ok();
        if there.as_ref().is_some_and(|it| !it.is_file()) {
            let file = OpenOptions::new().write(true).open(&target)?;
            let temporary = None;
            return Ok((Pending { target, temporary }, file));
        }
        let directory = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(target.file_name().unwrap_or_default());
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The mode of an ordinary new file; the system applies the user's mask.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let (file, temporary) = builder.tempfile_in(directory)?.into_parts();
        if let Some(there) = there {
            file.set_permissions(there.permissions())?;
        }
        list().push(temporary.to_path_buf());
        let temporary = Some(temporary);
        Ok((Pending { target, temporary }, file))
    }

    /// A file that is already being written under a temporary name of its own.
    pub fn adopt(temporary: &Path, path: &Path) -> io::Result<Pending> {
        let target = follow_links(path)?;
        let temporary = TempPath::try_from_path(temporary)?;
        list().push(temporary.to_path_buf());
        let temporary = Some(temporary);
        Ok(Pending { target, temporary })
    }

    /// Where the content goes for now.
    pub fn path(&self) -> &Path {
        self.temporary.as_deref().unwrap_or(&self.target)
    }

    /// Gives the file its name. The content must be complete.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(temporary) = self.temporary.take() else {
            return Ok(());
        };
        forget(&temporary);
        temporary.persist(&self.target).map_err(|error| error.error)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            forget(temporary);
        }
    }
}

/// Writes a file that is whole or not there.
pub fn write_whole<T, E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let (pending, mut file) = Pending::new(path)?;
    let done = fill(&mut file)?;
    drop(file);
    pending.commit()?;
    Ok(done)
}

/// Notes a temporary directory that is being filled, and gets its name when it is whole.
pub fn note_pending(directory: &Path) {
    list().push(directory.to_owned());
}

/// Deletes every temporary file and directory that is still being written: for a process that ends at once, with all its threads.
pub fn discard_pending() {
    for path in list().drain(..) {
        // No error can be reported any more.
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(path);
    }
}

fn list() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forget(path: &Path) {
    list().retain(|it| it != path);
}

/// The path that a chain of symbolic links ends at, there or not.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_fails_half_way_leaves_the_old_one_untouched() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        fs::write(&path, "old").unwrap();
        let failed: io::Result<()> = write_whole(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("no room"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(scratch.path()), ["a"]);
        write_whole(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(scratch.path()), ["a"]);
    }

    #[test]
    fn a_file_with_a_temporary_name_of_its_own_is_renamed_or_deleted() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("a.part"), "whole").unwrap();
        Pending::adopt(&at("a.part"), &at("a"))
            .and_then(Pending::commit)
            .unwrap();
        fs::write(at("b.part"), "half").unwrap();
        drop(Pending::adopt(&at("b.part"), &at("b")).unwrap());
        assert_eq!(names(scratch.path()), ["a"]);
    }

    #[test]
    fn what_is_pending_can_be_discarded() {
        let scratch = tempfile::tempdir().unwrap();
        let (pending, _file) = Pending::new(&scratch.path().join("a")).unwrap();
        assert_eq!(names(scratch.path()).len(), 1);
        let temporary = pending.path().to_owned();
        fs::remove_file(&temporary).unwrap();
        drop(pending);
        assert!(!list().contains(&temporary));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_its_name_and_a_file_its_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let scratch = tempfile::tempdir().unwrap();
        let (file, link) = (scratch.path().join("file"), scratch.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        write_whole(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let dangling = scratch.path().join("dangling");
        symlink("fresh", &dangling).unwrap();
        write_whole(&dangling, |out| out.write_all(b"new")).unwrap();
        assert_eq!(
            fs::read_to_string(scratch.path().join("fresh")).unwrap(),
            "new"
        );
        write_whole(Path::new("/dev/null"), |out| out.write_all(b"new")).unwrap();
    }
}
