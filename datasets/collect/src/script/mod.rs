//! A script: sessions, their steps, and the orders in which the steps are sent. It names no expected results; the history is
//! checked as any other.
//!
//! ```text
//! about Lost update (P4): both read x, then both write it.
//! breaks psi
//! rows x
//!
//! a: read x
//! b: read x
//! a: write x
//! b blocks: write x
//! a: commit
//! b: commit
//! ```

mod classic;
mod orders;
mod parse;

use std::path::{Path, PathBuf};

use kingsnake_datasets::store::TxnStep;
use kingsnake_datasets::workloads::WorkloadKind;
use thiserror::Error;

use crate::adapter::{Initially, Key};
use crate::sql::Statement;

pub use classic::{ClassicScript, SCRIPTS};

/// The most bytes of a script.
const MOST_SCRIPT: u64 = 1 << 20;

/// Sessions, their steps, and the orders in which the steps are sent.
pub struct Script {
    /// What it shows, in a line.
    pub about: String,
    /// The weakest level that forbids what it shows.
    pub breaks: Option<String>,
    /// The names of the sessions, in the order of the file.
    pub sessions: Vec<String>,
    pub(crate) steps: Vec<ScriptStep>,
    /// Each is one run: the places of the steps, in the order in which they are sent.
    pub(crate) orders: Vec<Vec<usize>>,
    /// The keys' names, sorted, so that a range of names is a range of keys.
    names: Vec<String>,
    /// Which of them have a row at first.
    has_row: u64,
    kind: WorkloadKind,
    /// Statements before the first step and after the last.
    pub(crate) setup: Vec<Statement>,
    pub(crate) teardown: Vec<Statement>,
}

/// A step of a session.
pub(crate) struct ScriptStep {
    pub(crate) session: usize,
    pub(crate) act: ScriptAct,
    /// Whether it is expected to wait for another session.
    pub(crate) blocks: bool,
    /// Where it is in the file.
    pub(crate) line: usize,
    /// As it is typed.
    pub(crate) text: String,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScriptAct {
    Begin,
    Commit,
    Abort,
    Operation(Verb, usize, usize),
    Sql(Statement),
}

/// An operation on keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Write,
    Insert,
    Delete,
    Range,
    List,
    Append,
}

/// Why a file is no script.
#[derive(Debug, Error)]
pub enum BadScript {
    /// There is no such script, and no such file.
    #[error("there is neither a script nor a file {0:?}; scripts are {names}", names = names().join(", "))]
    Unknown(String),
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A line is not of a script.
    #[error("{path}, line {line}: {problem}")]
    Line {
        /// The file.
        path: String,
        /// The line.
        line: usize,
        /// What is wrong, and what to write instead.
        problem: String,
    },
}

/// The names of the scripts that come with the program.
fn names() -> Vec<&'static str> {
    SCRIPTS.iter().map(|it| it.name).collect()
}

impl Script {
    /// The script of this name, or of the file at this path.
    pub fn open(name: &str) -> Result<Self, BadScript> {
        if let Some(classic) = SCRIPTS.iter().find(|it| it.name == name) {
            return Self::parse(classic.text, name);
        }
        let path = Path::new(name);
        if !path.is_file() {
            return Err(BadScript::Unknown(name.to_owned()));
        }
        let text = kingsnake_datasets::bounded::read_text(path, MOST_SCRIPT).map_err(|error| {
            BadScript::Io {
                path: path.to_owned(),
                error,
            }
        })?;
        Self::parse(&text, name)
    }

    /// Reads a script; errors name the path.
    pub fn parse(text: &str, path: &str) -> Result<Self, BadScript> {
        parse::parse(text, path).map_err(|(line, problem)| BadScript::Line {
            path: path.to_owned(),
            line,
            problem,
        })
    }

    /// What its keys hold.
    pub fn kind(&self) -> WorkloadKind {
        self.kind
    }

    /// Every run has keys of its own.
    pub(crate) fn initially(&self) -> Initially {
        if self.names.is_empty() {
            // Every row of the set-up is of writer 0.
            return Initially::Rows(0);
        }
        if self.has_row == 0 {
            return Initially::Nothing;
        }
        Initially::Blocks {
            blocks: self.orders.len() as i64,
            stride: self.names.len() as i64,
            rows: self.has_row,
        }
    }

    fn key(&self, run: usize, name: usize) -> Key {
        (run * self.names.len() + name) as Key
    }

    /// The name of each key of each run: of the second and later ones with the run's number first, so that a range of names is
    /// one of a single run.
    pub(crate) fn key_names(&self) -> impl Iterator<Item = (Key, String)> + '_ {
        let n_names = self.names.len();
        (0..self.orders.len() * n_names).map(move |key| {
            let (run, name) = (key / n_names, &self.names[key % n_names]);
            let name = match run {
                0 => name.clone(),
                _ => format!("{}{name}", run + 1),
            };
            (key as Key, name)
        })
    }

    /// The name of a key in the file.
    pub(crate) fn name_of(&self, key: Key) -> &str {
        &self.names[key as usize % self.names.len()]
    }

    /// An operation as a session runs it.
    pub(crate) fn step(&self, run: usize, verb: Verb, one: usize, other: usize) -> TxnStep {
        let key = self.key(run, one);
        match verb {
            Verb::Read => TxnStep::Read(key),
            Verb::Write => TxnStep::Write(key, 0),
            Verb::Insert => TxnStep::Insert(key),
            Verb::Delete => TxnStep::Delete(key),
            Verb::Range => TxnStep::Range(key, self.key(run, other)),
            Verb::List => TxnStep::ReadList(key),
            Verb::Append => TxnStep::Append(key),
        }
    }
}
