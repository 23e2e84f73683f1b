//! One writer a file. Each first makes sure that its format can say all that bears on a verdict.
//!
//! What bears on none (names that a format does not keep) is reported in notes; nothing is left out silently.

mod cobra;
mod dbcop;
mod jepsen;
mod kingsnake;
mod kingsnake_predicates;
mod limits;
mod text;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use kingsnake_history::model::History;

use crate::error::WriteError;
use crate::format::Format;
use crate::whole::write_whole;

/// Writes a history to a file; to a directory for Cobra's logs. Our own format is compressed where the name ends in
/// `.gz` or `.zst`. A file appears under its name only when it is whole. Returns what the format does not keep, none of which bears on a verdict.
pub fn write(history: &History, format: Format, path: &Path) -> Result<Vec<String>, WriteError> {
    let notes = match format {
        Format::Kingsnake => to_file(path, |out| kingsnake::write(history, out)),
        Format::Text => {
            let plan = text::plan(history)?;
            to_file(path, |out| text::write(history, &plan, out)).map(|()| plan.notes)
        }
        Format::Dbcop => {
            let notes = dbcop::check(history)?;
            to_file(path, |out| dbcop::write(history, out)).map(|()| notes)
        }
        Format::Cobra => {
            let plan = cobra::plan(history)?;
            cobra::write(history, &plan, path).map(|()| plan.notes)
        }
        Format::JepsenEdn | Format::JepsenJson => {
            let plan = jepsen::plan(history, format == Format::JepsenJson, format.name())?;
            to_file(path, |out| jepsen::write(history, &plan, out)).map(|()| plan.notes)
        }
        other => {
            return Err(WriteError::ReadOnly {
                format: other.name(),
                written: Format::names(&Format::WRITTEN),
            });
        }
    };
    notes.map_err(|error| WriteError::Io {
        file: path.to_owned(),
        error,
    })
}

/// Writes a history in our own format to memory.
pub fn kingsnake_bytes(history: &History, out: &mut Vec<u8>) -> io::Result<()> {
    kingsnake::write(history, out).map(drop)
}

/// Writes a history's version orders to a file of their own, to stand beside the history. It is compressed where the name
/// ends in `.gz` or `.zst`.
pub fn write_version_orders(history: &History, path: &Path) -> Result<(), WriteError> {
    let written = to_file(path, |out| kingsnake::write_version_orders(history, out));
    written.map_err(|error| WriteError::Io {
        file: path.to_owned(),
        error,
    })
}

fn to_file<T>(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    let extension = path.extension().and_then(|it| it.to_str());
    write_whole(path, |file| {
        let mut file = BufWriter::with_capacity(1 << 16, file);
        let done = match extension {
            Some("gz") => {
                let mut encoder =
                    flate2::write::GzEncoder::new(&mut file, flate2::Compression::default());
                let done = fill(&mut encoder)?;
                encoder.finish()?;
                done
            }
            Some("zst") => {
                let mut encoder = zstd::Encoder::new(&mut file, 0)?;
                let done = fill(&mut encoder)?;
                encoder.finish()?;
                done
            }
            _ => fill(&mut file)?,
        };
        file.flush()?;
        Ok(done)
    })
}
