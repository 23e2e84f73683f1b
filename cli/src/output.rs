//! Where results are written: complete files that overwrite neither an input nor another output.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kingsnake_datasets::write_whole;

use crate::limits::is_stdio;
use crate::voice::say;

/// Directories of logs are searched at most this deep.
const MAX_DEPTH: usize = 4;

/// A temporary directory for this process only; other users cannot enter it.
pub fn scratch() -> Result<tempfile::TempDir> {
    let made = tempfile::Builder::new().prefix("kingsnake-").tempdir();
    made.context("cannot make a temporary directory")
}

/// Writes a file, or stdout for `-`.
pub fn put(path: &Path, text: &str) -> Result<()> {
    if is_stdio(path) {
        return say(text).context("cannot write to stdout");
    }
    fill(path, |out| out.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Fills a file, or stdout for `-`.
pub fn fill<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    if is_stdio(path) {
        let mut out = BufWriter::new(io::stdout().lock());
        let done = write(&mut out)?;
        out.flush()?;
        return Ok(done);
    }
    write_whole(path, |file| {
        let mut out = BufWriter::new(file);
        let done = write(&mut out)?;
        out.flush()?;
        Ok(done)
    })
}

/// An output: the option that names it, and where it goes.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// `--json`, say.
    pub option: &'a str,
    /// The file, or `-`.
    pub path: &'a Path,
}

/// Refuses, before anything is written, outputs that cannot be written, that are an input, or that are the same file.
pub fn expect_apart(inputs: &[&Path], outputs: &[Output<'_>]) -> Result<()> {
    let read: Vec<(PathBuf, Identity)> = inputs.iter().flat_map(|path| files_of(path)).collect();
    let mut written: Vec<(&Output<'_>, Identity)> = Vec::new();
    for output in outputs {
        let Output { option, path } = *output;
        expect_writable(path)?;
        let Some(identity) = identity(path) else {
            continue;
        };
        if let Some((input, _)) = read.iter().find(|(_, it)| *it == identity) {
            bail!(
                "{option} {} is also read (as {}); name another file",
                path.display(),
                input.display()
            );
        }
        if let Some((other, _)) = written.iter().find(|(_, it)| *it == identity) {
            bail!(
                "{} {} and {option} {} are the same file; name another for one of them",
                other.option,
                other.path.display(),
                path.display()
            );
        }
        written.push((output, identity));
    }
    Ok(())
}

/// Refuses now a path that cannot be written later, so that no long check is lost.
fn expect_writable(path: &Path) -> Result<()> {
    if is_stdio(path) {
        return Ok(());
    }
    if path.is_dir() {
        bail!("cannot write {}: it is a directory", path.display());
    }
    expect_parent(path)
}

/// Refuses a file in a directory that does not exist.
pub fn expect_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) if parent != Path::new("") && !parent.is_dir() => {
            bail!(
                "cannot write {}: there is no directory {}",
                path.display(),
                parent.display()
            )
        }
        _ => Ok(()),
    }
}

/// Identifies the file of a path, however it is written and whatever links lead to it.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    Stdout,
    /// An existing file.
    #[cfg(unix)]
    Inode(u64, u64),
    /// A file that does not exist yet, or a system without inodes: the canonical directory and the name.
    Name(PathBuf),
}

/// `None` for a device such as `/dev/null`, of which there may be several.
fn identity(path: &Path) -> Option<Identity> {
    if is_stdio(path) {
        return Some(Identity::Stdout);
    }
    #[cfg(unix)]
    if let Ok(there) = fs::metadata(path) {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        if there.file_type().is_char_device() {
            return None;
        }
        return Some(Identity::Inode(there.dev(), there.ino()));
    }
    if let Ok(there) = fs::canonicalize(path) {
        return Some(Identity::Name(there));
    }
    // A dangling link: the file will be at its target.
    let target = match fs::read_link(path) {
        Ok(next) => path.parent().unwrap_or(Path::new("")).join(next),
        Err(_) => path.to_owned(),
    };
    let parent = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
    Some(Identity::Name(
        parent.join(target.file_name().unwrap_or_default()),
    ))
}

/// A path and, if it is a directory, what is in it.
fn files_of(path: &Path) -> Vec<(PathBuf, Identity)> {
    let mut all = Vec::new();
    if !is_stdio(path) {
        collect(path, MAX_DEPTH, &mut all);
    }
    all
}

fn collect(path: &Path, depth: usize, all: &mut Vec<(PathBuf, Identity)>) {
    all.extend(identity(path).map(|identity| (path.to_owned(), identity)));
    if depth == 0 || !path.is_dir() {
        return;
    }
    // A directory that cannot be listed is an error of reading, reported later in more detail.
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        collect(&entry.path(), depth - 1, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(inputs: &[&Path], outputs: &[&Path]) -> Result<()> {
        let outputs: Vec<Output<'_>> = outputs
            .iter()
            .map(|&path| Output {
                option: "--o",
                path,
            })
            .collect();
        expect_apart(inputs, &outputs)
    }

    #[test]
    fn one_file_by_two_spellings_is_one_file() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("dir")).unwrap();
        fs::write(at("dir/in"), "").unwrap();
        assert!(apart(&[&at("dir/in")], &[&at("dir/out"), &at("out")]).is_ok());
        assert!(apart(&[&at("dir/in")], &[&at("dir/../dir/in")]).is_err());
        assert!(apart(&[&at("dir")], &[&at("dir/in")]).is_err());
        assert!(apart(&[], &[&at("new"), &at("dir/../new")]).is_err());
        assert!(apart(&[], &[Path::new("-"), Path::new("-")]).is_err());
        assert!(apart(&[], &[&at("missing/new")]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_may_be_shared() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("in"), "").unwrap();
        fs::hard_link(at("in"), at("hard")).unwrap();
        std::os::unix::fs::symlink("in", at("soft")).unwrap();
        std::os::unix::fs::symlink("new", at("dangling")).unwrap();
        assert!(apart(&[&at("in")], &[&at("hard")]).is_err());
        assert!(apart(&[&at("in")], &[&at("soft")]).is_err());
        assert!(apart(&[], &[&at("dangling"), &at("new")]).is_err());
        let null = Path::new("/dev/null");
        assert!(apart(&[null], &[null, null]).is_ok());
    }
}
