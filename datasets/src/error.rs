//! Why a file could not be read or written: which file, where in it, what was found and what was expected.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use kingsnake_history::budget::StopReason;
use kingsnake_history::model::BuildError;
use thiserror::Error;

/// Where in a file something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line of a text format, counted from 1.
    Line(usize),
    /// A byte of a binary format, counted from 0.
    Offset(usize),
}

/// What is wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputProblem {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The bytes are not what the format prescribes.
    #[error("found {found}, expected {expected}")]
    Syntax {
        /// The text found.
        found: String,
        /// The text expected.
        expected: String,
    },
    /// The operations make no history.
    #[error("{0}")]
    History(#[from] BuildError),
    /// The file is right, but says something that has no place in a history yet.
    #[error("{0}")]
    Unsupported(String),
    /// Two parts of the file contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// No format fits.
    #[error("{0}")]
    Unrecognised(String),
    /// A compressed file, a pipe or a device exceeds the limit.
    #[error(
        "more than {limit} bytes after decompression; raise the limit if this is no decompression bomb"
    )]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The budget ended before the file did.
    #[error("{0}")]
    Stopped(StopReason),
}

#[derive(Debug)]
struct Details {
    file: PathBuf,
    place: Place,
    /// In the line, counted from 1.
    column: Option<usize>,
    problem: InputProblem,
}

/// A file that could not be read.
#[derive(Debug)]
pub struct ReadError(Box<Details>);

impl ReadError {
    pub(crate) fn new(file: &Path, place: Place, problem: impl Into<InputProblem>) -> Self {
        ReadError(Box::new(Details {
            file: file.to_owned(),
            place,
            column: None,
            problem: problem.into(),
        }))
    }

    /// The same, at a column of its line.
    pub(crate) fn in_column(mut self, column: usize) -> Self {
        self.0.column = Some(column);
        self
    }

    /// Which character of the line, counted from 1, if that is known.
    pub fn column(&self) -> Option<usize> {
        self.0.column
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.0.file
    }

    /// Where in the file.
    pub fn place(&self) -> Place {
        self.0.place
    }

    /// What is wrong there.
    pub fn problem(&self) -> &InputProblem {
        &self.0.problem
    }

    /// Why reading stopped, if nothing is wrong with the file.
    pub fn stopped(&self) -> Option<&StopReason> {
        match &self.0.problem {
            InputProblem::Stopped(reason) => Some(reason),
            _ => None,
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details {
            file,
            place,
            column,
            problem,
        } = &*self.0;
        write!(out, "{}", file.display())?;
        match place {
            Place::Whole => {}
            Place::Line(line) => write!(out, ", line {line}")?,
            Place::Offset(offset) => write!(out, ", byte {offset}")?,
        }
        if let Some(column) = column {
            write!(out, ", column {column}")?;
        }
        write!(out, ": {problem}")
    }
}

// The message includes the cause, so there is no further source to print.
impl std::error::Error for ReadError {}

/// A history that could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The system refused.
    #[error("{file}: {error}", file = .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// The format cannot express a part of the history.
    #[error("the {format} format cannot express {what}")]
    Inexpressible {
        /// The format's name.
        format: &'static str,
        /// What it cannot express, with the first place in the history that needs it.
        what: String,
    },
    /// This format is only read.
    #[error("the {format} format is read, not written; written are {written}")]
    ReadOnly {
        /// The format's name.
        format: &'static str,
        /// The formats that are written.
        written: String,
    },
}
