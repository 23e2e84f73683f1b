//! Finds the content of a path: one file in some format, or a directory of session logs.

use std::path::{Path, PathBuf};

use crate::ReadOptions;
use crate::cursor::{Cursor, Input};
use crate::error::{InputProblem, Place, ReadError};
use crate::format::Format;
use crate::formats::dbcop;
use crate::source::{self, FileSource, LogFile};

/// Directories that hold nothing but one entry are entered, but no deeper than this.
const MAX_DEPTH: usize = 4;

/// A log with its bytes.
pub(crate) struct LoadedLog {
    pub(crate) number: i64,
    pub(crate) path: PathBuf,
    pub(crate) source: FileSource,
}

/// What a path holds.
pub(crate) enum Found {
    /// One log per session.
    Logs {
        format: Format,
        logs: Vec<LoadedLog>,
    },
    /// A whole history.
    File {
        format: Format,
        path: PathBuf,
        source: FileSource,
    },
}

impl Found {
    /// The bytes of all files.
    pub(crate) fn n_bytes(&self) -> u64 {
        match self {
            Found::Logs { logs, .. } => logs.iter().map(|log| log.source.len() as u64).sum(),
            Found::File { source, .. } => source.len() as u64,
        }
    }
}

/// Looks at a path.
pub(crate) fn find(
    path: &Path,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Result<Found, ReadError> {
    let mut path = path.to_owned();
    for _ in 0..MAX_DEPTH {
        if !path.is_dir() {
            break;
        }
        let listing = source::list(&path)?;
        let wanted = options.format;
        let is_cobra = matches!(wanted, None | Some(Format::Cobra | Format::CobraValues));
        let is_viper = matches!(wanted, None | Some(Format::Viper));
        match (listing.cobra.is_empty(), listing.viper.is_empty()) {
            (false, true) if is_cobra => {
                ignore(listing.others.len(), warnings);
                return load_logs(wanted.unwrap_or(Format::Cobra), listing.cobra, options);
            }
            (true, false) if is_viper => {
                ignore(listing.others.len(), warnings);
                return load_logs(Format::Viper, listing.viper, options);
            }
            (false, false) => {
                let (format, logs, rest) = match wanted {
                    Some(format) if is_cobra => (format, listing.cobra, listing.viper),
                    Some(format) if is_viper => (format, listing.viper, listing.cobra),
                    _ => return Err(both(&path)),
                };
                ignore(listing.others.len() + rest.len(), warnings);
                return load_logs(format, logs, options);
            }
            (true, true) if listing.others.len() == 1 => {
                path = listing.others.into_iter().next().unwrap_or_default();
            }
            _ => return Err(no_logs(&path, &listing.others)),
        }
    }
    let source = source::load(&path, options.max_decompressed, options)?;
    let input = Input {
        file: &path,
        bytes: &source,
        budget: &options.budget,
        map: None,
    };
    let format = match options.format {
        Some(format) => format,
        None => recognise(input)?,
    };
    Ok(Found::File {
        format,
        path,
        source,
    })
}

fn ignore(n_others: usize, warnings: &mut Vec<String>) {
    if n_others > 0 {
        warnings.push(format!(
            "{n_others} files in the directory are no session logs and were ignored"
        ));
    }
}

fn both(path: &Path) -> ReadError {
    let message =
        "the directory holds Cobra's T<n>.log and Viper's J<n>.log; say which by --format";
    ReadError::new(
        path,
        Place::Whole,
        InputProblem::Unrecognised(message.to_owned()),
    )
}

fn no_logs(path: &Path, others: &[PathBuf]) -> ReadError {
    let names: Vec<String> = others
        .iter()
        .take(4)
        .filter_map(|other| Some(other.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let holds = match names.len() {
        0 => "it is empty".to_owned(),
        _ if others.len() > names.len() => format!("it holds {}, …", names.join(", ")),
        _ => format!("it holds {}", names.join(", ")),
    };
    let message =
        format!("no logs (T<n>.log of Cobra or J<n>.log of Viper) in this directory: {holds}");
    ReadError::new(path, Place::Whole, InputProblem::Unrecognised(message))
}

fn load_logs(
    format: Format,
    logs: Vec<LogFile>,
    options: &ReadOptions,
) -> Result<Found, ReadError> {
    let mut left = options.max_decompressed;
    let mut loaded = Vec::with_capacity(logs.len());
    for LogFile { number, path } in logs {
        let source = source::load(&path, left, options)?;
        if matches!(source, FileSource::Owned(_)) {
            left = left.saturating_sub(source.len() as u64);
        }
        loaded.push(LoadedLog {
            number,
            path,
            source,
        });
    }
    Ok(Found::Logs {
        format,
        logs: loaded,
    })
}

/// The format of one file, from its first bytes.
pub(crate) fn recognise(input: Input<'_>) -> Result<Format, ReadError> {
    if input.bytes.is_empty() {
        return Err(input.empty());
    }
    if dbcop::fits(input) {
        return Ok(Format::Dbcop);
    }
    if begins_as_cobra(input.bytes) {
        return Ok(Format::Cobra);
    }
    let input = Input {
        bytes: source::text(input.file, input.bytes)?,
        ..input
    };
    let mut cursor = input.cursor();
    cursor.pass_space();
    by_text(cursor).ok_or_else(|| {
        let found = input.found(cursor.at);
        let all = Format::names(&Format::ALL);
        let mut message = format!("found {found}, which begins none of the formats {all}");
        if has_our_fields(cursor) {
            message = format!(
                "found {found}; the header is missing: add this as the first line: {HEADER}"
            );
        }
        input.error_in_line(cursor.at, InputProblem::Unrecognised(message))
    })
}

/// Whether a file that begins so may be a history in some format.
pub(crate) fn may_be(input: Input<'_>, is_whole: bool) -> bool {
    if recognise(input).is_ok() {
        return true;
    }
    // The first object may be longer than the beginning, and counts are about the whole.
    let starts = input.bytes.trim_ascii_start().first();
    !is_whole && (starts == Some(&b'{') || dbcop::has_header(input))
}

/// Whether a file is a document that this program wrote about a history: its version is a text, that of a format a number.
pub(crate) fn is_document(input: Input<'_>) -> bool {
    let mut rest = input.bytes.trim_ascii_start();
    let words = ["{", "\"schema\"", ":", "", ",", "\"kingsnake\"", ":", "\""];
    words
        .iter()
        .all(|word| match rest.strip_prefix(word.as_bytes()) {
            // The version of the document.
            Some(after) if word.is_empty() => {
                let n_digits = after.iter().take_while(|it| it.is_ascii_digit()).count();
                rest = after[n_digits..].trim_ascii_start();
                n_digits > 0
            }
            Some(after) => {
                rest = after.trim_ascii_start();
                true
            }
            None => false,
        })
}

/// The first line of a file of ours, as one would write it by hand.
const HEADER: &str = "{\"kingsnake\":1,\"initial\":0}, with what every key holds before the test, or {\"kingsnake\":1} if keys are absent then";

/// Whether the first object is a transaction of ours.
fn has_our_fields(mut cursor: Cursor<'_>) -> bool {
    let mut names = || -> Result<Vec<String>, ReadError> {
        let mut names = Vec::new();
        let mut first = true;
        cursor.json_punct(b'{')?;
        while cursor.json_more(&mut first, b'}')? {
            names.push(cursor.json_text()?.into_owned());
            cursor.json_punct(b':')?;
            cursor.json_skip()?;
        }
        Ok(names)
    };
    let names = names().unwrap_or_default();
    names
        .iter()
        .any(|name| matches!(name.as_str(), "ops" | "session"))
}

/// A record S and, after it, another record, with or without a time.
fn begins_as_cobra(bytes: &[u8]) -> bool {
    let is_record = |at: usize| matches!(bytes.get(at), Some(b'S' | b'C' | b'R' | b'W'));
    let ends = |at: usize| bytes.len() == at;
    bytes[0] == b'S' && [9, 17].into_iter().any(|at| is_record(at) || ends(at))
}

fn by_text(mut cursor: Cursor<'_>) -> Option<Format> {
    let rest = cursor.rest();
    match rest {
        [b'r' | b'w', b'(', ..] => Some(Format::Text),
        [b'r' | b'w', b' ' | b'\t', ..] => Some(Format::Awdit),
        [b'0'..=b'9', ..] => is_list_append(cursor).then_some(Format::ListAppendText),
        _ if rest.starts_with(b"-----") || rest.starts_with(b"=====") => Some(Format::Awdit),
        [b'{', ..] => {
            cursor.at += 1;
            cursor.pass_space();
            match cursor.peek() {
                b'"' => by_first_object(cursor),
                b':' => Some(Format::JepsenEdn),
                _ => None,
            }
        }
        [b'[', ..] => {
            cursor.at += 1;
            cursor.pass_space();
            if !cursor.pass(b'{') {
                return matches!(cursor.peek(), b';' | b'#').then_some(Format::JepsenEdn);
            }
            cursor.pass_space();
            match cursor.peek() {
                b'"' => Some(Format::JepsenJson),
                b':' => Some(Format::JepsenEdn),
                _ => None,
            }
        }
        [b'(' | b';' | b'#', ..] => Some(Format::JepsenEdn),
        _ => None,
    }
}

/// JSON Lines: ours, Viper's and Jepsen's are recognised by the names in the first object.
fn by_first_object(mut cursor: Cursor<'_>) -> Option<Format> {
    let mut format = None;
    let mut first = true;
    while cursor.json_more(&mut first, b'}').ok()? {
        let name = cursor.json_text().ok()?;
        cursor.json_punct(b':').ok()?;
        match &*name {
            "kingsnake" => return Some(Format::Kingsnake),
            "type" | "process" | "f" => return Some(Format::JepsenJson),
            "value" | "isInitial" => format = Some(Format::Viper),
            _ => {}
        }
        cursor.json_skip().ok()?;
    }
    format
}

/// A number alone on its line, then `session txn R …` or `session txn A …`.
fn is_list_append(mut cursor: Cursor<'_>) -> bool {
    let mut try_second_line = || -> Result<bool, ReadError> {
        cursor.int()?;
        cursor.end_line()?;
        cursor.pass_space();
        if cursor.done() {
            return Ok(true);
        }
        cursor.int()?;
        cursor.pass_blanks();
        cursor.int()?;
        cursor.pass_blanks();
        Ok(matches!(cursor.peek(), b'R' | b'A'))
    };
    try_second_line().unwrap_or(false)
}
