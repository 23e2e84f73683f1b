//! File formats of every producer, workload generators, and the histories themselves.
//!
//! [`open`] reads a file or a directory in any [`Format`], recognised from its content; [`write()`] writes one.
//! Every reader fills a [`HistoryBuilder`], so the result is well formed whatever the input.

pub mod bounded;
mod cursor;
mod error;
mod format;
mod formats;
mod json;
mod locate;
mod many;
mod recognise;
mod source;
mod split;
pub mod store;
mod whole;
pub mod workloads;
mod writers;

use std::path::{Path, PathBuf};

use kingsnake_history::budget::Budget;
use kingsnake_history::model::{History, HistoryBuilder};
use kingsnake_history::operations::Operation;

pub use error::{InputProblem, Place, ReadError, WriteError};
pub use format::{Format, UnknownFormat};
pub use locate::{Located, SourceEvent, SourceLine, locate};
pub use many::{Scan, ScannedHistory};
pub use whole::{Pending, discard_pending, note_pending, write_whole};
pub use writers::{kingsnake_bytes, write, write_version_orders};

use cursor::Input;
use formats::cobra::{Identity, SessionLog};
use recognise::Found;

/// How to read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format; recognised from the content when there is none.
    pub format: Option<Format>,
    /// A file of version orders that stands beside the history.
    pub version_order: Option<PathBuf>,
    /// Whether reads of values that were never written are left out of Jepsen's histories, as Elle leaves them out.
    pub ignore_unwritten: bool,
    /// The most bytes that a compressed file, a pipe or a device may give.
    pub max_decompressed: u64,
    /// Reading stops with [`InputProblem::Stopped`] when it ends.
    pub budget: Budget,
    /// Whether large files are mapped, which saves a copy. Truncating a mapped file ends the process by SIGBUS, so only
    /// programs that handle this signal should use it.
    pub map: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            format: None,
            version_order: None,
            ignore_unwritten: false,
            max_decompressed: 8 << 30,
            budget: Budget::unlimited(),
            map: false,
        }
    }
}

/// What was read.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The history.
    pub history: History,
    /// The format that it was read in.
    pub format: Format,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The size of what was read, after decompression.
    pub bytes: u64,
}

/// Reads a history from a file or a directory.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Parsed, ReadError> {
    let mut builder = HistoryBuilder::new();
    let mut warnings = Vec::new();
    let found = recognise::find(path, options, &mut warnings)?;
    let bytes = found.n_bytes();
    let (file, format) = match found {
        Found::Logs { format, logs } => {
            let inputs: Vec<(i64, Input<'_>)> = logs
                .iter()
                .map(|log| {
                    (
                        log.number,
                        Input {
                            file: &log.path,
                            bytes: &log.source,
                            budget: &options.budget,
                            map: None,
                        },
                    )
                })
                .collect();
            let format = read_logs(format, &inputs, &mut builder, &mut warnings)?;
            (path.to_owned(), format)
        }
        Found::File {
            format,
            path,
            source,
        } => {
            let input = Input {
                file: &path,
                bytes: content(format, &path, &source)?,
                budget: &options.budget,
                map: source.map(),
            };
            let ignore = options.ignore_unwritten;
            let format = read_file(format, input, ignore, &mut builder, &mut warnings)?;
            (path, format)
        }
    };
    if let Some(beside) = &options.version_order {
        let source = source::load(beside, options.max_decompressed, options)?;
        let input = Input {
            file: beside,
            bytes: source::text(beside, &source)?,
            budget: &options.budget,
            map: None,
        };
        formats::kingsnake::read_version_orders(input, &mut builder)?;
    }
    finish(builder, &file, format, warnings, bytes)
}

/// Reads a Jepsen log as operations, for workloads that are no transactions over keys. Returns its format and size too.
pub fn open_log(
    path: &Path,
    options: &ReadOptions,
) -> Result<(Vec<Operation>, Format, u64), ReadError> {
    let found = recognise::find(path, options, &mut Vec::new())?;
    let bytes = found.n_bytes();
    match found {
        Found::File {
            format: format @ (Format::JepsenEdn | Format::JepsenJson),
            path,
            source,
        } => {
            let input = Input {
                file: &path,
                bytes: content(format, &path, &source)?,
                budget: &options.budget,
                map: None,
            };
            let log = formats::jepsen::log::read(input, format == Format::JepsenJson)?;
            Ok((log, format, bytes))
        }
        Found::File { format, .. } | Found::Logs { format, .. } => {
            let words = format!("workloads are checked in logs of Jepsen, and this is {format}");
            Err(ReadError::new(
                path,
                Place::Whole,
                InputProblem::Unsupported(words),
            ))
        }
    }
}

/// Reads a history in a format whose histories fit in one file; of the others, one session.
pub fn read_bytes(format: Format, bytes: &[u8], name: &str) -> Result<Parsed, ReadError> {
    let mut builder = HistoryBuilder::new();
    let mut warnings = Vec::new();
    let file = Path::new(name);
    let input = Input {
        file,
        bytes: content(format, file, bytes)?,
        budget: &Budget::unlimited(),
        map: None,
    };
    let format = read_file(format, input, false, &mut builder, &mut warnings)?;
    finish(builder, file, format, warnings, bytes.len() as u64)
}

/// The bytes for a reader: all of a binary file, and of a text those after a byte-order mark.
fn content<'a>(format: Format, file: &Path, bytes: &'a [u8]) -> Result<&'a [u8], ReadError> {
    match format {
        Format::Dbcop | Format::Cobra | Format::CobraValues => Ok(bytes),
        _ => source::text(file, bytes),
    }
}

fn finish(
    mut builder: HistoryBuilder,
    file: &Path,
    format: Format,
    warnings: Vec<String>,
    bytes: u64,
) -> Result<Parsed, ReadError> {
    if matches!(format, Format::JepsenEdn | Format::Viper) {
        builder.spell_nil("nil");
    }
    let history = builder
        .finish()
        .map_err(|error| ReadError::new(file, Place::Whole, error))?;
    Ok(Parsed {
        history,
        format,
        warnings,
        bytes,
    })
}

fn read_logs(
    format: Format,
    logs: &[(i64, Input<'_>)],
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<Format, ReadError> {
    let logs: Vec<SessionLog<'_>> = logs
        .iter()
        .map(|&(session, input)| SessionLog { session, input })
        .collect();
    if format == Format::Viper {
        formats::viper::read(&logs, builder, warnings)?;
        return Ok(format);
    }
    let identity = match format {
        Format::CobraValues => Identity::Value,
        _ => Identity::Detect,
    };
    formats::cobra::read(&logs, identity, builder, warnings)
}

fn read_file(
    format: Format,
    input: Input<'_>,
    ignore_unwritten: bool,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<Format, ReadError> {
    match format {
        Format::Kingsnake => formats::kingsnake::read(input, builder, warnings)?,
        Format::Dbcop => formats::dbcop::read(input, builder, warnings)?,
        Format::Text => formats::text::read(input, builder, warnings)?,
        Format::Cobra | Format::CobraValues => {
            let session = source::log_number(input.file, 'T').unwrap_or(0);
            return read_logs(format, &[(session, input)], builder, warnings);
        }
        Format::Viper => {
            let session = source::log_number(input.file, 'J').unwrap_or(0);
            return read_logs(format, &[(session, input)], builder, warnings);
        }
        Format::Awdit => formats::awdit::read(input, builder, warnings)?,
        Format::JepsenEdn => {
            formats::jepsen::read(input, false, ignore_unwritten, builder, warnings)?;
        }
        Format::JepsenJson => {
            formats::jepsen::read(input, true, ignore_unwritten, builder, warnings)?;
        }
        Format::ListAppendText => formats::list_append::read(input, builder, warnings)?,
    }
    Ok(format)
}
