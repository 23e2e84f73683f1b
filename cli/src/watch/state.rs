//! The snapshot from which a killed watch resumes: the retained data, how far the files were read, and the length of
//! the certificate.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use kingsnake_datasets::write_whole;
use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::feed::Feed;
use super::input::LogFile;
use crate::input::MOST_TEXT;

/// What is stored.
#[derive(Serialize, Deserialize)]
pub struct WatchSnapshot {
    /// The options that must not change.
    pub options: String,
    pub feed: Feed,
    pub files: Vec<LogFile>,
    /// JSON in JSON: codes of values have 128 bits.
    pub watcher: String,
    pub n_txns: u64,
    pub certificate: u64,
}

impl WatchSnapshot {
    /// Stores it; the file is complete at every moment.
    pub fn write(
        path: &Path,
        options: &str,
        feed: &Feed,
        files: &[LogFile],
        engine: &Engine,
        certificate: u64,
    ) -> Result<()> {
        let snapshot = WatchSnapshot {
            options: options.to_owned(),
            feed: feed.clone(),
            files: files.to_vec(),
            watcher: engine.snapshot()?,
            n_txns: engine.n_txns,
            certificate,
        };
        let text = serde_json::to_vec(&snapshot)?;
        write_whole(path, |file| -> std::io::Result<()> {
            file.write_all(&text)
        })
        .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads it, if it exists.
    pub fn read(path: &Path, options: &str) -> Result<Option<WatchSnapshot>> {
        let bytes = match kingsnake_datasets::bounded::read_bytes(path, MOST_TEXT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let snapshot: WatchSnapshot = serde_json::from_slice(&bytes)
            .with_context(|| format!("{}: not a snapshot of a watch", path.display()))?;
        ensure!(
            snapshot.options == options,
            "{}: of another watch ({})",
            path.display(),
            snapshot.options
        );
        Ok(Some(snapshot))
    }
}
