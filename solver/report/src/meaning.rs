//! The resolved meaning of a history, computed on first use and cached: the story, the anomaly classes, Elle's map and
//! the directory of anomalies all use it.

use std::cell::OnceCell;

use kingsnake_solver::certify::{Meaning, Traces};
use kingsnake_solver::model::History;

/// A history and, once computed, its meaning.
pub struct TracedHistory<'h> {
    history: &'h History,
    meaning: OnceCell<Meaning<'h>>,
}

impl<'h> TracedHistory<'h> {
    /// Nothing is computed yet.
    pub fn new(history: &'h History) -> Self {
        TracedHistory {
            history,
            meaning: OnceCell::new(),
        }
    }

    /// With a meaning computed before the history was moved, if there is one.
    pub fn resumed(history: &'h History, traces: Option<Traces>) -> Self {
        let meaning = traces.map(|traces| Meaning::resumed(history, traces));
        TracedHistory {
            history,
            meaning: meaning.map_or_else(OnceCell::new, OnceCell::from),
        }
    }

    /// The history.
    pub fn history(&self) -> &'h History {
        self.history
    }

    /// The meaning.
    pub fn meaning(&self) -> &Meaning<'h> {
        self.meaning.get_or_init(|| Meaning::of(self.history))
    }

    /// The meaning, if it was computed.
    pub fn into_traces(self) -> Option<Traces> {
        self.meaning.into_inner().map(Meaning::into_traces)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use kingsnake_solver::model::{HistoryBuilder, Status, Token};

    use super::*;

    #[test]
    fn a_history_is_traced_when_asked_for_and_not_again_after_it_was_moved() {
        let mut builder = HistoryBuilder::new();
        let session = builder.session(Token::Int(1));
        builder
            .begin(session, Token::Int(1), Status::Committed)
            .expect("a new transaction");
        builder.write(Token::Int(1), Token::Int(2));
        let history = builder.finish().expect("a history");
        let traced = TracedHistory::new(&history);
        assert!(traced.into_traces().is_none());
        let traced = TracedHistory::new(&history);
        assert!(std::ptr::eq(traced.meaning(), traced.meaning()));
        let traces = traced.into_traces();
        assert!(traces.is_some());
        let moved = history.clone();
        let traced = TracedHistory::resumed(&moved, traces);
        assert!(traced.meaning.get().is_some());
        assert!(traced.meaning().counts(kingsnake_solver::model::TxnId(0)));
    }

    /// The files below a directory that contain a text.
    fn files_with(text: &str, directory: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                files_with(text, &path, found);
            } else if fs::read_to_string(&path).is_ok_and(|it| it.contains(text)) {
                found.extend(path.file_name().map(|it| it.to_string_lossy().into_owned()));
            }
        }
    }

    #[test]
    fn nothing_else_of_the_outputs_and_the_program_traces_a_history() {
        let mut found = Vec::new();
        for source in ["src", "../../cli/src"] {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
            files_with(concat!("Meaning", "::of("), &source, &mut found);
        }
        assert_eq!(found, ["meaning.rs"]);
    }
}
