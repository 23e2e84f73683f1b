//! Makes the histories of a study, each once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::{Context, Result, bail};

use crate::design::{HistoryOrigin, HistorySource};
use crate::ledger::put_whole;
use crate::process::{ChildEnding, Limits, run};
use crate::row::Made;
use crate::switches::generate_line;

/// Making a history takes seconds; this is for one that never ends.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Where a history is, or will be.
pub fn place(directory: &Path, source: &HistorySource, seed: u32) -> PathBuf {
    match &source.origin {
        HistoryOrigin::File(path) => path.clone(),
        HistoryOrigin::Generated(_) => directory
            .join("histories")
            .join(format!("{}-{seed}.jsonl", source.name)),
        HistoryOrigin::Corpus { .. } => directory
            .join("histories")
            .join(format!("{}.jsonl", source.name)),
    }
}

/// Where it stands how a history was made.
fn made_place(history: &Path) -> PathBuf {
    history.with_extension("made.json")
}

/// How a history was made, if it was made here.
pub fn made(history: &Path) -> Option<Made> {
    let text = fs::read_to_string(made_place(history)).ok()?;
    serde_json::from_str(&text).ok()
}

/// Makes a history that is not there yet. Whether it was stopped instead.
pub fn make(
    directory: &Path,
    source: &HistorySource,
    seed: u32,
    executable: &Path,
    stop: &AtomicBool,
) -> Result<bool> {
    let path = place(directory, source, seed);
    if path.exists() {
        return Ok(false);
    }
    let parent = directory.join("histories");
    fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
    match &source.origin {
        HistoryOrigin::File(_) => bail!("{} is gone", path.display()),
        HistoryOrigin::Corpus { text, .. } => put_whole(&path, text)?,
        HistoryOrigin::Generated(words) => {
            // What a process before this one was writing is its own.
            let part = format!("{}-{seed}.{}.part", source.name, std::process::id());
            let part = parent.join(part);
            let line = generate_line(words, &part.display().to_string(), seed);
            let limits = Limits {
                timeout: PATIENCE,
                memory: None,
            };
            let ended =
                run(executable, &line, limits, stop).context("cannot start kingsnake generate")?;
            match ended.ending {
                ChildEnding::Stopped => return Ok(true),
                ChildEnding::Exited(status) if status.success() => {}
                _ => bail!(
                    "kingsnake {} failed: {}",
                    line.join(" "),
                    ended.stderr.trim()
                ),
            }
            put_whole(&made_place(&path), &ended.stdout)?;
            fs::rename(&part, &path).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(false)
}
