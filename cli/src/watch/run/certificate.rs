//! The rolling certificate: the order of settled transactions, appended as they are settled.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result};

use super::Watch;
use crate::args::WatchArgs;
use crate::watch::engine::{Engine, watch_level};

impl Watch<'_> {
    pub(super) fn append_order(&mut self) -> Result<()> {
        let Some(out) = &mut self.certificate else {
            return Ok(());
        };
        let order = self.engine.as_mut().map(Engine::take_order);
        let has_snapshots =
            watch_level(self.args.level).is_some_and(kingsnake_watch::WatchLevel::has_snapshots);
        for point in order.unwrap_or_default() {
            let name = self.feed.names.txns.json(point.id);
            let line = match (has_snapshots, point.is_begin) {
                (false, _) => format!("{name}\n"),
                (true, true) => format!("[\"begin\",{name}]\n"),
                (true, false) => format!("[\"commit\",{name}]\n"),
            };
            out.write_all(line.as_bytes())?;
            self.n_certificate += line.len() as u64;
        }
        Ok(())
    }
}

pub(super) fn open_certificate(
    path: &Path,
    length: u64,
    args: &WatchArgs,
) -> Result<BufWriter<File>> {
    let shown = || format!("cannot write {}", path.display());
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(length == 0 || args.state.is_none())
        .open(path)
        .with_context(shown)?;
    // What was written after the last snapshot is written again.
    file.set_len(length).with_context(shown)?;
    file.seek(SeekFrom::Start(length)).with_context(shown)?;
    Ok(BufWriter::new(file))
}

pub(super) fn certificate_header(args: &WatchArgs) -> String {
    let level = watch_level(args.level);
    let has_snapshots = level.is_some_and(kingsnake_watch::WatchLevel::has_snapshots);
    let has_time = level.is_some_and(kingsnake_watch::WatchLevel::has_real_time);
    let mut header = serde_json::json!({
        "kingsnake_certificate": 1,
        "model": if has_snapshots { "si" } else { "ser" },
        "session_order": true,
        "real_time": has_time,
        "transactions": 0,
        "operations": 0,
        "fingerprint": "",
    });
    if has_time {
        header["clock"] = serde_json::json!({ "drift_ns": args.drift });
    }
    format!("{header}\n")
}
