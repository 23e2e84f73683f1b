//! Errors as JSON, if `--json` is given: the same document for every command.

use std::path::PathBuf;

use anyhow::Error;
use clap::ArgMatches;
use kingsnake_datasets::{Place, ReadError};
use serde_json::{Value, json};

use crate::json::SCHEMA;
use crate::limits::is_stdio;
use crate::output::put;

/// The document of an error with this message.
pub fn document(words: &str) -> Value {
    json!({
        "schema": SCHEMA, "kingsnake": env!("CARGO_PKG_VERSION"), "verdict": "error", "exit_status": 2,
        "error": {"message": words},
    })
}

/// The same for an error that may have a file and a position.
fn document_of(error: &Error) -> Value {
    let mut document = document(&format!("{error:#}"));
    if let Some(error) = error.downcast_ref::<ReadError>() {
        document["error"]["file"] = error.file().display().to_string().into();
        match error.place() {
            Place::Line(line) => {
                document["error"]["line"] = line.into();
                if let Some(column) = error.column() {
                    document["error"]["column"] = column.into();
                }
            }
            Place::Offset(offset) => document["error"]["byte"] = offset.into(),
            Place::Whole => {}
        }
    }
    document
}

/// Where the command line sends JSON, if anywhere.
fn wanted(matches: &ArgMatches) -> Option<PathBuf> {
    let (_, typed) = matches.subcommand()?;
    let path = typed.try_get_one::<PathBuf>("json").ok()?;
    path.cloned()
}

/// Writes the document of an error, if JSON was requested. An existing file is kept: it may be the history itself.
pub fn write(matches: &ArgMatches, error: &Error) {
    if let Some(path) = wanted(matches).filter(|path| is_stdio(path) || !path.exists()) {
        // The error is on stderr already; a second one cannot be reported.
        let _ = put(&path, &format!("{:#}\n", document_of(error)));
    }
}

/// Writes the document of an invalid command line, if it requests JSON on stdout.
pub fn write_usage(error: &clap::Error) {
    let is_error = error.use_stderr();
    if is_error && std::env::args_os().any(|word| word == "--json") {
        let text = error.to_string();
        let words = text.lines().next().unwrap_or_default();
        let words = words.strip_prefix("error: ").unwrap_or(words);
        let _ = put("-".as_ref(), &format!("{:#}\n", document(words)));
    }
}
