//! One file a command; each returns the exit status.

pub mod ablate;
pub mod auto;
pub mod bench;
pub mod check;
pub mod collect;
pub mod completions;
pub mod convert;
pub mod devices;
pub mod export;
pub mod generate;
pub mod stats;
pub mod verify;
pub mod verify_proof;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::voice::say;

/// Writes a file, or stdout for `-`.
fn put(path: &Path, text: &str) -> Result<()> {
    if path == Path::new("-") {
        return say(text).context("cannot write to stdout");
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Complains now about a place where nothing can be written later, so that no long check is lost.
fn expect_writable(path: &Path) -> Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    if path.is_dir() {
        bail!("cannot write {}: it is a directory", path.display());
    }
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
