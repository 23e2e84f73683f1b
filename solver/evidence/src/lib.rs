//! Certificates and counterexamples as files: written, read, and checked again (docs/certificates.md, docs/json.md).
//!
//! A certificate is JSON Lines: a header, then one point of the order per line. A counterexample is a JSON object of `verdict`, `level`
//! and `counterexample`; the document of `kingsnake check --json` is such an object with more fields.

mod certificate;
mod claim;
mod counterexample;
mod fingerprint;
mod level;
mod names;
mod recorded;
mod view;

pub use certificate::certificate;
pub use claim::{EvidenceClaim, promised_name, read};
pub use level::{LevelView, level_view};
pub use names::{token, txn_name};
pub use view::{counterexample, counterexample_view};

use thiserror::Error;

/// A file that is not evidence for a history: the position and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct EvidenceError {
    /// The line, counted from 1, if one is wrong.
    line: Option<usize>,
    why: String,
}

impl std::fmt::Display for EvidenceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.why)
    }
}

impl EvidenceError {
    fn at(self, line: usize) -> Self {
        let line = Some(line);
        EvidenceError { line, ..self }
    }
}

fn wrong(why: impl Into<String>) -> EvidenceError {
    let why = why.into();
    EvidenceError { line: None, why }
}

type Read<T> = Result<T, EvidenceError>;
