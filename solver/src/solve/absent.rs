//! The obligation that rows which queries did not return are absent: deleted rows, of which there is no read for each query and row.
//!
//! Of the orders that an answer leaves, `schedule` looks for one in which every query finds every such row absent. Where it has to let a
//! query see a row, the lemma is the read of that row, with everybody that can have deleted it as a candidate.

use super::{Found, KeyReader, Lemma, Obligation};
use crate::phases::{self, Check, Stop};
use crate::resolve::Resolved;

/// Number of rows per transaction added for the first order that is no answer; each further one adds twice as many.
pub(super) const ROWS: usize = 4;
/// Up to this many reads, an order that is no answer adds all.
const FEW: usize = 100_000;

/// Every row that a query did not return is absent.
pub(super) struct Absent {
    /// All reads, if they are few.
    few: Option<Vec<KeyReader>>,
}

impl Absent {
    pub(super) fn new(check: &Check<'_>, base: &Resolved) -> Self {
        let asked = base.unreturned().asked().iter();
        let spanned = asked.map(|it| base.unreturned().spanned(check.history, it.range).len());
        let n_reads: usize = spanned.sum();
        Absent {
            few: (n_reads <= FEW).then(|| all(check, base)),
        }
    }
}

impl Obligation for Absent {
    fn check(&mut self, found: &Found<'_>) -> Result<Vec<Lemma>, Stop> {
        if found.shown.is_empty() {
            return Ok(Vec::new());
        }
        if found.shown.iter().any(|&row| found.reads.is_stated(row)) {
            return Err(phases::cyclic(found.decider).into());
        }
        let rows = self.few.take().unwrap_or_else(|| found.shown.clone());
        Ok(rows.into_iter().map(Lemma::Absent).collect())
    }
}

/// All of these reads.
pub(super) fn all(check: &Check<'_>, base: &Resolved) -> Vec<KeyReader> {
    let unreturned = base.unreturned();
    let mut reads: Vec<KeyReader> = Vec::new();
    for asked in unreturned.asked() {
        let spanned = unreturned.spanned(check.history, asked.range);
        let touched = base.touched(check.history, asked.reader);
        let keys = unreturned.keys()[spanned].iter();
        let missed = keys.filter(|key| touched.binary_search(key).is_err());
        reads.extend(missed.map(|&key| (asked.reader, key)));
    }
    reads.sort_unstable();
    reads.dedup();
    reads
}
