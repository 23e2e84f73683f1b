//! The claims of Cobra's reads about their writers, compared with what the writers logged.
//!
//! Invariant: one slot per version, so that the check costs no lookup beyond the interning that was done anyway.

use kingsnake_history::model::ValueId;
use rustc_hash::FxHashMap;

use crate::cursor::Input;
use crate::error::{InputProblem, ReadError};

/// No transaction; transaction ids are positive in every log seen, and one with this id would only go unchecked.
const NOBODY: i64 = i64::MIN;

#[derive(Clone, Copy)]
struct ClaimedVersion {
    writer: i64,
    claimed: i64,
}

/// The state of the versions so far.
#[derive(Default)]
pub(super) struct Claims {
    versions: Vec<ClaimedVersion>,
    /// Some version was written twice.
    pub(super) ids_repeat: bool,
    /// The first contradiction.
    pub(super) contradiction: Option<ReadError>,
    /// The value of each key whose writer was garbage-collected.
    pub(super) collected: FxHashMap<i64, i64>,
}

impl Claims {
    /// Makes room for this many versions.
    pub(super) fn reserve(&mut self, n_versions: usize) {
        self.versions.reserve(n_versions);
    }

    /// A transaction wrote this version.
    #[inline]
    pub(super) fn written(&mut self, value: ValueId, txn: i64, input: Input<'_>, at: usize) {
        let version = self.version(value);
        let ClaimedVersion { writer, claimed } = *version;
        version.writer = txn;
        self.ids_repeat |= writer != NOBODY;
        if claimed != NOBODY && claimed != txn {
            self.contradict(input, at, || mismatch(claimed, txn));
        }
    }

    /// A read names this transaction as the version's writer.
    #[inline]
    pub(super) fn claimed(&mut self, value: ValueId, txn: i64, input: Input<'_>, at: usize) {
        let version = self.version(value);
        let before = if version.writer == NOBODY {
            version.claimed
        } else {
            version.writer
        };
        version.claimed = txn;
        if before != NOBODY && before != txn {
            self.contradict(input, at, || mismatch(txn, before));
        }
    }

    /// Keeps a contradiction, if it is the first.
    pub(super) fn contradict(
        &mut self,
        input: Input<'_>,
        at: usize,
        words: impl FnOnce() -> String,
    ) {
        if self.contradiction.is_none() {
            self.contradiction = Some(input.error_at(at, InputProblem::Contradiction(words())));
        }
    }

    /// How many versions were read but are in no log.
    pub(super) fn n_unwritten(&self) -> usize {
        let unwritten = |it: &&ClaimedVersion| it.writer == NOBODY && it.claimed != NOBODY;
        self.versions.iter().filter(unwritten).count()
    }

    /// The warnings for the user.
    pub(super) fn report(&self, warnings: &mut Vec<String>) {
        if !self.collected.is_empty() {
            warnings.push(format!(
                "{} keys were read in versions whose writer was garbage-collected; these count as their initial state",
                self.collected.len()
            ));
        }
        let n = self.n_unwritten();
        if n > 0 {
            warnings.push(format!(
                "{n} versions were read whose write is in no log: the values come from nowhere, or the log is incomplete"
            ));
        }
    }

    #[inline]
    fn version(&mut self, value: ValueId) -> &mut ClaimedVersion {
        let index = value.index();
        if index >= self.versions.len() {
            let nobody = ClaimedVersion {
                writer: NOBODY,
                claimed: NOBODY,
            };
            self.versions.resize(index + 1, nobody);
        }
        &mut self.versions[index]
    }
}

fn mismatch(claimed: i64, writer: i64) -> String {
    format!(
        "a read names transaction {claimed} as the writer of a version that transaction {writer} wrote, or was said to have written"
    )
}
